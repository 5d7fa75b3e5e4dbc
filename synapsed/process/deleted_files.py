"""Premises of a daemon: its folder of state, its database, its locks and its sockets: whether it was taken away.

A file that is removed while it is open goes on for whoever has it open, and nobody else finds it: all that is written
from then on would be gone with the process, without a word.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from synapsed.config.paths import Paths

STATE, DATABASE, LOCK, RUN_LOCK = "state", "database", "lock", "lock of the sockets"
CONTROL_SOCKET, HOOKS_SOCKET, DECIDE_SOCKET = "control socket", "hooks socket", "questions socket"
SOCKETS = (CONTROL_SOCKET, HOOKS_SOCKET, DECIDE_SOCKET)
"""A service manager may put others in their places."""


class Premises:
    def __init__(self, paths: Paths) -> None:
        """They are all there now."""
        self._places: Mapping[str, Path] = {
            STATE: paths.state,
            DATABASE: paths.database,
            LOCK: paths.lock,
            RUN_LOCK: paths.run_lock,
            CONTROL_SOCKET: paths.control_socket,
            HOOKS_SOCKET: paths.hooks_socket,
            DECIDE_SOCKET: paths.decide_socket,
        }
        self._known = {name: _identity(place) for name, place in self._places.items()}

    def find_deleted(self) -> dict[str, Path]:
        """What is gone, or another one, since the last look, by name; blocks for a moment. It counts as known then."""
        lost = {}
        for name, place in self._places.items():
            now = _identity(place)
            if now != self._known[name]:
                self._known[name] = now
                if now is None or name not in SOCKETS:
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
