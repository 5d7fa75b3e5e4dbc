"""What a program's screen says to run in its background. Pure."""

import re

from synapsed.profiles.profile import Profile
from synapsed.terminal.composer import ComposerState
from synapsed.terminal.snapshot import ScreenSnapshot

COUNT_MAX = 99
"""A count is believed up to that."""


def shown_background(profile: Profile, screen: ScreenSnapshot, composer: ComposerState) -> tuple[str, ...]:
    """Returns the words for each, by rows below its composer."""
    if not profile.background.rows or composer.row is None:
        return ()
    below = "\n".join(screen.lines[composer.row + 1 :])
    return tuple(word for row in profile.background.rows for found in row.finditer(below) for word in _words(found))


def _words(found: re.Match[str]) -> tuple[str, ...]:
    groups = found.groupdict()
    count, what = groups.get("count"), groups.get("what")
    words = " ".join(what.split()) if what else "task"
    return (words,) * (min(int(count), COUNT_MAX) if count and count.isdecimal() else 1)
