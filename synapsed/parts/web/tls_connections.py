"""A listener with TLS of our own: connections are counted when they come, before their handshake, which has a deadline.

asyncio would make a protocol of a connection only after its handshake, so that their number would be unknown until
then. Here they are accepted, counted and checked first: a request without TLS is redirected to https or gets an error,
and nothing else. A renewed certificate is used for connections from then on; those that are open go on with the old
one.
"""

import asyncio
import contextlib
import socket
import ssl
from typing import Final

import structlog

from synapsed.kernel import CountedConnection, Serving
from synapsed.shared.regex import regex

AT_ONCE: Final = 4
"""Connections that are accepted in one turn of the loop."""
PAUSE_S: Final = 1.0
"""Seconds without accepting after the system had no room for one more."""
SHUTDOWN_S: Final = 2.0
"""Seconds for the other side to confirm the end of a connection."""
PLAIN_S: Final = 2.0
"""Seconds for the head of a request in the clear, and as long for its answer to be taken."""
HEAD_MAX: Final = 8192
_HANDSHAKE: Final = b"\x16"
"""First byte of every connection in TLS."""
_ASKED: Final = regex(
    rb"(?:GET|HEAD) (/[!-~]{0,2047}) HTTP/1\.[01]\r?\n(?:.*\n)*?[Hh][Oo][Ss][Tt]: *([!-~]{1,255}) *\r?\n"
)

log = structlog.stdlib.get_logger("synapsed.api")


class SecureListener:
    """Listens on `sockets`, which are its own from now on, until `close`."""

    def __init__(
        self,
        sockets: list[socket.socket],
        context: ssl.SSLContext,
        *,
        serving: Serving,
        name: str,
    ) -> None:
        self.context = context
        """Context for connections from now on."""
        self._sockets = sockets
        self._serving = serving
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._greeting: dict[asyncio.Task[None], None] = {}
        self._pauses: set[asyncio.TimerHandle] = set()
        for sock in sockets:
            sock.setblocking(False)
            self._loop.add_reader(sock, self._accept, sock)

    @property
    def port(self) -> int:
        return int(self._sockets[0].getsockname()[1])

    @property
    def greeting(self) -> int:
        """Number of unfinished handshakes."""
        return len(self._greeting)

    async def close(self) -> None:
        """Stops accepting, and closes connections with an unfinished handshake."""
        for timer in self._pauses:
            timer.cancel()
        self._pauses.clear()
        while self._sockets:
            sock = self._sockets.pop()
            self._loop.remove_reader(sock)
            sock.close()
        tasks = list(self._greeting)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(AT_ONCE):
            try:
                sock, peer = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no descriptors, no memory: the queue keeps them for a while
                log.error("connections cannot be accepted", why=error.strerror)  # noqa: TRY400
                self._pause(listener)
                return
            self._admit(sock, peer)

    def _pause(self, listener: socket.socket) -> None:
        def go_on() -> None:
            self._pauses.discard(timer)
            self._loop.add_reader(listener, self._accept, listener)

        self._loop.remove_reader(listener)
        timer = self._loop.call_later(PAUSE_S, go_on)
        self._pauses.add(timer)

    def _admit(self, sock: socket.socket, peer: tuple[str, int]) -> None:
        try:
            connection = self._serving.admit(peer, sock.getsockname(), self._name)
        except OSError:  # it is gone by now
            connection = None
        if connection is None:
            sock.close()
            return
        sock.setblocking(False)
        if len(self._greeting) >= self._serving.handshakes:
            oldest = next(iter(self._greeting))
            del self._greeting[oldest]  # at most as many as there may be, also while it ends
            oldest.cancel()
        task = self._loop.create_task(self._greet(sock, connection))
        self._greeting[task] = None
        task.add_done_callback(lambda done: self._greeting.pop(done, None))

    async def _greet(self, sock: socket.socket, connection: CountedConnection) -> None:
        """Handles a connection up to the end of its handshake, after which it is aiohttp's."""
        try:
            async with asyncio.timeout(self._serving.head):
                first = await _peek(sock)
                if first == _HANDSHAKE:
                    await self._shake_hands(sock, connection)
            if first.isupper():  # as HTTP's methods are
                await self._answer_in_the_clear(sock)
        except (OSError, TimeoutError) as error:  # ssl.SSLError is an OSError
            log.debug("no handshake", why=str(error))
        finally:
            if not connection.made:
                connection.forget()
                sock.close()

    async def _shake_hands(self, sock: socket.socket, connection: CountedConnection) -> None:
        await self._loop.connect_accepted_socket(
            lambda: connection,
            sock,
            ssl=self.context,
            ssl_handshake_timeout=self._serving.head,
            ssl_shutdown_timeout=SHUTDOWN_S,
        )

    async def _answer_in_the_clear(self, sock: socket.socket) -> None:
        patience = min(PLAIN_S, self._serving.head)
        async with asyncio.timeout(2 * patience):
            head = b""
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    while b"\r\n\r\n" not in head and len(head) < HEAD_MAX:
                        if not (more := await self._loop.sock_recv(sock, HEAD_MAX - len(head))):
                            break
                        head += more
            await self._loop.sock_sendall(sock, self._words(head))
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_WR)
            while await self._loop.sock_recv(sock, HEAD_MAX):  # else a reset would take the answer away
                pass

    def _words(self, head: bytes) -> bytes:
        """Returns the answer to a request in the clear. A browser without https in its address is redirected; a
        caller's token went over the line in the clear, and the answer says so."""
        asked = _ASKED.match(head)
        if asked is not None and b"\nauthorization:" not in head.lower():
            target, host = (part.decode("ascii") for part in asked.groups())
            if self._serving.is_host(host):
                where = f"Location: https://{host}{target}\r\nContent-Length: 0\r\n"
                return f"HTTP/1.1 307 Temporary Redirect\r\n{where}Connection: close\r\n\r\n".encode()
        body = self._serving.refusal("this port speaks TLS: use https://, and nothing else reaches it")
        kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        return f"HTTP/1.1 400 Bad Request\r\n{kind}".encode() + body


async def _peek(sock: socket.socket) -> bytes:
    """Returns the first byte, which stays in the socket; empty for a connection that ends."""
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[None] = loop.create_future()
    loop.add_reader(sock, _settle, readable)
    try:
        await readable
    finally:
        loop.remove_reader(sock)
    return sock.recv(1, socket.MSG_PEEK)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
