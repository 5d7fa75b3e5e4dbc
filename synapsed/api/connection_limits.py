"""Limits connections: counts them before anything is read, with a lower limit for other users, and closes those that
send nothing in time. `security` decides about the requests themselves.

Each connection has a `GuardedConnection` between asyncio's transport and aiohttp's protocol.
"""

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

import structlog
from aiohttp import web

from synapsed.api.peer_lookup import client_uid, unix_credentials
from synapsed.api.problems import Handler
from synapsed.kernel import CountedConnection

RESERVED_FILES = 256
"""Descriptors that are kept for other things than connections: the database, keepers, spools, the listeners."""
LEAST = 32
CONNECTIONS_MAX = 8192
TOLD_EVERY_S = 1.0

log = structlog.stdlib.get_logger("synapsed.api")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Limits of open connections, and times in seconds."""

    tcp: int
    """Connections over all TCP listeners."""
    listener: int
    """Connections at one of them, or at the Unix socket, which is not counted with the others."""
    foreign: int = 32
    """Connections of other users, over all listeners."""
    address: int = 128
    """Connections from one address of another machine: a household behind one router."""
    handshakes: int = 64
    """Connections that are not made yet, at a listener of a part's; one more takes the place of the oldest."""
    head: float = 10.0
    """Seconds from a connection to the end of its first request's headers."""
    idle: float = 75.0
    """Seconds from an answer to the next request's headers; also seconds without progress after which a client that
    does not read an answer is dropped."""
    body: float = 60.0
    """Seconds from a request's headers to the end of its body."""

    @classmethod
    def of(cls, files: int, *, proxied: bool) -> "ConnectionLimits":
        """Returns the limits for `files` open files. A proxy, which brings others' requests, may be another user's."""
        tcp = max(2 * LEAST, min(CONNECTIONS_MAX, (files - RESERVED_FILES) // 2))
        listener = max(LEAST, tcp // 2)
        return cls(tcp=tcp, listener=listener, foreign=listener if proxied else min(LEAST, listener))


class ConnectionLimiter:
    """Knows every connection of every listener."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._uid = os.getuid()
        self._open: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._telling: asyncio.TimerHandle | None = None

    def at(
        self, make: Callable[[], asyncio.Protocol], listener: str, *, unix: bool = False
    ) -> Callable[[], "GuardedConnection"]:
        """Returns the factory of connections for a listener called `listener`."""
        return lambda: GuardedConnection(self, make, listener, unix=unix)

    def admit(self, transport: asyncio.BaseTransport, listener: str, *, unix: bool) -> tuple[str, ...] | None:
        """Returns the names under which the connection is counted; None if it is refused."""
        if not unix:
            return self.admit_tcp(transport.get_extra_info("peername"), transport.get_extra_info("sockname"), listener)
        if unix_credentials(transport.get_extra_info("socket"))[1] not in (self._uid, None):
            self._refuse("of another user at the Unix socket")
            return None
        return self._count({listener: self.limits.listener})

    def admit_tcp(self, peer: Any, own: Any, listener: str) -> tuple[str, ...] | None:
        """Returns the same, by the two ends of the connection."""
        most = {listener: self.limits.listener, "tcp": self.limits.tcp}
        if peer and not ip_address(peer[0].partition("%")[0]).is_loopback:
            most[f"from {peer[0]}"] = self.limits.address
        uid = client_uid(peer, own) if peer and own else None
        if uid not in (self._uid, None):
            most["foreign"] = self.limits.foreign
        return self._count(most)

    def _count(self, most: Mapping[str, int]) -> tuple[str, ...] | None:
        for what, limit in most.items():
            if self._open[what] >= limit:
                self._refuse(f"more than {limit} at once: {what}")
                return None
        self._open.update(most.keys())
        return tuple(most)

    def leave(self, counted: tuple[str, ...]) -> None:
        self._open.subtract(counted)
        self._open += Counter()  # without those that are zero

    def _refuse(self, reason: str) -> None:
        """Counts a refusal: all equal refusals within a second become one line of the log."""
        self._refused[reason] += 1
        if self._telling is None:
            self._telling = asyncio.get_running_loop().call_later(TOLD_EVERY_S, self._tell)

    def _tell(self) -> None:
        self._telling = None
        for reason, count in self._refused.items():
            log.warning("connections refused", why=reason, count=count)
        self._refused.clear()

    def close(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
            self._tell()


class GuardedConnection(CountedConnection):
    """Passes everything on to the result of `make`, aiohttp's own protocol, and closes the connection at a deadline."""

    def __init__(
        self,
        door: ConnectionLimiter,
        make: Callable[[], asyncio.Protocol],
        listener: str,
        *,
        unix: bool = False,
        counted: tuple[str, ...] | None = None,
    ) -> None:
        """`counted`: names under which it has been admitted already."""
        self._door = door
        self._make = make
        self._listener = listener
        self._unix = unix
        self._counted = counted
        self._transport: asyncio.Transport | None = None
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        """Timer of this deadline, or of an earlier one that has been put off: a request then sets no timer."""
        self._unsent = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._counted = self._counted or self._door.admit(transport, self._listener, unix=self._unix)
        if self._counted is None:
            transport.abort()
            return
        self._transport, self.made = transport, True
        self._inner = self._make()
        self._inner.connection_made(transport)
        self._wait(self._door.limits.head)

    def forget(self) -> None:
        if not self.made and self._counted is not None:
            self._door.leave(self._counted)
            self._counted = None

    def data_received(self, data: bytes) -> None:
        if self._counted is not None:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if self._counted is not None else None

    def pause_writing(self) -> None:
        if self._counted is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._counted is not None:
            self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._counted is None:
            return
        self._wait(None)
        if self._timer is not None:
            self._timer.cancel()
        self._door.leave(self._counted)
        self._inner.connection_lost(exc)

    @contextlib.contextmanager
    def serving(self, request: web.Request) -> Iterator[None]:
        """Context of a request whose headers are here, for as long as the work takes; its body has a time limit."""
        self._wait(None)
        body = None
        if request.body_exists and not request.content.is_eof():
            body = asyncio.get_running_loop().call_later(self._door.limits.body, _time_out, request)
        try:
            yield
        finally:
            if body is not None:
                body.cancel()
            self._unsent = 0
            self._wait(self._door.limits.idle)

    def _wait(self, seconds: float | None) -> None:
        """Sets the deadline, from now on; None for no deadline."""
        if seconds is None:
            self._deadline = None
            return
        loop = asyncio.get_running_loop()
        self._deadline = loop.time() + seconds
        if self._timer is None or self._timer.when() > self._deadline:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_at(self._deadline, self._give_up)

    def _give_up(self) -> None:
        """Closes the connection because nothing came in time. An answer that is still being read is waited for."""
        assert self._transport is not None
        timer, self._timer = self._timer, None
        if timer is None or self._deadline is None:
            return
        if timer.when() < self._deadline:
            self._timer = asyncio.get_running_loop().call_at(self._deadline, self._give_up)
            return
        unsent = self._transport.get_write_buffer_size()
        if unsent and unsent != self._unsent:
            self._unsent = unsent
            self._wait(self._door.limits.idle)
        else:
            self._transport.abort()


def _time_out(request: web.Request) -> None:
    if not request.content.is_eof():
        request.content.set_exception(web.HTTPRequestTimeout())


@web.middleware
async def timed(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Suspends the connection's deadlines while a request is worked on; this is the outermost middleware."""
    protocol: Any = request.transport.get_protocol() if request.transport is not None else None
    if not isinstance(protocol, GuardedConnection):  # a test's own server
        return await handler(request)
    with protocol.serving(request):
        return await handler(request)
