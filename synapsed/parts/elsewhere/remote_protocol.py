"""Agents elsewhere, however they are spoken to: what is known of a task there, what a connection can do, and the HTTP
under it, with its bounds.

What goes wrong becomes one of four errors: `Unreachable` (`details["sent"]`: whether the request may have arrived;
`busy`: it has not, and may be sent again later), `CardInvalid`, `CardChanged`, `RemoteRefused` (`details["remote"]`
names the error over there).
"""

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import httpx

from synapsed.a2a_types.partial_answer import ArtifactPiece, Snapshot
from synapsed.a2a_types.snapshots import TEXT_SHOWN
from synapsed.documents.counting import Meter, TooMuch
from synapsed.errors import RemoteRefused, Unreachable
from synapsed.model.task import Message
from synapsed.outgoing import OutgoingConfig
from synapsed.parts.elsewhere.external_agent import SEEDS, ExternalAgent

CONNECT_S = 5.0
CARD_S = 10.0
CALL_S = 30.0
SEND_S = 600.0
"""Some servers answer a send only when the task is over, whatever they are asked."""
SILENCE_S = 120.0
"""Of a stream: then the task is asked for instead."""
LONGEST_PAUSE_S: Final = 30.0
"""Between two questions for a task that tells nothing by itself."""
ANSWER_BYTES = 32 << 20
"""Of one answer, and of one stream."""
EVENT_STREAM: Final = "text/event-stream"
_PLAIN: Final = "identity"
KEY_HEADER = "Idempotency-Key"


@dataclass(frozen=True, slots=True)
class Found:
    """What a card says of its agent, as far as it is of use here."""

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

    def same_as(self, agent: ExternalAgent) -> bool:
        """Whether it is the agent that was added."""
        theirs = (agent.name, agent.endpoint, agent.binding, agent.protocol_version, agent.tenant)
        return theirs == (self.name, self.endpoint, self.binding, self.protocol_version, self.tenant)

    def same_but_for_the_dialect(self, agent: ExternalAgent) -> bool:
        """Whether it is that agent, in the same place, which speaks A2A now and did not, or the other way round."""
        theirs, ours = urlsplit(agent.endpoint), urlsplit(self.endpoint)
        same = (agent.name, theirs.scheme, theirs.netloc) == (self.name, ours.scheme, ours.netloc)
        return same and (agent.binding == SEEDS) != (self.binding == SEEDS)


class AgentConnection(Protocol):
    """To one agent elsewhere; `close` it."""

    longest_pause_s: float

    @property
    def streaming(self) -> bool:
        """Whether a task there can be followed that is under way already."""
        ...

    @property
    def streams_sends(self) -> bool:
        """Whether a message is sent by `stream`, and its task followed in that way."""
        ...

    @property
    def own(self) -> bool:
        """Whether it is on a host of the user's own: it may be away for as long as it likes, sends are idempotent."""
        ...

    @property
    def names_tasks(self) -> bool:
        """Whether a task there has the id that it is sent under (`key`), by which it is found again."""
        ...

    async def wait_up(self) -> None:
        """Wait until there is a way to it."""
        ...

    async def look(self) -> Found:
        """The agent as it is there now. Raises Unreachable, CardInvalid, CardChanged."""
        ...

    async def send(
        self, message: Message, *, metadata: dict[str, Any], task_id: str = "", context_id: str = "", key: str = ""
    ) -> Snapshot:
        """Send it once; with `task_id` it is an answer to what the task asks."""
        ...

    def stream(
        self, message: Message, *, metadata: dict[str, Any], task_id: str = "", context_id: str = "", key: str = ""
    ) -> AsyncGenerator[Snapshot | ArtifactPiece]:
        """Send it once, and follow what becomes of it."""
        ...

    async def get(self, task_id: str) -> Snapshot: ...

    async def cancel(self, task_id: str) -> Snapshot: ...

    async def find(self, message_id: str, key: str = "") -> Snapshot | None:
        """The task that was made of the message, which was sent under `key`; None if it is certain that no task was.
        Raises RemoteRefused if that cannot be found out."""
        ...

    def follow(self, task_id: str) -> AsyncGenerator[Snapshot | ArtifactPiece]:
        """What is said, and the states, up to the end of the stream."""
        ...

    async def close(self) -> None: ...


PROXY_AUTH = 407
"""A proxy's answer, never the agent's."""


# --- the wire --------------------------------------------------------------------------------------------------------


class _Bounded(httpx.AsyncHTTPTransport):
    """No answer is longer than `ANSWER_BYTES`, as it is read: none is taken that is compressed. None has more values
    than a request that is sent here, nor has an event of a stream."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        url, coding = str(request.url), response.headers.get("Content-Encoding", _PLAIN).strip().lower()
        if coding != _PLAIN:
            await response.aclose()
            raise RemoteRefused(f"{url} answers compressed ({coding[:20]!r}), though it was asked not to")
        stream = response.headers.get("Content-Type", "").startswith(EVENT_STREAM)
        response.stream = _Counted(response.stream, url, Meter(stream=stream))
        return response


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
    """Takes each request the way that `outgoing` says."""

    def __init__(self, outgoing: OutgoingConfig) -> None:
        self._outgoing = outgoing
        self._ways: dict[str | None, _Bounded] = {}
        """By their proxies; made when they are wanted, as each reads all certificates."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        proxy = self._outgoing.proxy_for(request.url.host)
        if proxy not in self._ways:
            self._ways[proxy] = _Bounded(retries=0, proxy=proxy)
        response = await self._ways[proxy].handle_async_request(request)
        if proxy is not None and response.status_code == PROXY_AUTH:
            await response.aclose()
            raise httpx.ProxyError(f"{PROXY_AUTH} its name or password is missing or wrong")
        return response

    async def aclose(self) -> None:
        for way in self._ways.values():
            await way.aclose()


def http_client(headers: dict[str, str], outgoing: OutgoingConfig, socket: str | None = None) -> httpx.AsyncClient:
    """Redirects are not followed: where they lead nobody has agreed to. `socket` is the path of a Unix socket."""
    routed = outgoing.proxy is not None and socket is None
    return httpx.AsyncClient(
        transport=_Routed(outgoing) if routed else _Bounded(retries=0, uds=socket),
        headers={"Accept-Encoding": _PLAIN, **headers},
        follow_redirects=False,
        timeout=httpx.Timeout(CALL_S),
    )


def unreachable(url: str, error: httpx.HTTPError, *, asked: bool) -> Unreachable:
    """`asked`: the request has an effect if it arrives."""
    sent = asked and not isinstance(
        error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout | httpx.ProxyError
    )
    why = str(error)[:200] or type(error).__name__
    if isinstance(error, httpx.ProxyError):
        why = f"the proxy answers {why} ('proxy' under [outgoing] of config.toml)"
    return Unreachable(f"{url} cannot be reached: {why}", sent=sent)


def of_status(url: str, status: int, *, asked: bool, said: str = "") -> Unreachable | RemoteRefused:
    """The error that an answer with this status is. `said` is the server's own word."""
    if status in (502, 503, 504, 429):
        return Unreachable(f"{url} is not ready (HTTP {status})", sent=asked and status == 504, status=status)
    hint = f": {said[:TEXT_SHOWN]}" if said else ""
    if status in (401, 403):
        hint = ": its credentials are missing or wrong"
    return RemoteRefused(f"{url} refuses with HTTP {status}{hint}", remote=f"HTTP_{status}", status=status)
