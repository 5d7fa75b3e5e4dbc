"""Converts the Task of `synapsed.model` to A2A's ProtoJSON, and messages in both directions.

Our own JSON is written directly as it is defined (specification 5.5–5.7), not by way of protobuf messages, which costs
ten times as much; tests/parts/a2a/test_convert.py checks every document with the SDK's types. Received JSON is parsed
by the SDK.

Facts for which A2A has no place go into the task's `metadata.synapsed`: `exact`, `priority`, the error's code and
details, and the prompt with its options. An answer's blocks are left out: they repeat the artifact `answer`, and most
clients join the text of all artifacts.
"""

import base64
import binascii
from collections.abc import Iterable
from typing import Any, Final

from a2a.types import a2a_pb2 as pb
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct, Value

from synapsed.a2a_types.a2a_errors import CONTENT_TYPE_NOT_SUPPORTED, A2aError, invalid_params
from synapsed.a2a_types.free_json import unpacked
from synapsed.clock import iso
from synapsed.model.events import Event, TaskArtifactAdded, TaskStatusChanged
from synapsed.model.task import (
    Artifact,
    DataPart,
    FileContent,
    FilePart,
    Message,
    Part,
    Prompt,
    Task,
    TaskError,
    TaskState,
    TextPart,
)
from synapsed.shared.choices import whole

STATES: Final = {state: f"TASK_STATE_{state.value.upper()}" for state in TaskState}
_ROLES: Final = {"user": "ROLE_USER", "agent": "ROLE_AGENT"}
_TEXT: Final = "text/plain"
_JSON: Final = "application/json"


# --- ours to A2A -----------------------------------------------------------------------------------------------------


def task_dict(task: Task, *, history_length: int | None = None, artifacts: bool = True) -> dict[str, Any]:
    """Returns the task as ProtoJSON. `history_length`: None for all messages, 0 for no messages, N for the last N."""
    document: dict[str, Any] = {
        "id": task.id,
        "contextId": task.context_id,
        "status": _status(task.id, task.context_id, task.status, task.updated_at, task.prompt, task.error),
    }
    if artifacts and (shown := [artifact for artifact in task.artifacts if not artifact.is_block]):
        document["artifacts"] = [_artifact(artifact) for artifact in shown]
    if history_length != 0:
        said = [task.message, *task.exchange]
        document["history"] = [_message(task, message) for message in said[-(history_length or len(said)) :]]
    own: dict[str, Any] = {"priority": task.priority, **_problem(task.error), **_prompt(task.prompt)}
    if task.exact is not None:
        own["exact"] = task.exact
    if (behind := task.waits_behind) is not None:
        own["waitsBehind"] = {"taskId": behind.task, "ahead": behind.ahead, "asks": behind.prompt is not None}
    if task.truncated:
        own |= {"truncated": True, "missing_lines": task.missing_lines}
    document["metadata"] = {**task.metadata, "synapsed": own}
    return document


def status_update(event: Event, data: TaskStatusChanged, context_id: str) -> dict[str, Any]:
    """Returns a `statusUpdate` of a stream."""
    task_id = event.task_id or ""
    own = {"eventId": event.id, **_problem(data.error), **_prompt(data.prompt)}
    if data.reason is not None:
        own["reason"] = data.reason
    return {
        "statusUpdate": {
            "taskId": task_id,
            "contextId": context_id,
            "status": _status(task_id, context_id, data.state, iso(event.at), data.prompt, data.error),
            "metadata": {"synapsed": own},
        }
    }


def artifact_update(event: Event, data: TaskArtifactAdded, context_id: str) -> dict[str, Any]:
    """Returns an `artifactUpdate` of a stream."""
    return {
        "artifactUpdate": {
            "taskId": event.task_id or "",
            "contextId": context_id,
            "artifact": _artifact(data.artifact),
            "append": data.append,
            "lastChunk": data.last_chunk,
            "metadata": {"synapsed": {"eventId": event.id}},
        }
    }


def _status(
    task_id: str, context_id: str, state: TaskState, at: str, prompt: Prompt | None, error: TaskError | None
) -> dict[str, Any]:
    """Returns the status, with a message of the agent: the question that it waits with, or the reason of a failure."""
    status: dict[str, Any] = {"state": STATES[state], "timestamp": at}
    if prompt is None and error is None:
        return status
    if prompt is not None:
        key, text = prompt.prompt_id, whole(prompt.model_dump()) or "The agent waits for input."
    else:
        assert error is not None
        key, text = "error", error.message or error.code
    parts: list[dict[str, Any]] = [{"text": text, "mediaType": _TEXT}]
    if prompt is not None and prompt.options:
        parts.append({"data": prompt.model_dump(mode="json"), "mediaType": _JSON})
    status["message"] = {
        "messageId": f"{task_id}.{key}",
        "contextId": context_id,
        "taskId": task_id,
        "role": "ROLE_AGENT",
        "parts": parts,
    }
    return status


