"""Whether the terminal that a program is seen in is dark or light, told to a program that wants to hear of it (mode
2031). Pure.
"""

from dataclasses import dataclass, field

from synapsed.model.outer_terminal import OuterTerminal, is_light
from synapsed.pty.keyboard import LookNow, Press, Steps
from synapsed.terminal.queries import scheme

COLOR_SCHEME_REPORTS = 2031

_BLACK = (0, 0, 0)
"""What programs are told of a terminal that has not said it."""


@dataclass(slots=True)
class LastSeen:
    """The terminal in which a program was seen last, of all that the daemon runs: the next one that begins is told its
    colours and its cells, because most programs ask once, and before anybody can have attached to them."""

    outer: OuterTerminal = field(default_factory=OuterTerminal)


class Theme:
    """Of one program, which was told of `outer` at first."""

    def __init__(self, outer: OuterTerminal) -> None:
        self._light = is_light(outer.background or _BLACK)

    def changes(self, outer: OuterTerminal) -> Steps[None]:
        """The program is seen in `outer` from now on."""
        background = outer.background or _BLACK
        if is_light(background) is self._light:
            return
        self._light = not self._light
        look = yield LookNow()
        if COLOR_SCHEME_REPORTS in look.screen.modes.dec and is_light(background) is self._light:
            yield Press(scheme(background))
