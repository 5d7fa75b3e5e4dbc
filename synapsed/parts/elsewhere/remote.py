"""One A2A agent elsewhere, through the SDK's client: version 1.0 or 0.3, as its card says.

The SDK makes its types of an answer where it has read it, which takes 100 ms for one with 49,000 values. So its client
runs in a thread, and our types are made there too.
"""

import contextlib
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import httpx
from a2a.client import A2AClientError, ClientCallContext, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError, TaskNotFoundError

import synapsed.a2a_types.free_json  # noqa: F401 - for what it does to protobuf
from synapsed.a2a_types.convert import outgoing
from synapsed.a2a_types.partial_answer import ArtifactPiece, Snapshot
from synapsed.a2a_types.snapshots import TEXT_SHOWN, UNREADABLE, answered, snapshot_of, update_of
from synapsed.errors import ExternalError, RemoteRefused
from synapsed.interfaces import headers_of
from synapsed.model.task import Message
from synapsed.outgoing import OutgoingConfig
from synapsed.parts.elsewhere.credentials import Credentials
from synapsed.parts.elsewhere.discovery import BINDINGS, look_again
from synapsed.parts.elsewhere.external_agent import ExternalAgent
from synapsed.parts.elsewhere.hosts.tunnel import Tunnel
from synapsed.parts.elsewhere.loop_thread import LoopThread, beside, streaming_beside
from synapsed.parts.elsewhere.remote_protocol import (
    CALL_S,
    KEY_HEADER,
    LONGEST_PAUSE_S,
    SEND_S,
    SILENCE_S,
    Found,
    http_client,
    of_status,
    unreachable,
)

LISTED = 100
"""Tasks that are searched for one whose answer was lost."""


