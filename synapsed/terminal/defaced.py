"""Screens on which a program's own drawing is not to be seen any more, though it would be if it drew again. Pure."""

from synapsed.model.agent import Activity
from synapsed.profiles.profile import Profile
from synapsed.terminal.look import Look
from synapsed.terminal.verdict import screen_sign, title_sign

SILENT = ("composer", "quiet", "kernel")
"""Sources of a verdict that know of nothing that the program shows."""

DEFACED_S = 3.0
"""A program that rests without its composer for so long has probably been written over. Less than
`UNREADABLE_S`: a person is asked only about what another drawing does not mend."""

DEFACED_HURRY_S = 1.0
"""The same where a message waits in the composer that is not to be seen: it would be told as undelivered."""


def is_defaced(profile: Profile, look: Look, now: float, *, hurry: bool = False) -> bool:
    """A program that draws its composer itself says nothing and shows none: a warning that it printed, or another
    program's output, stands where it was or will be. A redraw would bring it back. `hurry`: a message is half typed,
    and not to be seen where it belongs."""
    composer, verdict = profile.composer, look.verdict
    silent = verdict.activity in (Activity.STARTING, Activity.BUSY, Activity.UNKNOWN) and verdict.source in SILENT
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
    """Whether it shows its composer, or a dialog that is understood: its screen is as it drew it."""
    return look.verdict.activity in (Activity.READY, Activity.WAITING) and not look.lost


def _is_garbled(profile: Profile, look: Look, now: float) -> bool:
    """It was asked to stop, shows no work and no composer, and nothing moves: some programs draw over themselves
    when they give a message back, on the main screen too."""
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
