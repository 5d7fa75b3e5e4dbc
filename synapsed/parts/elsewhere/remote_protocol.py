"""Protocol of connections to agents elsewhere: the state of a task there, the methods of a connection, and the HTTP
below it, with its bounds.

Each failure becomes one of four errors: `Unreachable` (`details["sent"]`: the request may have arrived; `busy`: it has
not arrived, and may be sent again later), `CardInvalid`, `CardChanged`, `RemoteRefused` (`details["remote"]` names the
error of the agent).
"""

import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import httpx

from synapsed.a2a_types.partial_answer import ArtifactPiece, Snapshot
from synapsed.a2a_types.snapshots import TEXT_SHOWN
from synapsed.documents.reading import TooMuch
from synapsed.errors import RemoteRefused, Unreachable
from synapsed.model.task import Message
from synapsed.outgoing import OutgoingConfig
from synapsed.outgoing.retrying import retry_after
from synapsed.parts.elsewhere.credentials import Credentials
from synapsed.parts.elsewhere.external_agent import SEEDS, ExternalAgent
from synapsed.parts.elsewhere.value_meter import Meter

CONNECT_S = 5.0
CARD_S = 10.0
CALL_S = 30.0
SEND_S = 600.0
"""Seconds for the answer to a send; some servers answer only when the task is over, whatever they are asked."""
SILENCE_S = 120.0
"""Seconds of silence of a stream after which the task is asked for instead."""
LONGEST_PAUSE_S: Final = 30.0
"""Longest seconds between two requests for a task that sends no updates by itself."""
ANSWER_BYTES = 32 << 20
"""Most bytes of one answer, and of one stream."""
EVENT_STREAM: Final = "text/event-stream"
_PLAIN: Final = "identity"
KEY_HEADER = "Idempotency-Key"


@dataclass(frozen=True, slots=True)
class Found:
    """The facts in an agent's card that are used here."""

    name: str
    description: str
    card_url: str
    endpoint: str
    binding: str
    protocol_version: str
    tenant: str
    streaming: bool
    skills: list[str]
    output_modes: list[str] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)
    signed_by: str = ""
    extended: bool = False

    def same_as(self, agent: ExternalAgent) -> bool:
        """True if it is the agent that was added."""
        theirs = (agent.name, agent.endpoint, agent.binding, agent.protocol_version, agent.tenant)
        return theirs == (self.name, self.endpoint, self.binding, self.protocol_version, self.tenant)

    def same_but_for_the_dialect(self, agent: ExternalAgent) -> bool:
        """True if it is that agent in the same place, and only one of the two looks found A2A."""
        theirs, ours = urlsplit(agent.endpoint), urlsplit(self.endpoint)
        same = (agent.name, theirs.scheme, theirs.netloc) == (self.name, ours.scheme, ours.netloc)
        return same and (agent.binding == SEEDS) != (self.binding == SEEDS)


class AgentConnection(Protocol):
    """Connection to one agent elsewhere; `close` it."""

    longest_pause_s: float

    @property
    def streaming(self) -> bool:
        """True if a task that is already under way there can be followed."""
        ...

    @property
    def streams_sends(self) -> bool:
        """True if a message is sent by `stream`, and its task is followed that way."""
        ...

    @property
    def own(self) -> bool:
        """True for a host of the user's own: it may be away for any time, and sends are idempotent."""
        ...

    @property
    def names_tasks(self) -> bool:
        """True if a task there has the id under which it is sent (`key`), by which it can be found again."""
        ...

    async def wait_up(self) -> None:
        """Waits until there is a connection."""
        ...

    async def look(self) -> Found:
        """Returns the agent as it is there now. Raises Unreachable, CardInvalid, CardChanged."""
        ...

    async def send(
        self, message: Message, *, metadata: dict[str, Any], task_id: str = "", context_id: str = "", key: str = ""
    ) -> Snapshot:
        """Sends the message once; with `task_id` it answers the question of that task."""
        ...

    def stream(
        self, message: Message, *, metadata: dict[str, Any], task_id: str = "", context_id: str = "", key: str = ""
    ) -> AsyncGenerator[Snapshot | ArtifactPiece]:
        """Sends the message once, and yields the updates of its task."""
        ...

    async def get(self, task_id: str) -> Snapshot: ...

    async def cancel(self, task_id: str) -> Snapshot: ...

    async def find(self, message_id: str, key: str = "") -> Snapshot | None:
        """Returns the task that was made of the message, which was sent under `key`; None if certainly no task was
        made. Raises RemoteRefused if that cannot be found out."""
        ...

    def follow(self, task_id: str) -> AsyncGenerator[Snapshot | ArtifactPiece]:
        """Yields the texts and states of the task up to the end of the stream."""
        ...

    async def close(self) -> None: ...


PROXY_AUTH = 407
"""Status that comes from a proxy, never from the agent."""


# --- the wire --------------------------------------------------------------------------------------------------------