class Remote:
    """A connection to the agent; `close` it. `thread` is the SDK's. With `tunnel` the agent is on another host of the
    user's, which does a request with the same key only once."""

    longest_pause_s = LONGEST_PAUSE_S
    names_tasks = False

    def __init__(
        self,
        agent: ExternalAgent,
        credentials: Credentials,
        ways: OutgoingConfig,
        thread: LoopThread,
        tunnel: Tunnel | None = None,
    ) -> None:
        interface = pb.AgentInterface(
            url=agent.endpoint,
            protocol_binding=agent.binding,
            protocol_version=agent.protocol_version,
            tenant=agent.tenant,
        )
        card = pb.AgentCard(name=agent.name, supported_interfaces=[interface])
        card.capabilities.streaming = agent.streaming
        card.capabilities.extended_agent_card = True
        self.thread = thread
        self._agent = agent
        self._credentials = credentials
        self._ways = ways
        self._http = http_client(credentials, ways, None if tunnel is None else str(tunnel.local))
        self._tunnel = tunnel
        # Sends are not streamed: so their answer has the task's id, which must be durable before all else.
        bindings = list(BINDINGS)
        self._calls = ClientFactory(
            ClientConfig(httpx_client=self._http, streaming=False, polling=True, supported_protocol_bindings=bindings)
        ).create(card)
        self._streams = ClientFactory(
            ClientConfig(httpx_client=self._http, streaming=True, supported_protocol_bindings=bindings)
        ).create(card)

    @property
    def streaming(self) -> bool:
        """True if a task that is already under way there can be followed."""
        return self._agent.streaming and not self.streams_sends

    @property
    def streams_sends(self) -> bool:
        """True if a message is sent by `stream`, and its task is followed in no other way: servers of 0.3 store every
        piece twice if a client subscribes to a task again that its sender was or is still served."""
        return self._agent.streaming and self._agent.protocol_version.startswith("0.")

    @property
    def own(self) -> bool:
        """True for a host of the user's own: it may be away for any time, and sends are idempotent."""
        return self._tunnel is not None

    async def wait_up(self) -> None:
        """Waits until there is a connection."""
        if self._tunnel is not None:
            await self._tunnel.wait_up()

    @beside
    async def close(self) -> None:
        await self._http.aclose()

    @beside
    async def look(self) -> Found:
        return await look_again(self._agent, self._credentials, self._ways)

    @beside
    async def send(
        self, message: Message, *, metadata: dict[str, Any], task_id: str = "", context_id: str = "", key: str = ""
    ) -> Snapshot:
        """Sends the message once. By `key` the other daemon knows that a repeated message is the same one."""
        headers = headers_of(metadata) | ({KEY_HEADER: key} if key else {})
        context = ClientCallContext(timeout=SEND_S, service_parameters=headers or None)
        request = self._request(message, metadata, task_id, context_id)
        request.configuration.return_immediately = True
        with self._calling(asked=True):
            async for answer in self._calls.send_message(request, context=context):
                if answer.HasField("task"):
                    return snapshot_of(answer.task)
                if answer.HasField("message"):
                    return answered(answer.message)
        raise RemoteRefused(f"{self._agent.endpoint} answered with neither a task nor a message")

    @streaming_beside
    async def stream(
        self, message: Message, *, metadata: dict[str, Any], task_id: str = "", context_id: str = "", key: str = ""
    ) -> AsyncGenerator[Snapshot | ArtifactPiece]:
        """Sends the message, and yields the updates of its task."""
        request = self._request(message, metadata, task_id, context_id)
        with self._calling(asked=True):
            context = ClientCallContext(timeout=SILENCE_S, service_parameters=headers_of(metadata) or None)
            stream = self._streams.send_message(request, context=context)
            try:
                async for update in stream:
                    yield update_of(update)
            finally:
                if isinstance(stream, AsyncGenerator):
                    await stream.aclose()

    def _request(
        self, message: Message, metadata: dict[str, Any], task_id: str, context_id: str
    ) -> pb.SendMessageRequest:
        """Returns the request. Some servers of 0.3 (fasta2a of pydantic-ai 1) demand the accepted output modes: it
        names all of the agent's."""
        sent = outgoing(message, task_id=task_id, context_id=context_id, metadata=metadata)
        request = pb.SendMessageRequest(message=sent)
        if self._agent.protocol_version.startswith("0."):
            request.configuration.accepted_output_modes.extend(self._agent.output_modes)
        return request

    @beside
    async def get(self, task_id: str) -> Snapshot:
        with self._calling():
            return snapshot_of(await self._calls.get_task(pb.GetTaskRequest(id=task_id), context=_call()))

    @beside
    async def cancel(self, task_id: str) -> Snapshot:
        with self._calling():
            return snapshot_of(await self._calls.cancel_task(pb.CancelTaskRequest(id=task_id), context=_call()))

    @beside
    async def find(self, message_id: str, key: str = "") -> Snapshot | None:
        """Returns the task that was made of the message, None if no task was made. Raises RemoteRefused if that cannot
        be found out: 0.3 has no list of tasks."""
        request = pb.ListTasksRequest(page_size=LISTED, include_artifacts=True)
        with self._calling():
            listed = await self._calls.list_tasks(request, context=_call())
            for task in listed.tasks:
                if any(message.message_id == message_id for message in task.history):
                    return snapshot_of(task)
            if len(listed.tasks) >= LISTED or any(not task.history for task in listed.tasks):
                raise RemoteRefused(
                    f"{self._agent.endpoint} does not say for all its tasks which messages they come from"
                )
        return None

    @streaming_beside
    async def follow(self, task_id: str) -> AsyncGenerator[Snapshot | ArtifactPiece]:
        """Yields the texts and states of the task up to the end of the stream."""
        with self._calling():
            context = ClientCallContext(timeout=SILENCE_S)
            stream = self._streams.subscribe(pb.SubscribeToTaskRequest(id=task_id), context=context)
            try:
                async for update in stream:
                    yield update_of(update)
            finally:
                if isinstance(stream, AsyncGenerator):
                    await stream.aclose()

    @beside
    async def extended_card(self) -> pb.AgentCard:
        """Returns the card that the agent shows to those it knows."""
        with self._calling():
            return await self._calls.get_extended_agent_card(pb.GetExtendedAgentCardRequest(), context=_call())

    @contextlib.contextmanager
    def _calling(self, *, asked: bool = False) -> Iterator[None]:
        with self._credentials.kept(), _as_own_errors(self._agent.endpoint, asked=asked):
            yield


def _call() -> ClientCallContext:
    return ClientCallContext(timeout=CALL_S)


@contextlib.contextmanager
def _as_own_errors(url: str, *, asked: bool = False) -> Iterator[None]:
    """Turns the errors of the SDK and of httpx into ours. `asked`: the request has an effect if it arrives."""
    try:
        yield
    except ExternalError:
        raise
    except httpx.HTTPError as error:
        raise unreachable(url, error, asked=asked) from error
    except A2AClientError as error:
        raise _of_client(url, error, asked=asked) from error
    except NotImplementedError as error:
        raise RemoteRefused(f"{url} cannot do that: {error}", remote="UNSUPPORTED") from error
    except A2AError as error:
        name = "TASK_NOT_FOUND" if isinstance(error, TaskNotFoundError) else type(error).__name__
        raise RemoteRefused(f"{url} says: {str(error)[:TEXT_SHOWN]}", remote=name) from error
    except UNREADABLE as error:
        took = "was given the message, and " if asked else ""
        raise RemoteRefused(
            f"{url} {took}sent an answer that is not A2A: {str(error)[:TEXT_SHOWN]}", remote="INVALID"
        ) from error


def _of_client(url: str, error: A2AClientError, *, asked: bool) -> ExternalError:
    cause = error.__cause__
    if isinstance(cause, httpx.HTTPStatusError):
        later = cause.response.headers.get("Retry-After")
        return of_status(url, cause.response.status_code, asked=asked, later=later)
    if isinstance(cause, httpx.HTTPError):
        return unreachable(url, cause, asked=asked)
    return RemoteRefused(f"{url} says: {str(error)[:TEXT_SHOWN]}", remote=type(error).__name__)
