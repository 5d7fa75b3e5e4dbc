"""One A2A agent elsewhere, through the SDK's client: 1.0 and 0.3, whichever its card says.

What goes wrong becomes one of four errors: `Unreachable` (`details["sent"]`: whether the request may have arrived),
`CardInvalid`, `CardChanged`, `RemoteRefused` (`details["remote"]` names the error over there).
"""

import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
from a2a.client import A2AClientError, ClientCallContext, ClientConfig, ClientFactory
from a2a.client.card_resolver import parse_agent_card
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError, TaskNotFoundError
from google.protobuf.json_format import ParseError

from synapsed.a2a.convert import STATES, outgoing, parts_from, struct_dict
from synapsed.a2a.errors import A2aError
from synapsed.a2a.hosts.tunnel import Tunnel
from synapsed.errors import CardChanged, CardInvalid, ExternalError, InvalidRequest, RemoteRefused, Unreachable
from synapsed.model.external import ExternalAgent
from synapsed.model.task import Artifact, Message, Part, TaskState

__all__ = ["Found", "Remote", "Said", "Snapshot", "look_up"]

CONNECT_S = 5.0
CARD_S = 10.0
CALL_S = 30.0
SEND_S = 600.0
"""Some servers answer a send only when the task is over, whatever they are asked."""
SILENCE_S = 120.0
"""Of a stream: then the task is asked for instead."""
CARD_BYTES = 1 << 20
ANSWER_BYTES = 32 << 20
"""Of one answer, and of one stream."""
KEY_HEADER = "Idempotency-Key"
LISTED = 100
"""Tasks that are looked through for one whose answer was lost."""
TEXT_SHOWN = 500

_BINDINGS: Final = ("JSONRPC", "HTTP+JSON")
_STATES: Final = {pb.TaskState.Value(name): state for state, name in STATES.items()}
_CARDS: Final = ("/.well-known/agent-card.json", "/.well-known/agent.json")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A task over there, as it is. `own` is what another synapsed says of it (`metadata.synapsed`). `artifacts` is None
    where only its state is told."""

    id: str
    context_id: str
    state: TaskState
    artifacts: list[Artifact] | None
    said: str
    own: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of an artifact, or the whole artifact in place of what was told; of the task `task_id`."""

    artifact: Artifact
    append: bool
    task_id: str
    context_id: str


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

    def same_as(self, agent: ExternalAgent) -> bool:
        """Whether it is the agent that was added."""
        theirs = (agent.name, agent.endpoint, agent.binding, agent.protocol_version, agent.tenant)
        return theirs == (self.name, self.endpoint, self.binding, self.protocol_version, self.tenant)


# --- the card --------------------------------------------------------------------------------------------------------


async def look_up(url: str, headers: dict[str, str], *, other_host: bool = False, in_the_clear: bool = False) -> Found:
    """Fetch and read the card of the agent at `url`: its base, or the card's own address. With `other_host` the card
    may name an endpoint on another host than its own; with `in_the_clear` credentials may go there by http. Raises
    InvalidRequest, Unreachable, CardInvalid."""
    secret = bool(headers) and not in_the_clear
    base = _checked(url, secret=secret)
    wanted = [base] if base.endswith(".json") else [base + path for path in _CARDS]
    async with _http(headers) as http:
        for card_url in wanted:
            raw = await _fetch(http, card_url, last=card_url == wanted[-1])
            if raw is not None:
                return _read(raw, card_url, secret=secret, other_host=other_host)
    raise AssertionError(wanted)


def _checked(url: str, *, secret: bool) -> str:
    try:
        split = urlsplit(url)
        _ = split.port
    except ValueError as error:
        raise InvalidRequest(f"url: {error}", field="url") from error
    if split.scheme not in ("http", "https") or not split.hostname:
        raise InvalidRequest("url: must be http://… or https://…", field="url")
    if split.username is not None or split.query or split.fragment:
        raise InvalidRequest("url: may have no user, query or fragment; credentials are given apart", field="url")
    _check_secret(split.scheme, split.hostname, secret=secret)
    return url.rstrip("/")


def _check_secret(scheme: str, host: str, *, secret: bool) -> None:
    if secret and scheme != "https" and host not in _LOOPBACK:
        raise InvalidRequest(
            f"credentials would go to {host} in the clear; use https, or --in-the-clear on a network that you trust",
            field="url",
        )