def _message(task: Task, message: Message) -> dict[str, Any]:
    document: dict[str, Any] = {
        "messageId": message.message_id,
        "contextId": task.context_id,
        "taskId": task.id,
        "role": _ROLES[message.role],
        "parts": [_part(part) for part in message.parts],
    }
    if message.metadata:
        document["metadata"] = message.metadata
    return document


def _artifact(artifact: Artifact) -> dict[str, Any]:
    document: dict[str, Any] = {
        "artifactId": artifact.artifact_id,
        "name": artifact.name,
        "parts": [_part(part) for part in artifact.parts],
    }
    metadata = artifact.metadata or {}
    if artifact.type != "text":
        metadata = {"type": artifact.type, **metadata}
    if metadata:
        document["metadata"] = metadata
    return document


def _part(part: Part) -> dict[str, Any]:
    document: dict[str, Any]
    if isinstance(part, TextPart):
        document = {"text": part.text, "mediaType": _TEXT}
    elif isinstance(part, DataPart):
        document = {"data": part.data, "mediaType": _JSON}
    else:
        document = _file(part.file)
    if part.metadata:
        document["metadata"] = part.metadata
    return document


def _file(file: FileContent) -> dict[str, Any]:
    document: dict[str, Any] = {"url": file.uri or ""} if file.bytes is None else _bytes(file.bytes)
    if file.name:
        document["filename"] = file.name
    if file.mime_type:
        document["mediaType"] = file.mime_type
    return document


def _bytes(text: str) -> dict[str, Any]:
    """Returns base64 as the bytes of a part; other text as it came."""
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return {"text": text}
    return {"raw": text}


def _problem(error: TaskError | None) -> dict[str, Any]:
    return {} if error is None else {"error": error.model_dump(mode="json")}


def _prompt(prompt: Prompt | None) -> dict[str, Any]:
    return {} if prompt is None else {"prompt": prompt.model_dump(mode="json")}


# --- A2A to ours -----------------------------------------------------------------------------------------------------


def struct_dict(struct: Struct) -> dict[str, Any]:
    """Returns a Struct as the JSON that was received."""
    document: dict[str, Any] | None = unpacked(struct)
    return _with_integers(json_format.MessageToDict(struct)) if document is None else document


def _data(value: Value) -> Any:
    if value.HasField("struct_value"):
        return struct_dict(value.struct_value)
    return _with_integers(json_format.MessageToDict(value))


def _with_integers(value: Any) -> Any:
    """Returns `value` with whole numbers as integers: protobuf has doubles only."""
    if isinstance(value, dict):
        return {key: _with_integers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_integers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def parts_from(parts: Iterable[pb.Part]) -> list[Part]:
    """Returns those of `parts` that have a content. Raises A2aError."""
    return [_part_from(part, index) for index, part in enumerate(parts) if part.WhichOneof("content")]


def outgoing(message: Message, *, task_id: str = "", context_id: str = "", metadata: dict[str, Any]) -> pb.Message:
    """Returns our message for an agent elsewhere; the ids are those of the other host."""
    document = message_dict(message, task_id=task_id, context_id=context_id, metadata=metadata)
    return json_format.ParseDict(document, pb.Message())


def message_dict(
    message: Message, *, task_id: str = "", context_id: str = "", metadata: dict[str, Any]
) -> dict[str, Any]:
    """Returns the message of `outgoing` as ProtoJSON."""
    return {
        "messageId": message.message_id,
        "role": "ROLE_USER",
        "parts": [_part(part) for part in message.parts],
        "metadata": {**(message.metadata or {}), **metadata},
        "taskId": task_id,
        "contextId": context_id,
    }


def message_from(message: pb.Message) -> Message:
    """Returns a user's message. Raises A2aError: -32602 for a missing field, -32005 for a blank message."""
    if not message.message_id:
        raise invalid_params("message.messageId", "is required")
    if message.role != pb.Role.ROLE_USER:
        raise invalid_params("message.role", "must be ROLE_USER")
    if not message.parts:
        raise invalid_params("message.parts", "must not be empty")
    parts = [_part_from(part, index) for index, part in enumerate(message.parts)]
    metadata = struct_dict(message.metadata) if message.HasField("metadata") else None
    ours = Message(role="user", parts=parts, message_id=message.message_id, metadata=metadata)
    if ours.blank:
        raise A2aError(CONTENT_TYPE_NOT_SUPPORTED, "the message is blank: there is nothing to type")
    return ours


def _part_from(part: pb.Part, index: int) -> Part:
    metadata = struct_dict(part.metadata) if part.HasField("metadata") else None
    match part.WhichOneof("content"):
        case "text":
            return TextPart(text=part.text, metadata=metadata)
        case "data":
            return DataPart(data=_data(part.data), metadata=metadata)
        case "raw":
            content = FileContent(bytes=base64.b64encode(part.raw).decode("ascii"))
        case "url":
            content = FileContent(uri=part.url)
        case _:
            raise invalid_params(f"message.parts[{index}]", "must have one of text, raw, url, data")
    content.name = part.filename or None
    content.mime_type = part.media_type or None
    return FilePart(file=content, metadata=metadata)
