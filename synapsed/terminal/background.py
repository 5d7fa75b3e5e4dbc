"""Tells what runs in a program's background, and how long its screen has stood still but for what is beside its work:
what stands below the composer, where a person's status line is, and numbers that count where they may be of the
background. Pure.

Stillness counts where signs of work are known: of another program a clock that runs may be all that shows that it
works. So may numbers be of one whose turn runs, or of which nothing is known to run in the background.
"""

import re
from typing import Any

from synapsed.profiles.profile import Profile
from synapsed.terminal.composer import ComposerState, needs_composer
from synapsed.terminal.snapshot import ScreenSnapshot

COUNT_MAX = 99
"""A count is believed up to that."""

ROWS_ABOVE = 8
"""Rows above the composer that tell of it, too."""

_NUMBERS = re.compile(r"(?:[ \t]*\d[\d.,:/%]*[ \t]?(?:ms|[smhdkM]\b)?)+")


class BackgroundWork:
    """What runs there, in the program's words for each: as a channel has told, else as its rows show."""

    def __init__(self, profile: Profile, told: Any = ()) -> None:
        """`told`: what was told when a checkpoint was made."""
        self._rows = profile.background.rows
        self.told = tuple(one for one in told if isinstance(one, str)) if isinstance(told, list | tuple) else ()
        """What a side channel told last."""

    def names(self, screen: ScreenSnapshot, composer: ComposerState, parts: tuple[str, ...] | None) -> tuple[str, ...]:
        """`parts` are those of the program's status record; None where it writes none."""
        return (self.told if parts is None else parts) or self._shown(screen, composer)

    def _shown(self, screen: ScreenSnapshot, composer: ComposerState) -> tuple[str, ...]:
        """By rows around the composer."""
        if not self._rows or composer.row is None:
            return ()
        around = "\n".join(screen.lines[max(0, composer.row - ROWS_ABOVE) :])
        return tuple(word for row in self._rows for found in row.finditer(around) for word in _words(found))


def _words(found: re.Match[str]) -> tuple[str, ...]:
    groups = found.groupdict()
    count, what = groups.get("count"), groups.get("what")
    words = " ".join(what.split()) if what else "task"
    return (words,) * (min(int(count), COUNT_MAX) if count and count.isdecimal() else 1)


class Calm:
    """Of one launch. Times are monotonic seconds."""

    def __init__(self, profile: Profile) -> None:
        self._wanted = profile.busy.known and needs_composer(profile.composer)
        self._screen: ScreenSnapshot | None = None
        self._shown: tuple[bool, str] = (False, "")
        self.since = 0.0
        """When more than that moved; as of the last `look`."""

    def moved(self, now: float) -> None:
        """The program has told something that it may draw only now."""
        self.since = now

    def look(self, screen: ScreenSnapshot, composer: ComposerState, changed_at: float, *, beside: bool) -> None:
        """The screen, which changed last at `changed_at`, is that; `composer` is what was found on it; numbers may be
        `beside` the program's work."""
        if not self._wanted or composer.row is None:
            self._screen, self._shown, self.since = None, (False, ""), changed_at
        elif screen is not self._screen or beside is not self._shown[0]:
            above = "\n".join(screen.lines[: composer.row + 1])
            shown = beside, _NUMBERS.sub("#", above) if beside else above
            if shown != self._shown:
                self.since = changed_at
            self._screen, self._shown = screen, shown
