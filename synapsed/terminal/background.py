"""Finds the background tasks of a program, and measures how long its screen has stood still except beside its work:
below the composer, where a person's status line is, and in numbers that may count for the background. Pure.

This stillness is used only for programs with known signs of work: for another program a running clock may be the only
sign. Numbers that count may be the only sign, too, if a turn runs, or if no background task is known.
"""

import re
from typing import Any

from synapsed.profiles.profile import Profile
from synapsed.shared.regex import regex
from synapsed.terminal.composer import ComposerState, needs_composer
from synapsed.terminal.snapshot import ScreenSnapshot

COUNT_MAX = 99
"""Highest count that is believed."""

ROWS_ABOVE = 8
"""Rows above the composer that may report background tasks, too."""

_NUMBERS = regex(r"(?:[ \t]*\d[\d.,:/%]*[ \t]?(?:ms|[smhdkM]\b)?)+")


class BackgroundWork:
    """Background tasks, in the program's words: as a channel has reported them, else as its rows show them."""

    def __init__(self, profile: Profile, told: Any = ()) -> None:
        """`told` is the last report at the time of a checkpoint."""
        self._rows = profile.background.rows
        self.told = tuple(one for one in told if isinstance(one, str)) if isinstance(told, list | tuple) else ()
        """Last report of a side channel."""

    def names(self, screen: ScreenSnapshot, composer: ComposerState, parts: tuple[str, ...] | None) -> tuple[str, ...]:
        """Returns the tasks. `parts` are those of the program's status records; None if it writes no records."""
        return (self.told if parts is None else parts) or self._shown(screen, composer)

    def _shown(self, screen: ScreenSnapshot, composer: ComposerState) -> tuple[str, ...]:
        """Returns the tasks in rows around the composer."""
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
    """The stillness of the screen in one launch. Times are monotonic seconds."""

    def __init__(self, profile: Profile) -> None:
        self._wanted = profile.busy.known and needs_composer(profile.composer)
        self._screen: ScreenSnapshot | None = None
        self._shown: tuple[bool, str] = (False, "")
        self.since = 0.0
        """Time of the last movement that counts, as of the last `look`."""

    def moved(self, now: float) -> None:
        """Notes that the program has reported something that it may draw only now."""
        self.since = now

    def look(self, screen: ScreenSnapshot, composer: ComposerState, changed_at: float, *, beside: bool) -> None:
        """Takes the screen, which changed last at `changed_at`, with its `composer`; `beside`: numbers may be beside
        the program's work."""
        if not self._wanted or composer.row is None:
            self._screen, self._shown, self.since = None, (False, ""), changed_at
        elif screen is not self._screen or beside is not self._shown[0]:
            above = "\n".join(screen.lines[: composer.row + 1])
            shown = beside, _NUMBERS.sub("#", above) if beside else above
            if shown != self._shown:
                self.since = changed_at
            self._screen, self._shown = screen, shown
