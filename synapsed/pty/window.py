"""Sets the size of a program's window, which is that of the attached terminal within a floor and a ceiling, and reports
to the program if that terminal is dark or light.

The drawing of a program in a window as narrow as its prompt cannot be read, by us or by a person. So the window is
never smaller than `COLS_MIN` x `ROWS_MIN`, nor larger than a screen may be (`snapshot.bounded`); a smaller terminal
shows a part of it, a larger one all of it in a corner.

A full-screen program keeps nothing that leaves its screen: an answer that is longer than the window is read without its
beginning. So while no terminal is attached, its window has the profile's `answer.rows`. A viewer that attaches gets a
window of its own size, and it becomes tall again when the last one has left.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from synapsed.model.outer_terminal import OuterTerminal, is_light
from synapsed.profiles.profile import Profile
from synapsed.pty.keyboard import LookNow, Pause, Press, Resize, Steps
from synapsed.terminal import snapshot
from synapsed.terminal.look import Look
from synapsed.terminal.queries import scheme
from synapsed.terminal.unreadable import is_as_drawn, is_defaced

COLOR_SCHEME_REPORTS = 2031

_BLACK = (0, 0, 0)
"""Colour that programs get for a terminal that has not reported its own."""


@dataclass(slots=True)
class LastSeen:
    """The terminal in which a program was seen last, of all that the daemon runs: the next one that begins gets its
    colours and its cells, because most programs ask once, and before any viewer can have attached to them."""

    outer: OuterTerminal = field(default_factory=OuterTerminal)


class Theme:
    """Colours of one program, which got those of `outer` at first."""

    def __init__(self, outer: OuterTerminal) -> None:
        self._light = is_light(outer.background or _BLACK)

    def changes(self, outer: OuterTerminal) -> Steps[None]:
        """Takes `outer` as the terminal in which the program is seen from now on."""
        background = outer.background or _BLACK
        if is_light(background) is self._light:
            return
        self._light = not self._light
        look = yield LookNow()
        if COLOR_SCHEME_REPORTS in look.screen.modes.dec and is_light(background) is self._light:
            yield Press(scheme(background))


COLS_MIN, ROWS_MIN = 20, 5
"""Least size, as of a profile's `cols` and `rows`."""

NUDGE_COLS = 1
"""Columns by which a window is narrower meanwhile: some programs draw again only for another width."""

NUDGE_S = 0.2
"""Seconds for which a window keeps the other size: two changes at once would be one without effect."""

NUDGE_EVERY_S = 30.0
"""Seconds between two such requests at least, to a program that does not redraw its screen."""

SETTLED_S = 10.0
"""Seconds after a request when the screen counts as the program's own drawing: a page that a person opened, or a dialog
that is not understood. It is asked again only when that changes."""


def bounded(cols: int, rows: int) -> tuple[int, int]:
    """Returns the size of a window for a wanted size."""
    return snapshot.bounded(max(cols, COLS_MIN), max(rows, ROWS_MIN))


class Window:
    """The window of one program. `own` is its size while no viewer that types is attached; `attached` is the number of
    attached terminals, `writers` the number of them that may type; `told`: a channel of the program's reports its
    answers."""

    def __init__(
        self,
        profile: Profile,
        *,
        own: tuple[int, int],
        attached: Callable[[], int],
        writers: Callable[[], int],
        told: bool,
    ) -> None:
        self._profile = profile
        self._own = bounded(*own)
        self._attached = attached
        self._writers = writers
        self._rows = profile.answer.rows if profile.answer.mode == "blocks" and not told else 0
        self._stretching = False
        self._nudged_at = 0.0
        self.size = (0, 0)
        """Columns and rows."""

    def resize(self, cols: int, rows: int) -> Steps[None]:
        self.size = bounded(cols, rows)  # first: a redraw that is under way ends with it
        yield Resize(*self.size)

    def give_back(self) -> Steps[None]:
        """Gives the program its own size again, unless a viewer may type. A tall window is its own."""
        cols, rows = self._own
        if not self._writers() and self.size not in (self._own, (cols, self._tall(cols))):
            yield from self.resize(cols, rows)

    def join(self, cols: int, rows: int) -> Steps[None]:
        """Gives a tall window the size of a viewer that is read-only, if no other viewer has one."""
        if 0 < self._tall(self.size[0]) <= self.size[1]:
            yield from self.resize(cols, rows)

    def wants_rows(self, look: Look) -> bool:
        """Returns True if the window is to become tall."""
        shown = look.screen
        short = shown.alternate and shown.rows < self._tall(shown.cols)
        return short and not self._attached() and not self._stretching

    def stretch(self) -> Steps[None]:
        """Makes it tall, unless a viewer has come."""
        self._stretching = True
        try:
            cols, rows = self.size
            if not self._attached() and rows < self._tall(cols):
                yield from self.resize(cols, self._rows)
        finally:
            self._stretching = False

    def _tall(self, cols: int) -> int:
        """Returns the rows of a tall window; 0 if it never becomes tall."""
        return bounded(cols, self._rows)[1] if self._rows else 0

    def may_want_redraw(self, last: Look | None, now: float, *, hurry: bool) -> bool:
        """Returns True if a look is worthwhile: see `wants_redraw`."""
        return now - self._nudged_at >= NUDGE_EVERY_S and (hurry or last is None or not is_as_drawn(last))

    def wants_redraw(self, look: Look, now: float, *, hurry: bool) -> bool:
        """Returns True if the program is to redraw its screen, over which something was written."""
        settled = look.changed_at > self._nudged_at + SETTLED_S
        return settled and is_defaced(self._profile, look, now, hurry=hurry)

    def redraw(self, now: float) -> Steps[None]:
        """Makes the program redraw its screen, in any state: the window gets another size, then its own again."""
        self._nudged_at = now
        cols, rows = self.size
        yield Resize(cols - NUDGE_COLS, rows)
        yield Pause(NUDGE_S)
        yield Resize(*self.size)  # another command may have changed it meanwhile

    def left_in_redraw(self, kept: tuple[int, int] | None) -> bool:
        """Returns True if a daemon that was killed over `redraw` has left the window so. `kept` is its size with the
        screen that was made durable last."""
        cols, rows = self.size
        return kept == (cols + NUDGE_COLS, rows)
