"""A way of bytes to an agent's program, past the daemon: lent by it, and taken back by it.

What the daemon does to output for a terminal that watches is done here then (`terminal.viewer_filter`); where all is
shown on one screen it ends as the program goes to its other one.
"""

import select
import socket
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from synapsed.terminal.viewer_filter import ViewerFilter

CHUNK = 64 * 1024
"""Bytes read at a time."""

LAST_WORDS = 1.0
"""Seconds for the last output of a program that has ended."""


class Arrived(NamedTuple):
    """What is shown of some output, and whether no more comes this way."""

    data: bytes
    over: bool


class LentWay:
    """What was lent, once the daemon says that it has begun."""

    def __init__(self, lent: socket.socket, settings: Mapping[str, Any], *, one_screen: bool) -> None:
        lent.setblocking(False)
        self._lent = lent
        self.fd = lent.fileno()
        self._filter = ViewerFilter(clipboard=settings.get("clipboard", "deny") != "deny", one_screen=one_screen)
        self._told = False

    def send(self, data: bytes | bytearray) -> int:
        """Send keys as far as that goes now; how many bytes that is. Raises OSError where it is over."""
        try:
            return self._lent.send(data)
        except BlockingIOError:
            return 0

    def receive(self) -> Arrived:
        """What came of the output, without waiting."""
        try:
            data = self._lent.recv(CHUNK)
        except BlockingIOError:
            return Arrived(b"", over=False)
        except OSError:
            data = b""
        if not data:
            return Arrived(b"", over=True)
        return Arrived(self._filter.feed(data), over=self._filter.switched)

    def rest(self) -> bytes:
        """All that comes until it is over, as long as that may take."""
        deadline, came, over = time.monotonic() + LAST_WORDS, b"", False
        while not over and select.select([self.fd], [], [], max(0.0, deadline - time.monotonic()))[0]:
            data, over = self.receive()
            came += data
        return came

    @property
    def drops(self) -> bool:
        """Whether the program would have set the clipboard, and that was not told yet: once."""
        if self._told or not self._filter.unset:
            return False
        self._told = True
        return True

    def close(self) -> None:
        """What was sent counts."""
        self._lent.close()
