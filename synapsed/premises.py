"""What a daemon stands on, its folder of state, its database and its control socket: whether it was taken away.

A file that is removed while it is open goes on for whoever has it open, and nobody else finds it: all that is written
from then on would be gone with the process, without a word.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from synapsed.paths import Paths

STATE, DATABASE, CONTROL_SOCKET = "state", "database", "control socket"


class Premises:
    def __init__(self, paths: Paths) -> None:
        """They are all there now."""
        self._places: Mapping[str, Path] = {
            STATE: paths.state,
            DATABASE: paths.database,
            CONTROL_SOCKET: paths.control_socket,
        }
        self._known = {name: _identity(place) for name, place in self._places.items()}

    def look(self) -> dict[str, Path]:
        """What is gone, or another one, since the last look, by name; blocks for a moment. It counts as known then."""
        lost = {}
        for name, place in self._places.items():
            now = _identity(place)
            if now != self._known[name]:
                self._known[name] = now
                if now is None or name != CONTROL_SOCKET:
                    lost[name] = place
        return lost

    def made_again(self) -> None:
        """What is there now is ours."""
        self._known = {name: _identity(place) for name, place in self._places.items()}


def _identity(place: Path) -> tuple[int, int] | None:
    try:
        found = os.lstat(place)
    except OSError:
        return None
    return found.st_dev, found.st_ino
