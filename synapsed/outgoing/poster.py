"""Sends one notification to one receiver: a POST over a connection whose address was screened.

The screening is in the socket factory, which gets the very address of the next connection: even if a name had another
address when the config was made, or a moment ago, no connection goes to a forbidden address. If `[outgoing]` names a
proxy, the host of the URL is screened instead. No redirect is followed, no cookie used, and only the status and
`Retry-After` of the answer are read.

Each look-up of a name has a thread of its own: a name server that does not answer delays no other look-up, no other
thread of the daemon, and not the daemon's end.
"""

import asyncio
import errno
import socket
import threading
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Protocol

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from synapsed.documents.writing import Parts, encoded_size, sliced
from synapsed.errors import InvalidRequest
from synapsed.outgoing import DIRECTLY, OutgoingConfig
from synapsed.outgoing.screening import AddressScreen, checked_url, literal_address, origin_of

__all__ = ["HttpPoster", "Poster", "Receipt", "ThreadedResolver", "checked_url", "literal_address", "origin_of"]

LOOKUPS_MAX = 64
"""Number of look-ups at a time; several look-ups of the same name count as one."""

type _Question = tuple[str, int, int]
type _Found = list[tuple[Any, ...]]


class ThreadedResolver(AbstractResolver):
    """The system's resolver of names, in threads."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(LOOKUPS_MAX)
        self._asked: dict[_Question, asyncio.Future[_Found]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        question = (host, port, int(family))
        while question not in self._asked:
            await self._slots.acquire()
            if question in self._asked:
                self._slots.release()
                break
            self._ask(question)
        infos = await asyncio.shield(self._asked[question])
        return [
            ResolveResult(
                hostname=host,
                host=_numeric(address),
                port=address[1],
                family=found,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for found, _, protocol, _, address in infos
        ]

    async def close(self) -> None:
        self._asked.clear()

    def _ask(self, question: _Question) -> None:
        """Begins to look the name up. Raises OSError if the system gives no thread for that."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[_Found] = loop.create_future()

        def told(found: _Found, error: Exception | None) -> None:
            self._slots.release()
            self._asked.pop(question, None)
            if error is None:
                answer.set_result(found)
            else:
                answer.set_exception(error)
                answer.exception()  # there may be no waiter any more

        def look() -> None:
            found: _Found = []
            failure: Exception | None = None
            try:
                found = list(socket.getaddrinfo(question[0], question[1], question[2], socket.SOCK_STREAM))
            except OSError as error:
                failure = error
            except UnicodeError as error:
                failure = OSError(f"no such name: {error}")
            with suppress(RuntimeError):  # the daemon has ended meanwhile
                loop.call_soon_threadsafe(told, found, failure)

        try:
            threading.Thread(target=look, name="push-resolver", daemon=True).start()
        except RuntimeError as error:  # else all who ask for that name would wait for ever
            self._slots.release()
            raise OSError(errno.EAGAIN, str(error)) from None
        self._asked[question] = answer


def _numeric(address: tuple[Any, ...]) -> str:
    """Returns the address with the scope of a link-local one, which is needed to use it."""
    if len(address) == 4 and address[3]:
        return f"{str(address[0]).partition('%')[0]}%{address[3]}"
    return str(address[0])


CHECK_S = 2.0
"""Seconds for looking up the name in a new config. A name that is unknown by then may be known later."""

GONE = 410
"""Status by which a receiver asks for no more requests."""

PROXY_AUTH = 407
_WANTS_PASSWORD = "the proxy wants a name and a password, or others: see 'proxy' under [outgoing] of config.toml"  # noqa: S105

