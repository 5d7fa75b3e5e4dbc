"""Reports a screen that cannot be read in place of a question, and decides if a redraw would bring the program's own
drawing back. Pure.

A program that rests without a composer, without a known dialog and without any sign of work asks a person something, or
has come to a standstill; so does one that reports waiting and shows no readable dialog. Either way only a person can go
on, so it is reported as a prompt of its own kind, `screen`: the last rows as they are, without options. It can be
answered with a line of words if the kernel says that the program reads lines.
"""

import hashlib

from synapsed.model.agent import Activity
from synapsed.model.task import Prompt
from synapsed.profiles.profile import Profile
from synapsed.terminal.look import Look
from synapsed.terminal.prompts import Asked
from synapsed.terminal.snapshot import ScreenSnapshot
from synapsed.terminal.verdict import QUIET_UNKNOWN_S, Verdict, screen_sign, title_sign

UNREADABLE_S = 5.0
"""Seconds after which a screen that is not understood is reported."""

IN_TURN_S = 9.0
"""The same while a turn runs: the program may be thinking. A person gets the report within ten seconds."""

ROWS_MAX = 20
"""Rows of the screen in the report."""


class Unreadable:
    """The state of one terminal. A screen that moves while it waits (a clock) is reported as it was until it rests."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._report: Asked | None = None
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
        """Returns the report on the screen, judged by `verdict`; None if it is understood, or may be soon. `rests`: the
        kernel says that the program does nothing."""
        stuck = verdict.activity in (Activity.UNKNOWN, Activity.WAITING) or verdict.lacks_composer
        lost = stuck and verdict.asked is None
        if not lost:
            self._since = self._report = None
            return None
        if self._since is None:
            self._since = now - (quiet_s if verdict.activity is not Activity.WAITING else 0.0)
        self._patience = IN_TURN_S if in_turn and not (rests or reads_lines) else UNREADABLE_S
        if now - self._since < self._patience and self._report is None:
            return None
        if self._report is None or quiet_s >= QUIET_UNKNOWN_S:
            self._report = _report(screen, reads_lines=reads_lines)
        return self._report

    @property
    def lost(self) -> bool:
        """True if the screen was not understood at the last look."""
        return self._since is not None

    @property
    def due(self) -> float | None:
        """Time at which the result of `look` may change by time alone."""
        if self._since is None or self._report is not None:
            return None
        return self._since + self._patience


def _report(screen: ScreenSnapshot, *, reads_lines: bool) -> Asked:
    rows = [line.rstrip() for line in screen.lines if line.strip()][-ROWS_MAX:]
    text = "\n".join(rows)
    digest = hashlib.sha256(f"screen\0{reads_lines}\0{text}".encode()).hexdigest()[:16]
    return Asked(Prompt(prompt_id=digest, type="screen", prompt=text, own_words=reads_lines), None)


INFERRED = ("composer", "quiet", "kernel")
"""Sources of verdicts that are only inferred: the program itself showed no sign of its status."""

DEFACED_S = 3.0
"""Seconds after which a resting program without a visible composer probably has other output over its screen. Less than
`UNREADABLE_S`: a person is asked only if a redraw does not help."""

DEFACED_HURRY_S = 1.0
"""The same if a message waits in a composer that is not on the screen: it would be reported as undelivered."""


def is_defaced(profile: Profile, look: Look, now: float, *, hurry: bool = False) -> bool:
    """Returns True if a program that draws its composer itself gives no report and shows no composer: a warning that it
    printed, or another program's output, is in its place. A redraw would bring it back. `hurry`: a message was typed in
    part, and the composer does not show it."""
    composer, verdict = profile.composer, look.verdict
    silent = verdict.activity in (Activity.STARTING, Activity.BUSY, Activity.UNKNOWN) and verdict.source in INFERRED
    unseen = hurry and verdict.asked is None and look.composer.state != "draft"
    return (
        composer.line is not None
        and composer.needed
        and (look.screen.alternate or not composer.at_cursor)
        and (silent or look.lost or unseen)
        and not look.turn_open
        and now - look.changed_at >= (DEFACED_HURRY_S if hurry else DEFACED_S)
    ) or _is_garbled(profile, look, now)


def is_as_drawn(look: Look) -> bool:
    """Returns True if the program shows its composer, or a known dialog: its screen is as it drew it."""
    return look.verdict.activity in (Activity.READY, Activity.WAITING) and not look.lost


def _is_garbled(profile: Profile, look: Look, now: float) -> bool:
    """Returns True if the program was asked to stop, shows no work and no composer, and nothing moves: some programs
    corrupt their own screen when they put the text of a stopped message back into the composer, on the main screen
    too."""
    return (
        look.stopping
        and profile.composer.line is not None
        and profile.composer.needed
        and (look.screen.alternate or not profile.composer.at_cursor)
        and look.composer.state == "absent"
        and look.verdict.activity in (Activity.BUSY, Activity.UNKNOWN)
        and title_sign(profile.busy, look.screen) is None
        and screen_sign(profile.busy, look.screen) is None
        and now - look.still_since >= profile.interrupt.still_ms / 1000
    )
