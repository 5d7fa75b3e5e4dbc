"""The evidence for an agent's state: every channel, strongest first, with its report and its time. Built from the same
observation as the verdict (`verdict`), only on request."""

from collections.abc import Callable
from dataclasses import dataclass

from synapsed.clock import iso
from synapsed.model.agent import Testimony
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import Signs
from synapsed.shared.counts import counted
from synapsed.terminal.composer import cursor_line
from synapsed.terminal.verdict import (
    Observation,
    Verdict,
    doubt,
    edits_no_line,
    lost_end,
    progress_left_behind,
    progress_sign,
    quoted,
    screen_sign,
    title_left_behind,
    title_sign,
)

KERNEL = {
    "reads": "the program is blocked reading a line",
    "polls": "the program waits for one of several things, maybe for a line",
    "rests": "the program has the terminal for itself, and rests",
    "works": "the program works: it sleeps, computes or waits for a child",
    None: "not asked",
}
"""Texts about a line-oriented program that is quiet."""


@dataclass(frozen=True, slots=True)
class Witness:
    """One channel's report. `since` is monotonic seconds, None if unknown; `decides`: the verdict follows it."""

    channel: str
    says: str
    since: float | None
    decides: bool

    def testify(self, began: float) -> Testimony:
        """Returns the report for clients; `began` is the wall clock's time when the monotonic one began."""
        since = None if self.since is None else iso(began + self.since)
        return Testimony(channel=self.channel, says=self.says, since=since, decides=self.decides)


class Since:
    """The time since which each channel has its present report."""

    def __init__(self) -> None:
        self._said: dict[str, tuple[object, float]] = {}

    def note(self, channel: str, says: object, now: float) -> None:
        known = self._said.get(channel)
        if known is None or known[0] != says:
            self._said[channel] = (says, now)

    def at(self, channel: str) -> float | None:
        said = self._said.get(channel)
        return said[1] if said is not None else None


def explain(profile: Profile, seen: Observation, verdict: Verdict, since: Since, now: float) -> list[Witness]:
    side = seen.turn_open or next(iter(profile.channels), "side channel")
    turn = "a turn is open" if seen.turn_open else "no turn is open" if profile.channels else "no turn is known"
    if lost_end(profile, seen):
        turn += ", not believed: its end must have been lost"
    prompt = seen.asked.prompt if seen.asked else None
    says = {
        "dialog": f"{prompt.type}: {prompt.prompt.replace('\n', ' / ')[:200]}" if prompt else "none",
        "status record": _record(profile, seen),
        side: turn,
        "title": _title(profile, seen),
        "progress": _progress(profile, seen),
        "screen": _screen(profile, seen),
        "composer": _composer(profile, seen),
        "kernel": KERNEL[seen.kernel],
        "quiet": f"nothing has moved for {seen.quiet_s:.1f} s",
    }
    began = {"quiet": now - seen.quiet_s, side: since.at("turn")}
    return [
        Witness(channel, text, began.get(channel, since.at(channel)), channel == verdict.source)
        for channel, text in says.items()
    ]


def _record(profile: Profile, seen: Observation) -> str:
    if not profile.status_records:
        return "not listened to"
    if seen.record is None:
        return "none"
    reason = doubt(profile, seen)
    return seen.record if reason is None else f"{seen.record}, not believed: {reason}"


def _sign(profile: Profile, look: Callable[[Signs], str | None], said: str = "") -> str:
    """Returns a channel's report (if `said` is empty, the sign that `look` finds), with the state it is a sign of."""
    for state, signs in (("waiting", profile.waiting), ("busy", profile.busy), ("ready", profile.ready)):
        if (sign := look(signs)) is not None:
            return f"{said or repr(sign.partition(': ')[2])}, a sign of {state}"
    return f"{said}, no sign" if said else "no sign"


def _screen(profile: Profile, seen: Observation) -> str:
    told = _sign(profile, lambda signs: screen_sign(signs, seen.screen))
    return f"{told}: it is quoted, for nothing moves" if quoted(profile, seen) else told


def _title(profile: Profile, seen: Observation) -> str:
    told = _sign(profile, lambda signs: title_sign(signs, seen.screen), repr(seen.screen.title.strip()[:80]))
    return f"{told}: it was left behind" if title_left_behind(profile, seen) else told


def _progress(profile: Profile, seen: Observation) -> str:
    if seen.progress is None:
        return "none"
    told = _sign(profile, lambda signs: progress_sign(signs, seen), seen.progress)
    return f"{told}: it was left behind" if progress_left_behind(seen) else told


def _composer(profile: Profile, seen: Observation) -> str:
    spec, composer = profile.composer, seen.composer
    if spec.line is None:
        return "none is known"
    if spec.usual and composer.state == "absent":
        return f"{composer.why}: {cursor_line(seen.screen)[1].rstrip()[:80]!r}"
    if composer.state == "absent":
        return (
            f"not at the cursor: {cursor_line(seen.screen)[1].rstrip()[:80]!r}"
            if spec.at_cursor
            else "not on the screen"
        )
    off = (spec.bracketed_paste and not seen.screen.modes.bracketed_paste) or edits_no_line(seen)
    text = (
        "empty" if composer.state == "empty" else f"a draft of {counted(len(composer.text), 'character')} in its line"
    )
    why = f" ({composer.why})" if composer.why else ""
    return f"{text}, but input is off" if off else f"{text}{why}"