async def _fetch(http: httpx.AsyncClient, url: str, *, last: bool) -> bytes | None:
    """The card's bytes; None where there is none, unless it was the last place to look."""
    with _told(url):
        async with http.stream("GET", url, timeout=httpx.Timeout(CARD_S, connect=CONNECT_S)) as response:
            status = response.status_code
            if status == 200:
                raw = bytearray()
                async for piece in response.aiter_bytes():
                    raw += piece
                    if len(raw) > CARD_BYTES:
                        raise CardInvalid(f"{url}: a card has at most {CARD_BYTES} bytes", url=url)
                return bytes(raw)
            if status == 404 and not last:
                return None
            if response.is_redirect:
                there = response.headers.get("Location", "")[:200]
                raise CardInvalid(f"{url} redirects to {there!r}: add that address if it is to be trusted", url=url)
            hint = ": its credentials are missing or wrong" if status in (401, 403) else ""
            raise CardInvalid(f"{url}: there is no agent card (HTTP {status}){hint}", url=url, status=status)


def _read(raw: bytes, card_url: str, *, secret: bool, other_host: bool) -> Found:
    try:
        card = parse_agent_card(json.loads(raw))
    except (ValueError, ParseError, RecursionError) as error:
        raise CardInvalid(f"{card_url}: is no agent card: {str(error)[:TEXT_SHOWN]}", url=card_url) from error
    chosen = _choose(card, card_url)
    here, there = urlsplit(card_url), urlsplit(chosen.url)
    if there.scheme not in ("http", "https") or not there.hostname:
        raise CardInvalid(f"{card_url}: its endpoint is no address: {chosen.url[:200]!r}", url=card_url)
    same = here.hostname == there.hostname or {here.hostname, there.hostname} <= _LOOPBACK
    if not (same or other_host):
        raise CardInvalid(
            f"{card_url}: says that its agent listens on another host, {there.hostname}; "
            "add it with --other-host if that is right",
            url=card_url,
            host=there.hostname,
        )
    if here.scheme == "https" and there.scheme == "http":
        raise CardInvalid(f"{card_url}: its endpoint is not encrypted, though its card is", url=card_url)
    _check_secret(there.scheme, there.hostname, secret=secret)
    return Found(
        name=card.name[:200],
        description=card.description[:1000],
        card_url=card_url,
        endpoint=chosen.url,
        binding=chosen.protocol_binding,
        protocol_version=chosen.protocol_version,
        tenant=chosen.tenant,
        streaming=card.capabilities.streaming,
        skills=[skill.name[:100] for skill in card.skills[:50]],
    )


def _choose(card: pb.AgentCard, card_url: str) -> pb.AgentInterface:
    """The card's first of the newest version that is spoken here."""
    spoken = [one for one in card.supported_interfaces if one.protocol_binding in _BINDINGS and one.url]
    for version in ("1.", "0.3"):
        for one in spoken:
            if one.protocol_version.startswith(version):
                return one
    offered = ", ".join(f"{one.protocol_binding} {one.protocol_version}" for one in card.supported_interfaces) or "none"
    raise CardInvalid(
        f"{card_url}: offers {offered[:200]}; spoken here are JSONRPC and HTTP+JSON of A2A 1.0 and 0.3", url=card_url
    )


# --- the agent -------------------------------------------------------------------------------------------------------


