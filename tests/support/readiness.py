"""Whether a message may be typed into what a screen shows, by the table that the links ask."""

from synapsed.pty.readiness import Moment, obstacle
from synapsed.terminal.look import Look

__all__ = ["held", "receives"]


def receives(look: Look) -> bool:
    return obstacle(Moment(look=look)) is None


def held(look: Look) -> str | None:
    """The word that people are shown."""
    found = obstacle(Moment(look=look))
    return found.held if found is not None else None
