"""Carries bytes between a person's terminal and an agent's program, through the daemon."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from synapsectl.ahead import BegunAttach
from synapsectl.client import Client
from synapsectl.errors import CtlError
from synapsectl.framed import TerminalConnection, open_terminal, read_greeting

if TYPE_CHECKING:
    from synapsectl.leases import LeasedKeys

FRAME_MAX = 32 * 1024
"""Bytes of keys in one frame."""


class OpenedWay(NamedTuple):
    """A connection that the daemon has opened, with its greeting and the frames that came with it."""

    connection: TerminalConnection
    greeting: dict[str, Any]
    frames: list[tuple[int, bytes]]


class Attempt:
    """An attempt to open another connection, during which the person may leave."""

    def __init__(self, ask: Callable[[], OpenedWay]) -> None:
        import threading

        self._ask = ask
        self._found: OpenedWay | CtlError | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._found = self._ask()
        except CtlError as error:
            self._found = error

    def over(self, seconds: float) -> bool:
        """Waits at most so many `seconds` for the attempt; returns True if it is over."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def result(self) -> OpenedWay:
        """Returns the result, once the attempt is over. Raises CtlError."""
        if isinstance(self._found, OpenedWay):
            return self._found
        raise self._found or CtlError("nobody has asked")


class Way:
    """The way from a terminal to an agent. `daemon`: the connection, if there is one. `far`: the agent is on another
    host, and the line may be dead."""

    def __init__(self, client: Client, *, read_only: bool, begun: BegunAttach | None, far: bool = False) -> None:
        self.daemon: TerminalConnection | None = None
        self.frames: list[tuple[int, bytes]] = []
        """Frames that came with the greeting."""
        self.leased: LeasedKeys | None = None
        """Set if keys are sent under a lease."""
        self._far = far
        self._client = client
        self._read_only = read_only
        self._begun = begun
        """The first connection, if it has begun already."""

    def ask(self, agent: str, *, cols: int, rows: int) -> OpenedWay:
        """Requests a connection to `agent` from the daemon, and waits for it. Raises CtlError."""
        begun, self._begun = self._begun, None
        opened = open_terminal(self._client, agent, cols=cols, rows=rows, read_only=self._read_only, begun=begun)
        try:
            return OpenedWay(opened, *read_greeting(opened))
        except BaseException:
            opened.close(0)
            raise

    def untyped(self) -> bytes:
        """Returns keys that the daemon does not have if this connection is over now. Keys under a lease are counted by
        `leased`."""
        return b"" if self.daemon is None or self.leased is not None else self.daemon.untyped()

    def begin(self, way: OpenedWay) -> None:
        """Takes the opened connection in place of the one before."""
        opened, greeting, self.frames = way
        self.leased = None
        if self._far and greeting.get("leases"):
            from synapsectl.leases import LeasedKeys, clock

            self.leased = LeasedKeys(clock())
            opened.command({"type": "lease", "lease": 0})
        self.leave()
        self.daemon = opened

    def leave(self) -> None:
        """Drops the connection."""
        daemon, self.daemon = self.daemon, None
        if daemon is not None:
            daemon.close(0)

    def close(self, timeout: float) -> None:
        """Leaves, with `timeout` seconds for the daemon to take earlier data."""
        if self.daemon is not None:
            self.daemon.close(timeout)

    def command(self, document: Mapping[str, Any]) -> None:
        """Sends a command to the daemon, if there is a connection."""
        if self.daemon is not None:
            self.daemon.command(document)

    def type(self, keys: bytearray, typed: float) -> None:
        """Sends `keys` as far as possible now, and removes the sent ones from it; `typed` is the time of the oldest."""
        if self.leased is not None:
            from synapsectl.leases import clock

            while keys and self.daemon is not None and not self.daemon.unsent and self.leased.may_send(clock()):
                self.daemon.leased(self.leased.piece(bytes(keys[:FRAME_MAX]), typed))
                del keys[:FRAME_MAX]
            return
        while keys and self.daemon is not None and not self.daemon.unsent:
            self.daemon.keys(bytes(keys[:FRAME_MAX]))
            del keys[:FRAME_MAX]
