"""The verdict on an agent's activity at one moment, judged from facts in the order of evidence; `synapsed.pty.turn`
decides the consequence for its turn. Pure.

The order, strongest first (measured, see docs/profiles.md); `Verdict.source` names the channel that decided:

==================  ==============================================================================================
source              says
==================  ==============================================================================================
``dialog``          a dialog on the visible screen, in its composer's place: the program waits for a person, even if it
                    says something else
``status record``   the program's own status record (OSC 7501), where it is believed
side channel        a turn was accepted and has not ended; asked where no status record speaks
``title``           signs of waiting, of work
``progress``        the same, by its progress bar (OSC 9;4), unless the bar was left behind: a composer is shown, and
                    nothing has moved for `STALE_S`, or the kernel says that a line is read
``screen``          signs of waiting, of work in the program's own chrome, in the bottom rows
``composer``        it is shown and empty: ready (a prompt at the cursor: unless the kernel says that it was printed)
``kernel``          a line-oriented program without a known prompt reads its terminal, or rests: `unknown`; so is one
                    that has never been ready, and may be reading
``quiet``           there is no other sign: `unknown` when the screen is quiet, never `ready`
==================  ==============================================================================================

An answer that quotes `esc to interrupt` or a dialog is prose: stronger channels outrank the bottom rows, and beside a
composer a dialog is only shown.

A status record is untrusted: a tool's output can hold one, as can a file that is shown. So these are not believed
(`doubt`), and the channels below decide as if there were no record:

==========================  ======================================================================================
record                      is not believed while
==========================  ======================================================================================
idle, done, error           a side channel has a turn open and the program's own chrome shows that it works (a title;
                            or the bottom rows, and something moved within `STALE_S`)
working, blocked            no side channel has a turn open, the program shows no sign of work though it has such
                            signs (or the kernel says that a line is read), its composer is shown, and nothing has
                            moved for `STALE_S`
working                     something runs in the background, no side channel has a turn open, the program shows no
                            sign of work though it has such signs, its composer is shown, and its screen is at rest
==========================  ======================================================================================

The first row keeps a printed `idle` from ending a turn or letting a message into one; the second keeps a printed
`working` from blocking delivery for ever. A program without signs of its own that reads no line is always believed: a
long silence is then work. In the case of the third row a title of work belongs to the background, too. With a composer,
numbers that count and the text below the composer do not count as movement (`background`).

A sign in the bottom rows is taken for words of an answer (`quoted`) if the program's channels report no open turn, its
composer is shown, and nothing has moved for `STALE_S`; unless the program reports that it has put off our message.

The bottom rows from before a change of the window's size count until the program has drawn again, at most `STALE_S`: a
narrower window may cut a sign off or take it out of those rows, and on a busy machine a program draws late.

A title of work was left behind if the program has signs of work on its screen too, shows none of them, and nothing has
moved for `STALE_S`: with its composer it rests, without one it may ask something that cannot be read.

A side channel's open turn is not believed for ever against the screen either (`lost_end`). If the composer is shown,
nothing on the screen or in the title moves, and the program shows no sign of work:

==============================================================  ==================================================
the turn                                                        counts as over after
==============================================================  ==================================================
was asked to stop                                               the profile's `interrupt.still_ms`
has an empty composer, and the program has signs of work, or    `STALE_S`
a title that says that it is ready
has an empty composer, and the program has no such signs; or    `LOST_S`
has a draft in it: some programs hide their signs beside one
==============================================================  ==================================================

A sign of work that stands still counts no longer than `STALE_S` where the turn was asked to stop, and a progress bar no
longer than `interrupt.still_ms`. A lost end stays lost until the channel reports another turn: a row that changes does
not open the turn again. An open turn is also not believed while something that cannot be read stands in the composer's
place (`covered`).
"""

from dataclasses import dataclass, replace
from typing import Literal

from synapsed.model.agent import Activity
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import BusySigns, Signs
from synapsed.terminal.composer import ComposerState, needs_composer
from synapsed.terminal.line_prompts.evidence import Word
from synapsed.terminal.prompts import Asked
from synapsed.terminal.snapshot import ScreenSnapshot

QUIET_UNKNOWN_S = 3.0
"""Seconds of silence after which a program without signs is `unknown`."""

START_UNKNOWN_S = 5.0
"""Seconds of silence after which a program is `unknown` that has shown something and has not been ready yet."""

