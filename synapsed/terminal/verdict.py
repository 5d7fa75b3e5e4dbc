"""What an agent is doing, judged from facts in the order of evidence. Pure.

The order, strongest first (measured, see docs/profiles.md):

1. a dialog on the visible screen: the program waits for a person, whatever else it says;
2. the program's own status records (OSC 7501), once it has written one in this launch;
3. its side channels: a turn was accepted and has not ended;
4. its title;
5. its own chrome in the bottom rows of the screen (not where status records or an open turn speak);
6. an empty composer: ready;
7. nothing of all this: `unknown` when it is quiet, never `ready`.

An answer that quotes `esc to interrupt` or a dialog is prose: rules 2 to 4 outrank the bottom rows, and dialogs are
matched with the composer gone.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from synapsed.model.agent import Activity
from synapsed.profiles import Profile, Signs
from synapsed.terminal.composer import ComposerState
from synapsed.terminal.prompts import Asked
from synapsed.terminal.screen import ScreenSnapshot

__all__ = ["Observation", "Verdict", "judge", "shows"]

QUIET_UNKNOWN_S = 3.0
"""A program that shows no sign and has been quiet for so long is `unknown`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Everything known of a running program at one moment."""

    screen: ScreenSnapshot
    composer: ComposerState
    asked: Asked | None
    record: Literal["idle", "working", "blocked", "done", "error"] | None
    """State of the root status record, None where there is none."""
    turn_open: str | None
    """The channel that says a turn was accepted and has not ended; None for none."""
    quiet_s: float
    """Since the screen last changed."""
    previous: Activity
    """The last verdict's activity: what is not settled changes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the agent is doing, why that is believed, and whether a message can be typed now (`held` says why not)."""

    activity: Activity
    evidence: str
    asked: Asked | None = None
    settled: bool = False
    """The screen has been quiet for the profile's time."""
    can_receive: bool = False
    held: str | None = None


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


def bottom(screen: ScreenSnapshot, rows: int) -> str:
    """The last `rows` lines of what is visible, blank lines at the end left out."""
    last = next((n for n in range(len(screen.lines), 0, -1) if screen.lines[n - 1].strip()), 0)
    return "\n".join(screen.lines[max(0, last - rows) : last])


def shows(signs: Signs, screen: ScreenSnapshot) -> str | None:
    """The sign of `signs` that `screen` shows as evidence, None for none."""
    if signs.title is not None and _compiled(signs.title).search(screen.title):
        return f"title: {screen.title[:80]}"
    if signs.screen:
        text = bottom(screen, signs.rows)
        for pattern in signs.screen:
            if (match := _compiled(pattern).search(text)) is not None:
                return f"screen: {match.group().strip()[:80]}"
    return None


def judge(profile: Profile, seen: Observation) -> Verdict:
    """The verdict on `seen`."""
    if seen.asked is not None:
        return Verdict(
            activity=Activity.WAITING,
            evidence=f"screen: {seen.asked.prompt.type} prompt",
            asked=seen.asked,
            held="dialog",
        )
    if seen.record == "working":
        return Verdict(activity=Activity.BUSY, evidence="status record: working")
    if seen.record == "blocked":
        return Verdict(activity=Activity.WAITING, evidence="status record: blocked", held="dialog")
    if seen.record is None:
        if seen.turn_open is not None:
            return Verdict(activity=Activity.BUSY, evidence=f"{seen.turn_open}: turn open")
        if (sign := shows(profile.waiting, seen.screen)) is not None:
            return Verdict(activity=Activity.WAITING, evidence=sign, held="dialog")
        if (sign := shows(profile.busy, seen.screen)) is not None:
            return Verdict(activity=Activity.BUSY, evidence=sign)
    return _resting(profile, seen)


def _resting(profile: Profile, seen: Observation) -> Verdict:
    """Nothing says that the program works or asks: is it ready?"""
    spec, composer = profile.composer, seen.composer
    told = f"status record: {seen.record}" if seen.record is not None else None
    settled = seen.quiet_s * 1000 >= profile.ready.quiet_ms
    if spec.line is None:
        sign = told or shows(profile.ready, seen.screen)
        if sign is None:
            return _no_sign(profile, seen)
        return _settling(seen, sign, settled=settled, told=told, can_receive=settled)
    if composer.state == "absent":
        if told is not None:
            return Verdict(activity=Activity.READY, evidence=told, settled=settled, held="no composer on the screen")
        return _no_sign(profile, seen)
    if spec.bracketed_paste and not seen.screen.modes.bracketed_paste:
        return _unless_starting(seen, Activity.BUSY, "screen: input is off")
    if told is None and profile.ready.title and not _compiled(profile.ready.title).search(seen.screen.title):
        return _unless_starting(seen, Activity.BUSY, f"title: {seen.screen.title[:80]}")
    if composer.state == "draft":
        return _settling(seen, told or "screen: draft in the composer", settled=settled, told=told, held="typing")
    return _settling(seen, told or "screen: empty composer", settled=settled, told=told, can_receive=settled)


def _settling(
    seen: Observation,
    evidence: str,
    *,
    settled: bool,
    told: str | None,
    can_receive: bool = False,
    held: str | None = None,
) -> Verdict:
    """Ready, where the program says so or its screen has come to rest; what still moves changes nothing."""
    if settled or told is not None or seen.previous is Activity.READY:
        return Verdict(activity=Activity.READY, evidence=evidence, settled=settled, can_receive=can_receive, held=held)
    return _unless_starting(seen, Activity.BUSY, "screen: settling")


def _no_sign(profile: Profile, seen: Observation) -> Verdict:
    if profile.composer.at_cursor:
        return _unless_starting(seen, Activity.BUSY, "screen: no prompt at the cursor")
    if seen.quiet_s < QUIET_UNKNOWN_S:
        return _unless_starting(seen, Activity.BUSY, "screen: changing")
    return _unless_starting(seen, Activity.UNKNOWN, "screen: quiet, no sign")


def _unless_starting(seen: Observation, activity: Activity, evidence: str) -> Verdict:
    still = seen.previous is Activity.STARTING
    return Verdict(activity=Activity.STARTING if still else activity, evidence=evidence)