class Remote:
    """A connection to the agent; `close` it. With `tunnel` it is one of another host of the user's, and what is sent
    there again under the same key is not done again."""

    def __init__(self, agent: ExternalAgent, headers: dict[str, str], tunnel: Tunnel | None = None) -> None:
        interface = pb.AgentInterface(
            url=agent.endpoint,
            protocol_binding=agent.binding,
            protocol_version=agent.protocol_version,
            tenant=agent.tenant,
        )
        card = pb.AgentCard(name=agent.name, supported_interfaces=[interface])
        card.capabilities.streaming = agent.streaming
        self._agent = agent
        self._headers = headers
        self._http = _http(headers, None if tunnel is None else str(tunnel.local))
        self._tunnel = tunnel
        # Sends are not streamed: so their answer has the task's id, which must be durable before all else.
        bindings = list(_BINDINGS)
        self._calls = ClientFactory(
            ClientConfig(httpx_client=self._http, streaming=False, polling=True, supported_protocol_bindings=bindings)
        ).create(card)
        self._streams = ClientFactory(
            ClientConfig(httpx_client=self._http, streaming=True, supported_protocol_bindings=bindings)
        ).create(card)

    @property
    def streaming(self) -> bool:
        """Whether a task there can be followed that is under way already."""
        return self._agent.streaming and not self.streams_sends

    @property
    def streams_sends(self) -> bool:
        """Whether a message is sent by `stream`, and its task followed in no other way: servers of 0.3 keep every piece
        twice of a task that somebody subscribes to again, while the one who sent it was served or is served still."""
        return self._agent.streaming and self._agent.protocol_version.startswith("0.")

    @property
    def own(self) -> bool:
        """Whether it is on a host of the user's own: it may be away for as long as it likes, sends are idempotent."""
        return self._tunnel is not None

    async def wait_up(self) -> None:
        """Wait until there is a way to it."""
        if self._tunnel is not None:
            await self._tunnel.wait_up()

    async def close(self) -> None:
        await self._http.aclose()

    async def check_card(self) -> None:
        """Raises CardChanged where it is another agent now."""
        agent = self._agent
        found = await look_up(
            agent.card_url, self._headers, other_host=agent.other_host, in_the_clear=agent.in_the_clear
        )
        if not found.same_as(agent):
            raise CardChanged(
                f"the card at {agent.card_url} is another now: {found.name!r} at {found.endpoint} "
                f"(A2A {found.protocol_version}); if that is right, add it again: "
                f"synapsectl external add {agent.url} --as {agent.alias}",
                alias=agent.alias,
                endpoint=found.endpoint,
            )

    async def send(
        self, message: Message, *, metadata: dict[str, Any], task_id: str = "", context_id: str = "", key: str = ""
    ) -> Snapshot:
        """`key` tells synapsed over there that it is the same message if it comes again."""
        context = ClientCallContext(timeout=SEND_S, service_parameters={KEY_HEADER: key} if key else None)
        request = pb.SendMessageRequest(
            message=outgoing(message, task_id=task_id, context_id=context_id, metadata=metadata)
        )
        request.configuration.return_immediately = True
        with _told(self._agent.endpoint, asked=True):
            async for answer in self._calls.send_message(request, context=context):
                if answer.HasField("task"):
                    return _snapshot(answer.task)
                if answer.HasField("message"):
                    return _answered(answer.message)
        raise RemoteRefused(f"{self._agent.endpoint} answered with neither a task nor a message")

    async def stream(
        self, message: Message, *, metadata: dict[str, Any], task_id: str = "", context_id: str = ""
    ) -> AsyncGenerator[Snapshot | Said]:
        """Send, and follow what becomes of it."""
        request = pb.SendMessageRequest(
            message=outgoing(message, task_id=task_id, context_id=context_id, metadata=metadata)
        )
        with _told(self._agent.endpoint, asked=True):
            stream = self._streams.send_message(request, context=ClientCallContext(timeout=SILENCE_S))
            try:
                async for update in stream:
                    yield _update(update)
            finally:
                if isinstance(stream, AsyncGenerator):
                    await stream.aclose()

    async def get(self, task_id: str) -> Snapshot:
        with _told(self._agent.endpoint):
            return _snapshot(await self._calls.get_task(pb.GetTaskRequest(id=task_id), context=_call()))

    async def cancel(self, task_id: str) -> Snapshot:
        with _told(self._agent.endpoint):
            return _snapshot(await self._calls.cancel_task(pb.CancelTaskRequest(id=task_id), context=_call()))

    async def find(self, message_id: str) -> Snapshot | None:
        """The task that was made of the message, None where there is none. Raises RemoteRefused where it is not to be
        found out: 0.3 has no list."""
        request = pb.ListTasksRequest(page_size=LISTED, include_artifacts=True)
        with _told(self._agent.endpoint):
            listed = await self._calls.list_tasks(request, context=_call())
            for task in listed.tasks:
                if any(message.message_id == message_id for message in task.history):
                    return _snapshot(task)
            if len(listed.tasks) >= LISTED or any(not task.history for task in listed.tasks):
                raise RemoteRefused(f"{self._agent.endpoint} does not tell of all its tasks what they were made of")
        return None

    async def follow(self, task_id: str) -> AsyncGenerator[Snapshot | Said]:
        """What is said, and the states, up to the end of the stream."""
        with _told(self._agent.endpoint):
            context = ClientCallContext(timeout=SILENCE_S)
            stream = self._streams.subscribe(pb.SubscribeToTaskRequest(id=task_id), context=context)
            try:
                async for update in stream:
                    yield _update(update)
            finally:
                if isinstance(stream, AsyncGenerator):
                    await stream.aclose()


def _call() -> ClientCallContext:
    return ClientCallContext(timeout=CALL_S)


def _snapshot(task: pb.Task) -> Snapshot:
    own = struct_dict(task.metadata).get("synapsed")
    return Snapshot(
        id=task.id,
        context_id=task.context_id,
        state=_state(task.status),
        artifacts=[_artifact(artifact) for artifact in task.artifacts],
        said="\n".join(part.text for part in task.status.message.parts if part.text),
        own=own if isinstance(own, dict) else {},
    )