FULL_SCREEN_S = 5.0
FULL_SCREEN_SLOW_S = 25.0
"""Seconds after which a program is `unknown` that has the screen for itself, moves, and has not been ready yet: a login
screen with a spinner, a monitor. The second is for a program with a composer of its own, which may be loading."""

HIDDEN_CURSOR_S = 60.0
"""The same seconds for a program that only hides the cursor, as installers and downloads do."""

CALM_S = QUIET_UNKNOWN_S
"""Seconds after which a screen with constant movement counts as at rest if nothing else has moved."""

BACKGROUND_S = 1.5
"""Seconds without movement after which work is taken for the background of a program at its composer."""

STALE_S = 10.0
"""Seconds within which a working program moves something on its screen: a spinner, a clock."""


LOST_S = 120.0
"""Seconds after which a turn's end counts as lost, for a program without signs of work. It may think for long without a
word; but to think for so long, and move nothing on the screen, is less likely than a lost end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """All known facts of a running program at one moment."""

    screen: ScreenSnapshot
    composer: ComposerState
    asked: Asked | None
    record: Literal["idle", "working", "blocked", "done", "error"] | None
    """State of the root status record, None if there is no record."""
    progress: str | None = None
    """State of the progress bar, in the words of a profile; None while there is no bar."""
    turn_open: str | None
    """The channel that says a turn was accepted and has not ended; None if no channel says so."""
    quiet_s: float
    """Seconds since the screen last changed."""
    still_s: float = 0.0
    """Seconds since the screen or the title last changed, and (`stopping`) since the turn was asked to stop."""
    calm_s: float = 0.0
    """Seconds since the screen last changed, without numbers that count and the text below the composer, where a
    person's status line is; same as `quiet_s` if no sign of work is known, or no composer is shown."""
    calm_still_s: float = 0.0
    """The same seconds as `calm_s`, but changes of the title and `stopping` count, as in `still_s`."""
    background: tuple[str, ...] = ()
    """Background tasks that the program reports."""
    stopping: bool = False
    """The turn that runs was asked to stop."""
    lost: bool = False
    """The end of the open turn was found to be lost before."""
    put_off: bool = False
    """The program shows that it took the message that was submitted last, and has not begun with it."""
    undrawn: str | None = None
    """The sign of work in the bottom rows when the window got another size, as evidence, until the program draws again:
    the present screen is only the terminal's change of an older one."""
    previous: Activity
    """The last verdict's activity: an unsettled screen changes nothing."""
    kernel: Word | None = None
    """The kernel's report on the program in the terminal's foreground: it is blocked reading a line, it waits for one
    of several things, it rests and has the terminal for itself, or it works; None if the kernel was not asked, or does
    not report it."""
    shown_s: float = 0.0
    """Seconds since the screen first had text, in this launch."""
    given_back: Literal["program", "command"] | None = None
    """A message was typed at the program's prompt, and since then the terminal has been in line mode: `program`: for
    the program itself, which had a line editor running; `command`: for a program that it has started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Activity of the agent, and the reason."""

    activity: Activity
    evidence: str
    source: str
    """The channel that decided (see above); for a side channel its name."""
    asked: Asked | None = None
    settled: bool = False
    """The screen has been quiet for the profile's time."""
    lacks_composer: bool = False
    """The program reports rest, and the composer that it needs for a message is not on the screen."""


def bottom(screen: ScreenSnapshot, rows: int) -> str:
    """Returns the last `rows` lines of the visible screen, without blank lines at the end. Wrapped rows are one line: a
    narrower window wraps its content, and text low on the screen stays there."""
    return "\n".join(screen.text().rstrip().split("\n")[-rows:])


def title_sign(signs: Signs, screen: ScreenSnapshot) -> str | None:
    if signs.title is not None and signs.title.search(screen.title):
        return f"title: {screen.title.strip()[:80]}"
    return None


def screen_sign(signs: Signs, screen: ScreenSnapshot) -> str | None:
    """Returns the sign of `signs` in the bottom rows, as evidence."""
    if signs.screen:
        text = bottom(screen, signs.rows)
        for pattern in signs.screen:
            if (match := pattern.search(text)) is not None:
                return f"screen: {(match.groupdict().get('sign') or match.group()).strip()[:80]}"
    return None


def progress_sign(signs: Signs, seen: Observation) -> str | None:
    if seen.progress not in signs.progress or progress_left_behind(seen):
        return None
    return f"progress: {seen.progress}"


def progress_left_behind(seen: Observation) -> bool:
    """Returns True if the program that showed the progress has ended without removing it: the program reads a line, or
    nothing moves."""
    if seen.progress is None or seen.composer.state == "absent":
        return False
    return seen.kernel == "reads" or seen.quiet_s >= STALE_S