type _AddressInfo = tuple[Any, Any, int, str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Receipt:
    """Result of an attempt. `gone`: the receiver wants nothing more. `problem` is for people and has no secret."""

    accepted: bool
    gone: bool = False
    retry_after: str | None = None
    problem: str = ""
    status: int | None = None
    """Status of the answer; None without one."""


class Poster(Protocol):
    async def check(self, url: str) -> str:
        """Returns the part of the URL that others may see. Raises InvalidRequest for one that can never be notified."""

    async def post(self, url: str, body: Parts, headers: Mapping[str, str]) -> Receipt: ...

    async def close(self) -> None: ...


async def _pieces(body: Parts) -> AsyncGenerator[bytes]:
    """Yields the pieces of `body`; other tasks run between two of them, even if the receiver is fast."""
    for piece in sliced(body):
        yield piece
        await asyncio.sleep(0)


class _RefusedAddress(OSError):
    """The screen does not permit the address."""


class HttpPoster:
    """The `Poster` over the network. `timeout`: seconds for one attempt."""

    def __init__(
        self,
        screen: AddressScreen,
        *,
        timeout: float,
        resolver: AbstractResolver | None = None,
        outgoing: OutgoingConfig = DIRECTLY,
    ) -> None:
        self._screen = screen
        self._outgoing = outgoing
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._resolver = resolver or ThreadedResolver()
        self._sessions: dict[bool, aiohttp.ClientSession] = {}
        """Sessions; the key is True if their connections are screened."""

    async def check(self, url: str) -> str:
        target = checked_url(url)
        if not await self._may_be_notified(target):
            raise InvalidRequest(
                "url: notifications to its network are not allowed; [a2a.push] allow = [...] in the configuration "
                "allows them",
                field="url",
            )
        return origin_of(target)

    async def _may_be_notified(self, target: URL) -> bool:
        if self._proxy_for(target) is not None:
            return self._screen.permits_host(target.raw_host or "")
        if (literal := literal_address(target)) is not None:
            return self._screen.permits(literal)
        try:
            async with asyncio.timeout(CHECK_S):
                found = await self._resolver.resolve(target.raw_host or "", target.port or 0)
        except (OSError, TimeoutError):
            return True  # it may be known later
        return not found or any(self._screen.permits(ip_address(item["host"])) for item in found)

    def _proxy_for(self, target: URL) -> str | None:
        return self._outgoing.proxy_for(target.raw_host or "")

    async def post(self, url: str, body: Parts, headers: Mapping[str, str]) -> Receipt:
        return await self.send("POST", url, body, headers)

    async def send(self, method: str, url: str, body: Parts, headers: Mapping[str, str]) -> Receipt:
        """Sends `body` as `post` does, with any HTTP method."""
        try:
            size = await encoded_size(body)  # many receivers refuse a body without its length
            headers = {**headers, "Content-Length": str(size)}
            target = checked_url(url)  # an older daemon, with weaker rules, may have accepted it
            literal, proxy = literal_address(target), self._proxy_for(target)
            if literal is not None and not self._screen.permits(literal):
                raise _RefusedAddress("the address is not allowed")
            if proxy is not None and not self._screen.permits_host(target.raw_host or ""):
                raise _RefusedAddress("the proxy is not asked for addresses and names that are not public")
            async with self._client(screened=proxy is None).request(
                method, target, data=_pieces(body), headers=headers, allow_redirects=False, proxy=proxy
            ) as response:
                if proxy is not None and response.status == PROXY_AUTH:
                    return Receipt(accepted=False, problem=_WANTS_PASSWORD)
                if 200 <= response.status < 300:
                    return Receipt(accepted=True, status=response.status)
                return Receipt(
                    accepted=False,
                    gone=response.status == GONE,
                    retry_after=response.headers.get("Retry-After"),
                    problem=f"it answered {response.status}",
                    status=response.status,
                )
        except (aiohttp.ClientError, InvalidRequest, OSError, ValueError) as error:
            return Receipt(accepted=False, problem=self._words(error))

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()
        await self._resolver.close()

    def _client(self, *, screened: bool) -> aiohttp.ClientSession:
        """Returns the client. A proxy may be at any address, because a person has named it."""
        if screened not in self._sessions:
            self._sessions[screened] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    resolver=self._resolver,
                    use_dns_cache=False,
                    limit=0,
                    socket_factory=self._socket if screened else None,
                ),
                timeout=self._timeout,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        return self._sessions[screened]

    def _socket(self, info: _AddressInfo) -> socket.socket:
        """Returns a socket for the connection to the address in `info`, which is made next."""
        family, kind, protocol, _, address = info
        if not self._screen.permits(ip_address(address[0])):
            raise _RefusedAddress("the address is not allowed")
        return socket.socket(family, kind, protocol)

    def _words(self, error: Exception) -> str:
        """Returns our own words, never the library's, which may quote the URL."""
        match error:
            case TimeoutError():
                return f"no answer within {self._timeout.total:g} s"
            case aiohttp.ClientHttpProxyError():
                return _WANTS_PASSWORD if error.status == PROXY_AUTH else f"the proxy answered {error.status}"
            case aiohttp.ClientProxyConnectionError():
                return f"the proxy cannot be connected to: {error.os_error.strerror or error.os_error}"
            case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
                return "its certificate cannot be verified, or TLS failed"
            case aiohttp.ClientConnectorDNSError():
                return "its name cannot be resolved"
            case aiohttp.ClientConnectorError():
                return f"it cannot be connected to: {error.os_error.strerror or error.os_error}"
            case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError():
                return "it dropped the connection"
            case InvalidRequest():
                return error.message
            case _RefusedAddress():
                return str(error)
            case _:
                return f"the attempt failed ({type(error).__name__})"