def _update(update: pb.StreamResponse) -> Snapshot | Said:
    """What a stream tells. Of a status only, `artifacts` is None: it says nothing of them."""
    if update.HasField("task"):
        return _snapshot(update.task)
    if update.HasField("message"):
        return _answered(update.message)
    if update.HasField("artifact_update"):
        piece = update.artifact_update
        return Said(_artifact(piece.artifact), piece.append, piece.task_id, piece.context_id)
    status = update.status_update
    own = struct_dict(status.metadata).get("synapsed")
    return Snapshot(
        id=status.task_id,
        context_id=status.context_id,
        state=_state(status.status),
        artifacts=None,
        said="\n".join(part.text for part in status.status.message.parts if part.text),
        own=own if isinstance(own, dict) else {},
    )


def _answered(message: pb.Message) -> Snapshot:
    """An answer without a task is a task that is over."""
    artifact = Artifact(artifact_id="message", parts=parts_from(message.parts))
    return Snapshot(message.task_id, message.context_id, TaskState.COMPLETED, [artifact], "", {})


def _artifact(artifact: pb.Artifact) -> Artifact:
    parts: list[Part] = parts_from(artifact.parts)
    metadata = struct_dict(artifact.metadata) if artifact.HasField("metadata") else None
    return Artifact(
        artifact_id=artifact.artifact_id, name=artifact.name or "output", parts=parts, metadata=metadata or None
    )


def _state(status: pb.TaskStatus) -> TaskState:
    return _STATES.get(status.state, TaskState.WORKING)


# --- the wire --------------------------------------------------------------------------------------------------------


class _Bounded(httpx.AsyncHTTPTransport):
    """No answer is longer than `ANSWER_BYTES`."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _Counted(response.stream, str(request.url))
        return response


class _Counted(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, url: str) -> None:
        self._stream = stream
        self._url = url

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > ANSWER_BYTES:
                raise RemoteRefused(f"{self._url} answers with more than {ANSWER_BYTES} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


def _http(headers: dict[str, str], socket: str | None = None) -> httpx.AsyncClient:
    """Redirects are not followed: where they lead nobody has agreed to. `socket` is the path of a Unix socket."""
    return httpx.AsyncClient(
        transport=_Bounded(retries=0, uds=socket),
        headers=headers,
        follow_redirects=False,
        timeout=httpx.Timeout(CALL_S),
    )


@contextlib.contextmanager
def _told(url: str, *, asked: bool = False) -> Iterator[None]:
    """The errors of the SDK and of httpx as ours. `asked`: the request has an effect if it arrives."""
    try:
        yield
    except ExternalError:
        raise
    except httpx.HTTPError as error:
        raise _unreachable(url, error, asked=asked) from error
    except A2AClientError as error:
        raise _of_client(url, error, asked=asked) from error
    except NotImplementedError as error:
        raise RemoteRefused(f"{url} cannot do that: {error}", remote="UNSUPPORTED") from error
    except A2AError as error:
        name = "TASK_NOT_FOUND" if isinstance(error, TaskNotFoundError) else type(error).__name__
        raise RemoteRefused(f"{url} says: {str(error)[:TEXT_SHOWN]}", remote=name) from error
    except (A2aError, ValueError, ParseError) as error:
        raise RemoteRefused(f"{url} answers what is not A2A: {str(error)[:TEXT_SHOWN]}", remote="INVALID") from error


def _of_client(url: str, error: A2AClientError, *, asked: bool) -> ExternalError:
    cause = error.__cause__
    if isinstance(cause, httpx.HTTPStatusError):
        status = cause.response.status_code
        if status in (502, 503, 504, 429):
            return Unreachable(f"{url} is not ready (HTTP {status})", sent=asked and status == 504, status=status)
        hint = ": its credentials are missing or wrong" if status in (401, 403) else ""
        return RemoteRefused(f"{url} refuses with HTTP {status}{hint}", remote=f"HTTP_{status}", status=status)
    if isinstance(cause, httpx.HTTPError):
        return _unreachable(url, cause, asked=asked)
    return RemoteRefused(f"{url} says: {str(error)[:TEXT_SHOWN]}", remote=type(error).__name__)


def _unreachable(url: str, error: httpx.HTTPError, *, asked: bool) -> Unreachable:
    sent = asked and not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
    why = str(error)[:200] or type(error).__name__
    return Unreachable(f"{url} cannot be reached: {why}", sent=sent)
