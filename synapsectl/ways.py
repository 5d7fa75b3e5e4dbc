"""The ways between a person's terminal and an agent's program: through the daemon, and past it where it lends one."""

from collections.abc import Mapping
from contextlib import suppress
from socket import socket
from typing import TYPE_CHECKING, Any

from synapsectl.ahead import BegunAttach
from synapsectl.client import Client
from synapsectl.framed import TerminalConnection, open_terminal, read_greeting
from synapsed.attachwire import LENT, OVER

if TYPE_CHECKING:
    from synapsectl.direct import LentWay

FRAME_MAX = 32 * 1024
"""Bytes of keys in one frame."""


class Ways:
    """There is a way where `daemon` is one; `direct` is the other one, while it is lent."""

    def __init__(self, client: Client, *, read_only: bool, begun: BegunAttach | None) -> None:
        self.daemon: TerminalConnection | None = None
        self.direct: LentWay | None = None
        self.frames: list[tuple[int, bytes]] = []
        """What came with the greeting."""
        self._client = client
        self._read_only = read_only
        self._begun = begun
        """The first connection, where it has begun already."""
        self._lent: socket | None = None
        self._one_screen = False

    def open(self, agent: str, *, cols: int, rows: int) -> dict[str, Any]:
        """Ask the daemon for a way to `agent`, in place of those that there are; its greeting. Raises CtlError, and
        leaves those as they are."""
        begun, self._begun = self._begun, None
        opened = open_terminal(self._client, agent, cols=cols, rows=rows, read_only=self._read_only, begun=begun)
        try:
            greeting, self.frames = read_greeting(opened)
        except BaseException:
            opened.close(0)
            raise
        self._one_screen = bool(greeting.get("one_screen"))
        if greeting.get("lends") and not self._read_only:
            opened.lends = True
            opened.command({"type": "direct", "taken": False, "tells": True})
        self.leave()
        self.daemon = opened
        return greeting

    def leave(self) -> None:
        """Nothing more comes here."""
        self.leave_direct()
        daemon, self.daemon = self.daemon, None
        if daemon is not None:
            daemon.close(0)

    def leave_direct(self) -> None:
        direct, self.direct = self.direct, None
        if direct is not None:
            direct.close()

    def close(self, timeout: float) -> None:
        """Leave, with `timeout` seconds for the daemon to take what it was sent."""
        self.leave_direct()
        if self._lent is not None:
            self._lent.close()
        if self.daemon is not None:
            self.daemon.close(timeout)

    def command(self, document: Mapping[str, Any]) -> None:
        """To the daemon, if it is there."""
        if self.daemon is not None:
            self.daemon.command(document)

    def told(self, kind: int, settings: Mapping[str, Any]) -> None:
        """The daemon says that a way is lent, begins, or is over."""
        if kind == OVER or self.daemon is None:
            self.leave_direct()
        elif kind == LENT:
            lent, self._lent = self._lent, self.daemon.take_lent()
            if lent is not None:
                lent.close()
            if self._lent is not None:
                self.daemon.command({"type": "direct", "taken": True})
        elif self._lent is not None:
            from synapsectl.direct import LentWay

            self.direct = LentWay(self._lent, settings, one_screen=self._one_screen)
            self._lent = None
            self.daemon.command({"type": "direct", "begun": True})

    def type(self, keys: bytearray) -> None:
        """Send `keys` as far as that goes now, and take what was sent out of them."""
        if self.direct is not None and keys:
            with suppress(OSError):  # it is over, which is read there
                del keys[: self.direct.send(keys)]
            return
        while keys and self.daemon is not None and not self.daemon.unsent:
            self.daemon.keys(bytes(keys[:FRAME_MAX]))
            del keys[:FRAME_MAX]
