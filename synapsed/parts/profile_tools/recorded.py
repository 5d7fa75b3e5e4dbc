"""Plays a recording of a program to a `TerminalObserver`, and returns the observer's beliefs at the recording's marks.
Pure.

`main` is a program of its own, which has no rights when it draws the recording.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from synapsed.model.facts import ChannelFact
from synapsed.terminal.sandboxed import Look, Profile, TerminalObserver, give_up_rights, said_of_turn

PAUSES_S = (0.05, 0.16, 0.26, 0.41, 1.0, 3.1)
"""Seconds after which an unchanged screen is looked at again, as the link does, because time alone may change the
verdict."""

CPU_S = 240
"""Seconds that `main` may compute."""

OF_AN_AGENT = frozenset({"mark", "receives", "held"})
"""Keys of an expectation that a screen alone does not show."""
STAYING = frozenset({"error", "interrupted"})
"""Signs that stay on the screen until they scroll off: they are compared only if the expectation names them."""
TOLD_MAX = 300
"""Most characters of either side of a difference."""

type Cut = Callable[[bytes], Sequence[bytes]]
"""Cuts a chunk into pieces."""


def whole(chunk: bytes) -> Sequence[bytes]:
    return [chunk]


@dataclass(frozen=True)
class RecordedLook:
    """A look at the screen, and its time; `mark` is the number of the mark in the recording, for a look at a mark."""

    at: float
    look: Look
    mark: int | None = None


@dataclass
class Player:
    """Plays one recording."""

    profile: Profile
    record: Mapping[str, Any]
    """Document with `size`, `chunks` and `marks`."""
    raw: bytes
    facts: Sequence[tuple[float, ChannelFact]] = ()
    """Facts of side channels, each with its time."""
    cut: Cut = whole
    """Cuts the chunks."""
    looks: bool = True
    """True if the screen is looked at between chunks, too."""
    observer: TerminalObserver = field(init=False)

    def __post_init__(self) -> None:
        cols, rows = self.record["size"]
        self.observer = TerminalObserver(self.profile, cols=cols, rows=rows, offset=0)

    def play(self) -> Iterator[RecordedLook]:
        """Yields every look, in order. `observer` may be replaced between two of them."""
        steps: list[tuple[float, int, Any]] = [(at, 1, offset) for at, offset in self.record["chunks"]]
        # At a mark, the program had written the bytes that the recorder had read by then.
        steps += [(at, 2, (n, offset)) for n, (at, offset, _) in enumerate(self.record["marks"])]
        steps += [(at, 0, fact) for at, fact in self.facts]
        steps.sort(key=lambda step: step[:2])
        ends = [step[0] for step in steps[1:]] + [step[0] + 1 for step in steps[-1:]]
        for (at, kind, what), end in zip(steps, ends, strict=True):
            if kind == 0:
                self.observer.turn.told(what)
                continue
            if kind == 1:
                self._feed(what, at)
            else:
                self._feed(what[1], at)
                yield RecordedLook(at, self.observer.look(at), what[0])
            if self.looks:
                for when in (at, *(at + pause for pause in PAUSES_S if at + pause < end)):
                    if not self.observer.mid_frame(when):
                        yield RecordedLook(when, self.observer.look(when))
            elif at + PAUSES_S[0] < end:
                yield RecordedLook(at, self.observer.look(at))

    def _feed(self, end: int, at: float) -> None:
        while (start := self.observer.offset) < end:
            for piece in self.cut(self.raw[start:end]):
                self.observer.feed(self.observer.offset, piece, at)


def believed(profile: Profile, look: Look) -> dict[str, Any]:
    """Returns the beliefs of a look, with the keys of an expectation."""
    verdict = look.verdict
    error, interrupted = said_of_turn(profile, look, "")
    facts: dict[str, Any] = {"activity": verdict.activity.value, "composer": look.composer.state}
    if verdict.asked is not None:
        prompt = verdict.asked.prompt
        facts["prompt"] = {
            "type": prompt.type,
            "prompt": prompt.prompt,
            "options": [[option.key, option.label] for option in prompt.options],
            "default": prompt.default,
        } | ({"own_words": True} if prompt.own_words else {})
    return facts | ({"error": list(error)} if error else {}) | ({"interrupted": True} if interrupted else {})


def differences(label: str, told: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    """Returns, in sentences, the differences between the beliefs at a mark and the expectation."""
    wanted = {key: value for key, value in expected.items() if key not in OF_AN_AGENT}
    found = {key: value for key, value in told.items() if key in wanted or key not in STAYING}
    return [
        f"{label!r}: {key} is {_shown(found.get(key))}, and {_shown(wanted.get(key))} is expected"
        for key in sorted(wanted.keys() | found.keys())
        if wanted.get(key) != found.get(key)
    ]


def _shown(value: Any) -> str:
    text = "none" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= TOLD_MAX else f"{text[:TOLD_MAX]}…"


def proof(profile: Profile, run: Mapping[str, Any], raw: bytes) -> dict[str, Any]:
    """Returns the profile's reading of a recording: its marks, each with the beliefs, and the differences."""
    labels = [label for _, _, label in run["recording"]["marks"]]
    player = Player(profile, run["recording"], raw)
    seen = [(each.mark, believed(profile, each.look)) for each in player.play() if each.mark is not None]
    told = [facts for _, facts in sorted(seen, key=lambda pair: pair[0])]
    marks = [{"mark": label, **facts} for label, facts in zip(labels, told, strict=True)]
    expected: Sequence[Mapping[str, Any]] | None = run["expected"]
    found: list[str] = []
    if expected is not None and [mark.get("mark") for mark in expected] != labels:
        found = ["its expectation has other marks than it has"]
    elif expected is not None:
        for label, facts, wanted in zip(labels, told, expected, strict=True):
            found += differences(label, facts, wanted)
    return {"name": run["name"], "marks": marks, "differences": found}


def main() -> int:
    """Reads a line of JSON (the profile, and the recordings without their bytes), then the bytes of all recordings, one
    after the other; writes the proofs."""
    head = json.loads(sys.stdin.buffer.readline())
    raws = [sys.stdin.buffer.read(run["raw"]) for run in head["runs"]]
    profile = Profile.model_validate(head["profile"])
    give_up_rights(cpu_s=CPU_S)
    proofs = [proof(profile, run, raw) for run, raw in zip(head["runs"], raws, strict=True)]
    sys.stdout.buffer.write(json.dumps(proofs).encode())
    return 0
