"""How long a program's screen has stood still but for what moves beside its work: what stands below the composer, where
a person's status line is, and numbers that count where they may be of the background. Pure.

It counts where signs of work are known: of another program a clock that runs may be all that shows that it works. So
may numbers be of one whose turn runs, or of which nothing is known to run in the background.
"""

import re

from synapsed.profiles.profile import Profile
from synapsed.terminal.composer import ComposerState, needs_composer
from synapsed.terminal.snapshot import ScreenSnapshot

_NUMBERS = re.compile(r"(?:[ \t]*\d[\d.,:/%]*[ \t]?(?:ms|[smhdkM]\b)?)+")


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