@cache
def _authorities() -> ssl.SSLContext:
    """Returns the context that trusts those whom this system trusts. It is made once, which takes some 20 ms."""
    return ssl.create_default_context()


class _Bounded(httpx.AsyncHTTPTransport):
    """Transport that bounds answers to `ANSWER_BYTES` as they are read, and takes no compressed ones. An answer, and an
    event of a stream, may hold no more values than a request to this daemon. The credentials in `query` are added here,
    so that no log and no error has them in its URL."""

    def __init__(self, query: dict[str, str], *, proxy: str | None = None, uds: str | None = None) -> None:
        super().__init__(verify=_authorities(), retries=0, proxy=proxy, uds=uds)
        self._query = query

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(self._let_in(request))
        assert isinstance(response.stream, httpx.AsyncByteStream)
        url, coding = str(request.url), response.headers.get("Content-Encoding", _PLAIN).strip().lower()
        if coding != _PLAIN:
            await response.aclose()
            raise RemoteRefused(f"{url} answers compressed ({coding[:20]!r}), though it was asked not to")
        stream = response.headers.get("Content-Type", "").startswith(EVENT_STREAM)
        response.stream = _Counted(response.stream, url, Meter(stream=stream))
        return response

    def _let_in(self, request: httpx.Request) -> httpx.Request:
        if not self._query:
            return request
        url = request.url.copy_merge_params(self._query)
        return httpx.Request(
            request.method, url, headers=request.headers, stream=request.stream, extensions=request.extensions
        )


class _Counted(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, url: str, meter: Meter) -> None:
        self._stream = stream
        self._url = url
        self._meter = meter

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > ANSWER_BYTES:
                raise RemoteRefused(f"{self._url} answers with more than {ANSWER_BYTES} bytes")
            try:
                self._meter.feed(piece)
            except TooMuch as error:
                raise RemoteRefused(f"{self._url} answers with too much: {error}") from error
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Routed(httpx.AsyncBaseTransport):
    """Transport that sends each request directly or by the proxy that `outgoing` names."""

    def __init__(self, outgoing: OutgoingConfig, query: dict[str, str]) -> None:
        self._outgoing = outgoing
        self._query = query
        self._ways: dict[str | None, _Bounded] = {}
        """Transports by their proxies, made at the first use."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        proxy = self._outgoing.proxy_for(request.url.raw_host.decode("ascii"))
        if proxy not in self._ways:
            self._ways[proxy] = _Bounded(self._query, proxy=proxy)
        response = await self._ways[proxy].handle_async_request(request)
        if proxy is not None and response.status_code == PROXY_AUTH:
            await response.aclose()
            raise httpx.ProxyError(f"{PROXY_AUTH} its name or password is missing or wrong")
        return response

    async def aclose(self) -> None:
        for way in self._ways.values():
            await way.aclose()


def http_client(credentials: Credentials, outgoing: OutgoingConfig, socket: str | None = None) -> httpx.AsyncClient:
    """Returns a client that follows no redirects, since a person agreed to one address only. `socket` is the path of a
    Unix socket."""
    routed = outgoing.proxy is not None and socket is None
    return httpx.AsyncClient(
        transport=_Routed(outgoing, credentials.query) if routed else _Bounded(credentials.query, uds=socket),
        headers={"Accept-Encoding": _PLAIN, **credentials.headers},
        follow_redirects=False,
        timeout=httpx.Timeout(CALL_S),
    )


def unreachable(url: str, error: httpx.HTTPError, *, asked: bool) -> Unreachable:
    """Returns the error for a request that failed. `asked`: the request has an effect if it arrives."""
    sent = asked and not isinstance(
        error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout | httpx.ProxyError
    )
    why = str(error)[:200] or type(error).__name__
    if isinstance(error, httpx.ProxyError):
        why = f"the proxy answers {why} ('proxy' under [outgoing] of config.toml)"
    return Unreachable(f"{url} cannot be reached: {why}", sent=sent)


def of_status(
    url: str, status: int, *, asked: bool, said: str = "", later: str | None = None
) -> Unreachable | RemoteRefused:
    """Returns the error for an answer with this status. `said` is the server's own text, `later` its `Retry-After`. A
    gateway answers 502 and 504 when it has lost the agent's answer, too."""
    if status in (429, 503) and (wait := retry_after(later, now=time.time())) is not None:
        return Unreachable(f"{url} takes it later (HTTP {status})", sent=False, busy=True, after=wait, status=status)
    if status in (502, 503, 504, 429):
        return Unreachable(f"{url} is not ready (HTTP {status})", sent=asked and status in (502, 504), status=status)
    hint = f": {said[:TEXT_SHOWN]}" if said else ""
    if status in (401, 403):
        hint = ": its credentials are missing or wrong"
    return RemoteRefused(f"{url} refuses with HTTP {status}{hint}", remote=f"HTTP_{status}", status=status)