def turning_points(profile: Profile, changed_at: float, still_since: float) -> list[float]:
    """Returns the times at which time alone may change the judgement of an unchanged screen; see `Observation`."""
    quiet = (profile.ready.quiet_ms / 1000, BACKGROUND_S, QUIET_UNKNOWN_S, START_UNKNOWN_S, STALE_S)
    still = (profile.interrupt.still_ms / 1000, STALE_S, LOST_S)
    return [*(changed_at + wait for wait in quiet), *(still_since + wait for wait in still)]


def shows(signs: Signs, seen: Observation) -> str | None:
    return title_sign(signs, seen.screen) or progress_sign(signs, seen) or screen_sign(signs, seen.screen)


def doubt(profile: Profile, seen: Observation) -> str | None:
    """Returns the reason why the status record is not believed; None if it is believed, or there is no record."""
    open_ = None if lost_end(profile, seen) else seen.turn_open
    match seen.record:
        case "idle" | "done" | "error" if open_ is not None:
            sign = title_sign(profile.busy, seen.screen) or progress_sign(profile.busy, seen)
            if sign is None and seen.quiet_s < STALE_S:
                sign = screen_sign(profile.busy, seen.screen)
            return None if sign is None else f"{open_} has a turn open, and {sign}"
        case "working" | "blocked" if open_ is None:
            if seen.composer.state == "absent" or _at_work(profile, seen):
                return None
            if not has_signs(profile) and seen.kernel != "reads":
                return None
            if seen.record == "working" and in_background(profile, seen):
                return f"{len(seen.background)} in the background, and no other sign of it"
            if stopped(profile, seen) or seen.calm_s >= STALE_S:
                return f"nothing has moved for {seen.calm_s:.0f} s, and there is no sign of it"
    return None


def in_background(profile: Profile, seen: Observation) -> bool:
    """Returns True if the work is in the background: no side channel has a turn open, and the screen has come to rest
    at the composer, for longer than a spinner stands still on a busy machine."""
    resting = seen.composer.state != "absent" and (seen.quiet_s >= BACKGROUND_S or seen.calm_s >= CALM_S)
    return bool(seen.background) and seen.turn_open is None and resting and _settled(profile, seen)


def _settled(profile: Profile, seen: Observation) -> bool:
    """Returns True if the screen rests, or everything but the parts beside the work has stood still for `CALM_S`."""
    return seen.quiet_s * 1000 >= profile.ready.quiet_ms or seen.calm_s >= CALM_S


def has_signs(profile: Profile) -> bool:
    """Returns True if the program shows its work, in its title or on its screen."""
    return profile.busy.title is not None or bool(profile.busy.screen)


def working(profile: Profile, seen: Observation) -> str | None:
    """Returns the present sign of work, or the one from before a change of the window's size, as evidence. Returns None
    if there is no sign, if it is a title that was left behind, or if an answer quotes it."""
    sign = shows(profile.busy, seen)
    if sign is None and seen.quiet_s < STALE_S:
        return seen.undrawn
    if sign is None or not (title_left_behind(profile, seen) or quoted(profile, seen)):
        return sign
    return progress_sign(profile.busy, seen)


def quoted(profile: Profile, seen: Observation) -> bool:
    """Returns True if the sign of work in the bottom rows is the only one, and the program's channels have reported
    rest: a real sign would move. The sign counts if a status record says the same."""
    signs = profile.busy
    return (
        bool(profile.channels)
        and seen.turn_open is None
        and not seen.put_off
        and seen.record not in ("working", "blocked")
        and seen.composer.state != "absent"
        and seen.still_s >= STALE_S
        and screen_sign(signs, seen.screen) is not None
        and title_sign(signs, seen.screen) is None
    )


def title_left_behind(profile: Profile, seen: Observation) -> bool:
    """Returns True if the title says that the program works, and its screen, which would show it too, is at rest."""
    signs = profile.busy
    return (
        bool(signs.screen)
        and title_sign(signs, seen.screen) is not None
        and screen_sign(signs, seen.screen) is None
        and (seen.calm_still_s >= STALE_S or in_background(profile, seen))
    )


def covered(profile: Profile, seen: Observation) -> bool:
    """Returns True if a turn is open, and an unreadable text stands in the composer's place: the program has signs of
    work and shows none, and nothing has moved for `STALE_S`."""
    return (
        seen.composer.state == "absent"
        and needs_composer(profile.composer)
        and profile.busy.known
        and seen.quiet_s >= STALE_S
        and working(profile, seen) is None
    )


