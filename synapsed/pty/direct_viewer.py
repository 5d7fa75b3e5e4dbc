"""A viewer's direct way to its program: a connection to the keeper that becomes a person's terminal, and is lent to the
person's tool.

The keeper lets text pass while the way is open, and tells of it; each other key it hands over, and is shut until that
is dealt with. Whether it may be open is asked then, and it is shut before anything else is typed: what a person presses
and what a message says never meet.
"""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from synapsed.aio import TaskSet
from synapsed.config.sockets import why_not_our_peer
from synapsed.errors import KeeperLost, SynapsedError
from synapsed.interfaces import DirectTerminal
from synapsed.keeper import frames
from synapsed.keeper.frames import Decoder, Frame, ProtocolError
from synapsed.keepers.client import KeeperClient
from synapsed.keepers.keeper_messages import TerminalKeys

JOIN_TIMEOUT_S = 5.0
"""A keeper answers within a millisecond."""


async def join_terminal(path: str | Path, terminal: str) -> socket.socket:
    """A connection without frames, on which nothing goes either way until `KeeperClient.dealt_with`. Raises
    KeeperLost where the keeper does not answer, or refuses."""
    loop = asyncio.get_running_loop()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.setblocking(False)
    try:
        async with asyncio.timeout(JOIN_TIMEOUT_S):
            await loop.sock_connect(connection, str(path))
            if (reason := why_not_our_peer(connection)) is not None:
                raise PermissionError(reason)  # noqa: TRY301 - what follows is the same as for one that is gone
            hello = frames.encode(frames.HELLO, {"min": frames.OLDEST_VERSION, "max": frames.VERSION})
            await loop.sock_sendall(connection, hello + frames.encode(frames.JOIN, {"req": 1, "id": terminal}))
            _, answer = await _frames(connection)
        if answer.type != frames.REPLY:
            raise ConnectionRefusedError(str(answer.header.get("message")))  # noqa: TRY301 - the same
    except (OSError, TimeoutError, ProtocolError) as error:
        connection.close()
        raise KeeperLost(f"no terminal can be joined to the keeper on {path}: {str(error) or 'timed out'}") from error
    except BaseException:
        connection.close()
        raise
    return connection


async def _frames(connection: socket.socket) -> list[Frame]:
    """The two answers; nothing follows them yet."""
    decoder, came = Decoder(), list[Frame]()
    while len(came) < 2:
        data = await asyncio.get_running_loop().sock_recv(connection, frames.MAX_PAYLOAD)
        if not data:
            raise ConnectionResetError("it closed the connection")
        came += decoder.feed(data)
        if came and came[0].type == frames.REFUSED:
            raise ConnectionRefusedError(str(came[0].header.get("message")))
    return came


class DirectViewer(Protocol):
    """The viewer that it is a way of."""

    def may_go_direct(self) -> int | None:
        """The offset from which its output can go another way, with nothing before it held back; None: not now."""
        ...

    def may_type_direct(self) -> bool: ...

    def typed_direct(self, data: bytes) -> None: ...

    def draw_again(self) -> None: ...


class Way:
    """`interfaces.DirectWay`."""

    def __init__(
        self,
        name: str,
        lent: socket.socket,
        *,
        keeper: KeeperClient,
        viewer: DirectViewer,
        terminal: DirectTerminal,
        forget: Callable[[str], None],
    ) -> None:
        """`forget` is called when nothing can come from there any more."""
        self._forget = forget
        self.name = name
        self.lent = lent
        self.begun = False
        """The output goes there."""
        self.over = False
        self.open = False
        """Text may be on its way to the program."""
        self._keeper = keeper
        self.viewer = viewer
        self._terminal = terminal
        self._dealt = self._handed = 0
        self._tasks = TaskSet()

    def begin(self, announce: Callable[[], None]) -> bool:
        offset = None if self.over else self.viewer.may_go_direct()
        if offset is None or not self._terminal.may_begin():
            return False
        announce()
        self.begun = True
        self._allow(offset)
        return True

    def pressed(self, keys: TerminalKeys) -> None:
        """The keeper told of keys."""
        if not keys.typed:
            self.open = False
            self._handed += len(keys.data)
            self._terminal.handed(keys.data)
            return
        self.viewer.typed_direct(keys.data)
        self._terminal.typed(keys.data)
        if self.open and not self._may():
            self._tasks.spawn(self._shut())

    def dealt(self, count: int) -> None:
        self._dealt += count
        self._allow(None)

    def _may(self) -> bool:
        return self.viewer.may_type_direct() and self._terminal.may_type()

    def _allow(self, offset: int | None) -> None:
        """Open it, if text may pass."""
        if not self.over and self.begun:
            self.open = self._dealt == self._handed and self._may()
            self._keeper.dealt_with(self.name, self._dealt, opens=self.open, offset=offset)

    async def shut(self) -> None:
        """Returns when all text that was typed has been told, and no more is. Raises KeeperLost."""
        if self.open:
            self.open = False
            await self._keeper.shut_terminal(self.name)

    async def _shut(self) -> None:
        try:
            await self.shut()
        except SynapsedError:
            return  # the keeper has gone, and its terminals with it

    def leave(self) -> None:
        """The output goes by way of the daemon again."""
        if not self.over:
            self.over, self.open = True, False
            self.lent.close()
            self._tasks.spawn(self._end())
            if self.begun:
                self._terminal.over()

    async def end(self) -> None:
        if self.begun and not self.over:
            self.viewer.draw_again()  # which leaves it: what has gone there may not have been read
        self.leave()
        await self._end()
        self._forget(self.name)

    async def _end(self) -> None:
        try:
            await self._keeper.shut_terminal(self.name, end=True)
        except SynapsedError:
            return  # the same
