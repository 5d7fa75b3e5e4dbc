"""A connection to a keeper that becomes a person's terminal, to be lent to the person's tool."""

import asyncio
import socket
from pathlib import Path

from synapsed.config.sockets import why_not_our_peer
from synapsed.errors import KeeperLost
from synapsed.keeper import frames
from synapsed.keeper.frames import Decoder, Frame, ProtocolError

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