def _at_work(profile: Profile, seen: Observation) -> str | None:
    return working(profile, seen) or shows(profile.waiting, seen)


def stopped(profile: Profile, seen: Observation) -> bool:
    """Returns True if the turn was asked to stop, and the screen shows that it has stopped, in spite of other signs. A
    progress bar at a composer does not count then: a killed program has not removed it."""
    if not seen.stopping or seen.asked is not None or seen.composer.state == "absent" or edits_no_line(seen):
        return False
    if seen.calm_still_s < profile.interrupt.still_ms / 1000 or shows(profile.waiting, seen) is not None:
        return False
    sign = working(profile, seen)
    return sign is None or _source(sign) == "progress" or seen.still_s >= STALE_S


def lost_end(profile: Profile, seen: Observation) -> bool:
    """Returns True if the open turn of a side channel is over, and no channel has reported its end."""
    if seen.turn_open is None:
        return False
    if seen.lost or stopped(profile, seen):
        return True
    if seen.composer.state == "absent" or seen.calm_still_s < STALE_S or _at_work(profile, seen) is not None:
        return False
    told = has_signs(profile) or title_sign(profile.ready, seen.screen) is not None
    return (told and seen.composer.state == "empty") or seen.calm_still_s >= LOST_S


def judge(profile: Profile, seen: Observation) -> Verdict:
    verdict = _judge(profile, seen)
    if verdict.activity is Activity.BUSY and (counted := _retries(profile.busy, seen.screen)) is not None:
        return replace(verdict, evidence=f"{verdict.evidence}; {counted}")
    return verdict


def _retries(signs: BusySigns, screen: ScreenSnapshot) -> str | None:
    """Returns the number of the program's retries, in its words."""
    text = screen.text() if signs.retries else ""
    found = next(filter(None, (pattern.search(text) for pattern in signs.retries)), None)
    return (found.groupdict().get("count") or found.group()).strip()[:80] if found is not None else None


def _judge(profile: Profile, seen: Observation) -> Verdict:
    if seen.asked is not None:
        return Verdict(
            activity=Activity.WAITING,
            evidence=f"screen: {seen.asked.prompt.type} prompt",
            source="dialog",
            asked=seen.asked,
        )
    record = seen.record if doubt(profile, seen) is None else None
    if record in ("working", "blocked") and stopped(profile, seen):
        record = None
    if record == "working":
        return Verdict(activity=Activity.BUSY, evidence="status record: working", source="status record")
    if record == "blocked":
        evidence = "status record: blocked"
        return Verdict(activity=Activity.WAITING, evidence=evidence, source="status record")
    if record is None:
        if seen.turn_open is not None and not lost_end(profile, seen) and not covered(profile, seen):
            evidence = f"{seen.turn_open}: turn open"
            return Verdict(activity=Activity.BUSY, evidence=evidence, source=seen.turn_open)
        if (sign := shows(profile.waiting, seen)) is not None:
            return Verdict(activity=Activity.WAITING, evidence=sign, source=_source(sign))
        if (sign := working(profile, seen)) is not None and not stopped(profile, seen):
            return Verdict(activity=Activity.BUSY, evidence=sign, source=_source(sign))
    return _resting(profile, seen, record)


def _source(evidence: str) -> str:
    return evidence.partition(":")[0]


def _resting(profile: Profile, seen: Observation, record: str | None) -> Verdict:
    """Returns the verdict on a program without signs of work or of a question: ready or not."""
    spec, composer = profile.composer, seen.composer
    told = f"status record: {record}" if record is not None else None
    settled = _settled(profile, seen)
    if spec.line is None:
        sign = told or shows(profile.ready, seen)
        if sign is None:
            return _no_sign(profile, seen)
        return _settling(profile, seen, sign, settled=settled, told=told)
    if composer.state == "absent":
        if told is None:
            return _no_sign(profile, seen)
        return _settling(profile, seen, told, settled=settled, told=told, lacks_composer=spec.needed)
    if (reason := _not_yet(profile, seen, told)) is not None:
        if edits_no_line(seen) and seen.quiet_s >= QUIET_UNKNOWN_S and seen.kernel == "reads":
            return _by_kernel(profile, seen)
        return _unless_starting(profile, seen, Activity.BUSY, reason)
    evidence = "composer: a draft in it" if composer.state == "draft" else "composer: empty"
    return _settling(profile, seen, told or evidence, settled=settled, told=told)


