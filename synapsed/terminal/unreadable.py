"""A screen that nobody here can read: what is told of it instead of a question. Pure.

A program that rests without a composer, without a dialog that is understood and without any sign of work asks a person
something, or has come to a standstill; so does one that says that it waits and shows no dialog that can be read. Either
way only a person can go on, so it is told as a prompt of its own kind, `screen`: the last rows as they stand, without
options. It can be answered with a line of words where the kernel says that the program reads lines.
"""

import hashlib

from synapsed.model.agent import Activity
from synapsed.model.task import Prompt
from synapsed.terminal.prompts import Asked
from synapsed.terminal.snapshot import ScreenSnapshot
from synapsed.terminal.verdict import QUIET_UNKNOWN_S, Verdict

UNREADABLE_S = 5.0
"""Whoever is not understood for so long is told of."""

IN_TURN_S = 9.0
"""The same while a turn runs: it may be thinking. A person is told within ten seconds."""

ROWS_MAX = 20
"""Rows of the screen that are told."""


class Unreadable:
    """Of one terminal. A screen that moves although it waits (a clock) is told as it was until it comes to rest."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._told: Asked | None = None
        self._patience = UNREADABLE_S

    def look(
        self,
        verdict: Verdict,
        screen: ScreenSnapshot,
        *,
        quiet_s: float,
        now: float,
        in_turn: bool,
        reads_lines: bool,
        rests: bool = False,
    ) -> Asked | None:
        """What is told of the screen, judged by `verdict`; None where it is understood, or may be yet. `rests`: the
        kernel says that the program does nothing."""
        stuck = verdict.activity in (Activity.UNKNOWN, Activity.WAITING) or verdict.lacks_composer
        lost = stuck and verdict.asked is None
        if not lost:
            self._since = self._told = None
            return None
        if self._since is None:
            self._since = now - (quiet_s if verdict.activity is not Activity.WAITING else 0.0)
        self._patience = IN_TURN_S if in_turn and not (rests or reads_lines) else UNREADABLE_S
        if now - self._since < self._patience and self._told is None:
            return None
        if self._told is None or quiet_s >= QUIET_UNKNOWN_S:
            self._told = _told(screen, reads_lines=reads_lines)
        return self._told

    @property
    def lost(self) -> bool:
        """Whether the screen was not understood when it was looked at last."""
        return self._since is not None

    @property
    def due(self) -> float | None:
        """When the answer of `look` may become another one by time alone."""
        if self._since is None or self._told is not None:
            return None
        return self._since + self._patience


def _told(screen: ScreenSnapshot, *, reads_lines: bool) -> Asked:
    rows = [line.rstrip() for line in screen.lines if line.strip()][-ROWS_MAX:]
    text = "\n".join(rows)
    digest = hashlib.sha256(f"screen\0{reads_lines}\0{text}".encode()).hexdigest()[:16]
    return Asked(Prompt(prompt_id=digest, type="screen", prompt=text, own_words=reads_lines), None)
