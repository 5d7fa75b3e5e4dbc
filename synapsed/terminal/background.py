"""What a program's screen says to run in its background. Pure."""

import re

from synapsed.profiles.profile import Profile
from synapsed.terminal.composer import ComposerState
from synapsed.terminal.snapshot import ScreenSnapshot

COUNT_MAX = 99
"""A count is believed up to that."""

ROWS_ABOVE = 8
"""Rows above the composer that tell of it, too."""


def shown_background(profile: Profile, screen: ScreenSnapshot, composer: ComposerState) -> tuple[str, ...]:
    """Returns the words for each, by rows around its composer."""
    if not profile.background.rows or composer.row is None:
        return ()
    around = "\n".join(screen.lines[max(0, composer.row - ROWS_ABOVE) :])
    return tuple(word for row in profile.background.rows for found in row.finditer(around) for word in _words(found))


def _words(found: re.Match[str]) -> tuple[str, ...]:
    groups = found.groupdict()
    count, what = groups.get("count"), groups.get("what")
    words = " ".join(what.split()) if what else "task"
    return (words,) * (min(int(count), COUNT_MAX) if count and count.isdecimal() else 1)