def _not_yet(profile: Profile, seen: Observation, told: str | None) -> str | None:
    """Returns the reason why a program whose composer is shown takes no input yet; None if it does."""
    if profile.composer.bracketed_paste and not seen.screen.modes.bracketed_paste:
        return "screen: input is off"
    if edits_no_line(seen):
        return "composer: printed, no line editor is up"
    if told is None and profile.ready.title and not profile.ready.title.search(seen.screen.title):
        return f"title: {seen.screen.title.strip()[:80]}"
    if seen.previous is Activity.STARTING and seen.quiet_s < QUIET_UNKNOWN_S:
        text = "\n".join(seen.screen.lines)
        missing = next((first for first in profile.ready.first if not first.search(text)), None)
        return None if missing is None else f"screen: not yet {missing.pattern}"
    return None


def edits_no_line(seen: Observation) -> bool:
    """Returns True if the text at the cursor is no prompt: a line editor that shows its prompt would take keys from the
    terminal. A program that was started may have a prompt without an editor, which is believed after a while."""
    return seen.given_back == "program" or (seen.given_back == "command" and seen.quiet_s < STALE_S)


def _settling(
    profile: Profile, seen: Observation, evidence: str, *, settled: bool, told: str | None, lacks_composer: bool = False
) -> Verdict:
    """Returns a ready verdict if the program says so or its screen has come to rest; a moving one changes nothing."""
    if settled or told is not None or seen.previous is Activity.READY:
        return Verdict(
            activity=Activity.READY,
            evidence=evidence,
            source=_source(evidence),
            settled=settled,
            lacks_composer=lacks_composer,
        )
    return _unless_starting(profile, seen, Activity.BUSY, "quiet: not yet")


def _no_sign(profile: Profile, seen: Observation) -> Verdict:
    if seen.quiet_s < QUIET_UNKNOWN_S:
        moves = f"composer: {_no_prompt(seen)}" if profile.composer.at_cursor else "quiet: the screen changes"
        return _unless_starting(profile, seen, Activity.BUSY, moves)
    if profile.composer.at_cursor:
        return _by_kernel(profile, seen)
    return _unknown(seen, "quiet: no sign of anything")


def _by_kernel(profile: Profile, seen: Observation) -> Verdict:
    """Returns the verdict on a line-oriented program that shows no prompt, which may work in silence for hours: the
    kernel decides."""
    match seen.kernel:
        case "reads":
            return _unknown(seen, f"kernel: it reads a line, and shows no prompt that is known{_because(seen)}")
        case "polls" if seen.previous is Activity.STARTING:
            return _unknown(seen, f"kernel: it waits, maybe for a line{_because(seen)}")
        case "rests":
            return _unknown(seen, f"kernel: it has the terminal for itself, and rests{_because(seen)}")
    return _unless_starting(profile, seen, Activity.BUSY, f"composer: {_no_prompt(seen)}")


def _because(seen: Observation) -> str:
    return f" ({seen.composer.why})" if seen.composer.why else ""


def _no_prompt(seen: Observation) -> str:
    return seen.composer.why or "no prompt at the cursor"


def _unknown(seen: Observation, evidence: str) -> Verdict:
    """Returns an unknown verdict, or `starting` while a program that starts shows nothing."""
    slow = seen.quiet_s < START_UNKNOWN_S or not any(line.strip() for line in seen.screen.lines)
    if seen.previous is Activity.STARTING and slow:
        return Verdict(activity=Activity.STARTING, evidence=evidence, source=_source(evidence))
    return Verdict(activity=Activity.UNKNOWN, evidence=evidence, source=_source(evidence))


def never_starts(profile: Profile, screen: ScreenSnapshot) -> float | None:
    """Returns for how long a program that shows `screen` may be starting; None for one that prints line by line."""
    if screen.alternate:
        return FULL_SCREEN_SLOW_S if needs_composer(profile.composer) else FULL_SCREEN_S
    return None if screen.cursor_visible else HIDDEN_CURSOR_S


def _unless_starting(profile: Profile, seen: Observation, activity: Activity, evidence: str) -> Verdict:
    still = seen.previous is Activity.STARTING
    patience = never_starts(profile, seen.screen)
    if still and patience is not None and seen.shown_s >= patience:
        evidence = "quiet: it moves, and has never been ready"
        return Verdict(activity=Activity.UNKNOWN, evidence=evidence, source=_source(evidence))
    return Verdict(activity=Activity.STARTING if still else activity, evidence=evidence, source=_source(evidence))
