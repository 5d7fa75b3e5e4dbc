"""Recordings of real programs, played to a `TerminalObserver` as they came, or cut differently."""

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from synapsed.model.facts import ChannelFact, PromptAccepted, TurnAnswered, TurnEnded, TurnFailed, TurnInterrupted
from synapsed.parts.profile_tools.recorded import Cut, Player, RecordedLook, whole
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Profile

__all__ = ["CASES", "Case", "Cut", "RecordedLook", "Replay", "at_random", "bytewise", "whole"]

HERE = Path(__file__).parent

FACTS: dict[str, type[ChannelFact]] = {
    "accepted": PromptAccepted,
    "answered": TurnAnswered,
    "ended": TurnEnded,
    "failed": TurnFailed,
    "interrupted": TurnInterrupted,
}
SERVER_EVENTS = {"session.idle": "ended", "session.error": "failed"}
"""What a session server's events mean here; that a turn began is told by the first `busy` after none was open."""


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

    @property
    def recordings(self) -> Path:
        return self.path.parents[2] / "recordings"

    @cached_property
    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.recordings / f"{self.name}.json").read_text())
        return found

    @cached_property
    def raw(self) -> bytes:
        return (self.recordings / f"{self.name}.raw").read_bytes()

    def profile(self) -> Profile:
        return _library().get(self.record["cli"]).at(self.record["version"])

    def facts(self) -> list[tuple[float, ChannelFact]]:
        """What the side channel told, with its time. `transcript` of the expectation adds what only that tells: at a
        mark, the kind of a fact."""
        cli = self.record["cli"]
        if not (channels := self.profile().channels):
            return []
        channel = channels.get("hooks") or next(iter(channels.values()))
        told: list[tuple[float, str]] = []
        turn_open = False
        for line in (self.recordings / "hooks" / cli / f"{self.path.stem}.jsonl").read_text().splitlines():
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


class Replay(Player):
    """Plays `case`. `told`: side channels speak too."""

    def __init__(self, case: Case, cut: Cut = whole, told: bool = False, looks: bool = True) -> None:
        self.case = case
        super().__init__(case.profile(), case.record, case.raw, case.facts() if told else (), cut, looks)
