"""Recordings of real programs, played to a `TerminalObserver` as they came, or cut differently."""

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from synapsed.model.facts import ChannelFact, PromptAccepted, TurnAnswered, TurnEnded, TurnFailed, TurnInterrupted
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Profile
from synapsed.terminal.look import Look
from synapsed.terminal.observer import TerminalObserver

__all__ = ["CASES", "Case", "Cut", "Replay", "Seen", "at_random", "bytewise", "whole"]

HERE = Path(__file__).parent
RECORDINGS = HERE.parent / "recordings"

PAUSES_S = (0.05, 0.16, 0.26, 0.41, 1.0, 3.1)
"""When a screen that rests is looked at again: as the link does, whenever time alone may change the verdict."""

FACTS: dict[str, type[ChannelFact]] = {
    "accepted": PromptAccepted,
    "answered": TurnAnswered,
    "ended": TurnEnded,
    "failed": TurnFailed,
    "interrupted": TurnInterrupted,
}
SERVER_EVENTS = {"session.idle": "ended", "session.error": "failed"}
"""What a session server's events mean here; that a turn began is told by the first `busy` after none was open."""

type Cut = Callable[[bytes], Sequence[bytes]]
"""How a chunk is cut further."""


def whole(chunk: bytes) -> Sequence[bytes]:
    return [chunk]


def bytewise(chunk: bytes) -> Sequence[bytes]:
    return [bytes([byte]) for byte in chunk]


def at_random(seed: int) -> Cut:
    chance = random.Random(seed)

    def cut(chunk: bytes) -> Sequence[bytes]:
        pieces, at = [], 0
        while at < len(chunk):
            size = chance.choice((1, 2, 3, 7, 31, 200, 5000))
            pieces.append(chunk[at : at + size])
            at += size
        return pieces

    return cut


@cache
def _library() -> ProfileLibrary:
    return ProfileLibrary.standard(HERE / "no user profiles")


@dataclass(frozen=True)
class Case:
    """One recording, and what is expected of it (`tests/golden/<cli>-<version>/<scenario>.json`)."""

    path: Path

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"

    @cached_property
    def expected(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.path.read_text())
        return found

    @cached_property
    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((RECORDINGS / f"{self.name}.json").read_text())
        return found

    @cached_property
    def raw(self) -> bytes:
        return (RECORDINGS / f"{self.name}.raw").read_bytes()

    def profile(self) -> Profile:
        return _library().get(self.record["cli"])

    def facts(self) -> list[tuple[float, ChannelFact]]:
        """What the side channel told, with its time. `transcript` of the expectation adds what only that tells: at a
        mark, the kind of a fact."""
        cli = self.record["cli"]
        if not (channels := self.profile().channels):
            return []
        channel = channels.get("hooks") or next(iter(channels.values()))
        told: list[tuple[float, str]] = []
        turn_open = False
        for line in (RECORDINGS / "hooks" / cli / f"{self.path.stem}.jsonl").read_text().splitlines():
            report = json.loads(line)
            kind = channel.events.get(report["event"], SERVER_EVENTS.get(report["event"], ""))
            if report["event"] == "session.status" and report["payload"]["properties"]["status"]["type"] == "busy":
                kind = "" if turn_open else "accepted"
            if kind in FACTS:
                turn_open = kind == "accepted"
                told.append((report["at"], kind))
        marks = {label: at for at, _, label in reversed(self.record["marks"])}
        told += [(marks[label] - 0.3, kind) for label, kind in self.expected.get("transcript", {}).items()]
        return [(at, FACTS[kind](channel="hooks", at_ns=int(at * 1e9))) for at, kind in sorted(told)]

    def statuses(self) -> list[tuple[int, str]]:
        """The states that the program itself reported, each with the offset behind it."""
        found = re.finditer(rb"\x1b\]7501;state=(\w+)[^\x07\x1b]*(?:\x07|\x1b\\)", self.raw)
        return [(match.end(), match[1].decode()) for match in found]


CASES = [Case(path) for path in sorted(HERE.glob("*-[0-9]*/*.json"))]


@dataclass(frozen=True)
class Seen:
    """A look, when and at which offset; `mark` is the mark's place in the recording for a look at one."""

    at: float
    look: Look
    mark: int | None = None


@dataclass
class Replay:
    """Plays `case`. `told`: side channels speak too. `cut`: how its chunks are cut; `looks`: between its chunks too."""

    case: Case
    cut: Cut = whole
    told: bool = False
    looks: bool = True
    observer: TerminalObserver = field(init=False)

    def __post_init__(self) -> None:
        cols, rows = self.case.record["size"]
        self.observer = TerminalObserver(self.case.profile(), cols=cols, rows=rows, offset=0)

    def play(self) -> Iterator[Seen]:
        """Every look, in order. `observer` may be replaced between two of them."""
        record, raw = self.case.record, self.case.raw
        steps: list[tuple[float, int, Any]] = [(at, 1, offset) for at, offset in record["chunks"]]
        # At a mark the program had written what the recorder had read by then.
        steps += [(at, 2, (n, offset)) for n, (at, offset, _) in enumerate(record["marks"])]
        if self.told:
            steps += [(at, 0, fact) for at, fact in self.case.facts()]
        steps.sort(key=lambda step: step[:2])
        ends = [step[0] for step in steps[1:]] + [steps[-1][0] + 1]
        for (at, kind, what), end in zip(steps, ends, strict=True):
            if kind == 0:
                self.observer.turn.told(what)
                continue
            if kind == 1:
                self._feed(raw, what, at)
            else:
                self._feed(raw, what[1], at)
                yield Seen(at, self.observer.look(at), what[0])
            if self.looks:
                for when in (at, *(at + pause for pause in PAUSES_S if at + pause < end)):
                    if not self.observer.mid_frame(when):
                        yield Seen(when, self.observer.look(when))
            elif at + PAUSES_S[0] < end:
                yield Seen(at, self.observer.look(at))

    def _feed(self, raw: bytes, end: int, at: float) -> None:
        while (start := self.observer.offset) < end:
            for piece in self.cut(raw[start:end]):
                self.observer.feed(self.observer.offset, piece, at)
