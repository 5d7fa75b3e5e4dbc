"""The terminal modes that programs set, by number."""

from dataclasses import dataclass

__all__ = ["ALTERNATE", "ANSI", "DEC", "DEC_DEFAULT", "Modes"]

ALTERNATE = (1049, 1047, 47)
"""The modes that show the alternate screen, the one programs use first."""

DEC = (
    *(1, 3, 4, 5, 6, 7, 8, 9, 12, 25, 40, 45, 47, 66, 67, 69, 1000, 1002, 1003, 1004, 1005, 1006, 1007),
    *(1015, 1016, 1035, 1036, 1039, 1045, 1047, 1048, 1049, 2004, 2026, 2027, 2031, 2048),
)
"""The DEC private modes this terminal knows."""

DEC_DEFAULT = frozenset({7, 25, 1007, 1035, 1036})
"""Those that are set in a fresh terminal."""

ANSI = (2, 4, 12, 20)
"""The ANSI modes this terminal knows; 12 is set in a fresh one."""

_MOUSE_TRACKING = (1003, 1002, 1000, 9)
_MOUSE_FORMATS = (1016, 1006, 1015, 1005)


@dataclass(frozen=True, slots=True)
class Modes:
    """The modes that are set."""

    dec: frozenset[int] = DEC_DEFAULT
    ansi: frozenset[int] = frozenset({12})

    @property
    def bracketed_paste(self) -> bool:
        """Whether the program wants pastes marked (2004)."""
        return 2004 in self.dec

    @property
    def focus_events(self) -> bool:
        """Whether it wants to hear of focus (1004)."""
        return 1004 in self.dec

    @property
    def application_cursor(self) -> bool:
        """Whether arrow keys are sent as ``ESC O A`` (DECCKM, 1)."""
        return 1 in self.dec

    @property
    def application_keypad(self) -> bool:
        """Whether the keypad sends its own sequences (66)."""
        return 66 in self.dec

    @property
    def synchronized(self) -> bool:
        """Whether the program is in the middle of a frame (2026)."""
        return 2026 in self.dec

    @property
    def mouse(self) -> int:
        """The mouse tracking in force: 9, 1000, 1002 or 1003; 0 for none."""
        return next((number for number in _MOUSE_TRACKING if number in self.dec), 0)

    @property
    def mouse_format(self) -> int:
        """The encoding of mouse reports: 1005, 1006, 1015 or 1016; 0 for the old one."""
        return next((number for number in _MOUSE_FORMATS if number in self.dec), 0)

    def state(self, number: int, *, ansi: bool = False) -> bool | None:
        """Whether a mode is set; None for one that this terminal does not know."""
        known, on = (ANSI, self.ansi) if ansi else (DEC, self.dec)
        return number in on if number in known else None
