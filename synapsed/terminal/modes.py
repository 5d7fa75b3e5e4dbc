"""The terminal modes that programs set, by number."""

from dataclasses import dataclass

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
    def synchronized(self) -> bool:
        """Whether the program is in the middle of a frame (2026)."""
        return 2026 in self.dec

    def state(self, number: int, *, ansi: bool = False) -> bool | None:
        """Whether a mode is set; None for one that this terminal does not know."""
        known, on = (ANSI, self.ansi) if ansi else (DEC, self.dec)
        return number in on if number in known else None
