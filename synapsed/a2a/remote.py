"""One A2A agent elsewhere, through the SDK's client: 1.0 and 0.3, whichever its card says."""

import contextlib
from collections.abc import AsyncGenerator, Iterator
from typing import Any, Final

import httpx
from a2a.client import A2AClientError, ClientCallContext, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError, TaskNotFoundError
from google.protobuf import json_format
from google.protobuf.json_format import ParseError

import synapsed.a2a.free  # noqa: F401 - for what it does to protobuf
from synapsed.a2a.convert import STATES, outgoing, parts_from, struct_dict
from synapsed.a2a.errors import A2aError
from synapsed.a2a.hosts.tunnel import Tunnel
from synapsed.a2a.lookup import BINDINGS, look_again
from synapsed.a2a.wire import (
    CALL_S,
    KEY_HEADER,
    LONGEST_PAUSE_S,
    SEND_S,
    SILENCE_S,
    TEXT_SHOWN,
    ArtifactPiece,
    Found,
    Snapshot,
    http_client,
    of_status,
    unreachable,
)
from synapsed.errors import ExternalError, RemoteRefused
from synapsed.model.external import ExternalAgent
from synapsed.model.task import Artifact, Message, Part, TaskState
from synapsed.model.trace import headers_of

LISTED = 100
"""Tasks that are looked through for one whose answer was lost."""

_UNREADABLE: Final = (A2aError, ParseError, ValueError, TypeError, AttributeError, KeyError, RecursionError)
"""What the SDK raises for an answer of another shape than it expects."""
_STATES: Final = {pb.TaskState.Value(name): state for state, name in STATES.items()}


class Remote:
    """A connection to the agent; `close` it. With `tunnel` it is one of another host of the user's, and what is sent
    there again under the same key is not done again."""

    longest_pause_s = LONGEST_PAUSE_S

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
        self._http = http_client(headers, None if tunnel is None else str(tunnel.local))
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

    async def look(self) -> Found:
        return await look_again(self._agent, self._headers)

    async def send(
        self, message: Message, *, metadata: dict[str, Any], task_id: str = "", context_id: str = "", key: str = ""
    ) -> Snapshot:
        """`key` tells synapsed over there that it is the same message if it comes again."""
        headers = headers_of(metadata) | ({KEY_HEADER: key} if key else {})
        context = ClientCallContext(timeout=SEND_S, service_parameters=headers or None)
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
        self, message: Message, *, metadata: dict[str, Any], task_id: str = "", context_id: str = "", key: str = ""
    ) -> AsyncGenerator[Snapshot | ArtifactPiece]:
        """Send, and follow what becomes of it."""
        request = pb.SendMessageRequest(
            message=outgoing(message, task_id=task_id, context_id=context_id, metadata=metadata)
        )
        with _told(self._agent.endpoint, asked=True):
            context = ClientCallContext(timeout=SILENCE_S, service_parameters=headers_of(metadata) or None)
            stream = self._streams.send_message(request, context=context)
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
        """The task that was made of the message, None if no task was made. Raises RemoteRefused where it is not to be
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

    async def follow(self, task_id: str) -> AsyncGenerator[Snapshot | ArtifactPiece]:
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


def snapshot_from(document: dict[str, Any]) -> Snapshot:
    """A task in ProtoJSON; fields that are not known are passed over. Raises RemoteRefused."""
    with _told("the host", asked=False):
        return _snapshot(json_format.ParseDict(document, pb.Task(), ignore_unknown_fields=True))


def _snapshot(task: pb.Task) -> Snapshot:
    return _at(task.id, task, artifacts=[_artifact(artifact) for artifact in task.artifacts])


def _at(task_id: str, told: pb.Task | pb.TaskStatusUpdateEvent, *, artifacts: list[Artifact] | None) -> Snapshot:
    own = struct_dict(told.metadata).get("synapsed")
    return Snapshot(
        id=task_id,
        context_id=told.context_id,
        state=_STATES.get(told.status.state, TaskState.WORKING),
        artifacts=artifacts,
        said="\n".join(part.text for part in told.status.message.parts if part.text),
        own=own if isinstance(own, dict) else {},
    )


def _update(update: pb.StreamResponse) -> Snapshot | ArtifactPiece:
    """What a stream tells. Of a status only, `artifacts` is None: it says nothing of them."""
    if update.HasField("task"):
        return _snapshot(update.task)
    if update.HasField("message"):
        return _answered(update.message)
    if update.HasField("artifact_update"):
        piece = update.artifact_update
        return ArtifactPiece(_artifact(piece.artifact), piece.append, piece.task_id, piece.context_id)
    return _at(update.status_update.task_id, update.status_update, artifacts=None)


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


@contextlib.contextmanager
def _told(url: str, *, asked: bool = False) -> Iterator[None]:
    """The errors of the SDK and of httpx as ours. `asked`: the request has an effect if it arrives."""
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
    except _UNREADABLE as error:
        raise RemoteRefused(f"{url} answers what is not A2A: {str(error)[:TEXT_SHOWN]}", remote="INVALID") from error


def _of_client(url: str, error: A2AClientError, *, asked: bool) -> ExternalError:
    cause = error.__cause__
    if isinstance(cause, httpx.HTTPStatusError):
        return of_status(url, cause.response.status_code, asked=asked)
    if isinstance(cause, httpx.HTTPError):
        return unreachable(url, cause, asked=asked)
    return RemoteRefused(f"{url} says: {str(error)[:TEXT_SHOWN]}", remote=type(error).__name__)
