"""The Task of `synapsed.model` as the SDK's protobuf types and ProtoJSON, and messages the other way.

What A2A has no place for goes into the task's `metadata.synapsed`: `exact`, `priority`, the error's code and details,
and the prompt with its options.
"""

import base64
import binascii
from typing import Any, Final, Literal

from a2a.types import a2a_pb2 as pb
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

from synapsed.a2a.errors import CONTENT_TYPE_NOT_SUPPORTED, A2aError, invalid_params
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

__all__ = ["STATES", "artifact_update", "message_from", "status_update", "struct_dict", "task_dict"]

STATES: Final[dict[TaskState, int]] = {
    state: pb.TaskState.Value(f"TASK_STATE_{state.value.upper()}") for state in TaskState
}
_TEXT: Final = "text/plain"


# --- ours to A2A -----------------------------------------------------------------------------------------------------


def task_dict(task: Task, *, history_length: int | None = None, artifacts: bool = True) -> dict[str, Any]:
    """The task as ProtoJSON. `history_length`: None for all that there is, 0 for none, N for the last N."""
    message = pb.Task(
        id=task.id,
        context_id=task.context_id,
        status=_status(task.status, task.updated_at, _said(task.id, task.context_id, task.prompt, task.error)),
        artifacts=[_artifact(artifact) for artifact in task.artifacts] if artifacts else [],
        history=[_user_message(task)] if history_length is None or history_length > 0 else [],
        metadata=_metadata(task),
    )
    return _with_milliseconds(json_format.MessageToDict(message), task.updated_at)


def status_update(event: Event, data: TaskStatusChanged, context_id: str) -> dict[str, Any]:
    """A `statusUpdate` of a stream."""
    task_id, at = event.task_id or "", iso(event.at)
    extra = {"event_id": event.id, **_problem(data.error), **_prompt(data.prompt)}
    if data.reason is not None:
        extra["reason"] = data.reason
    message = pb.TaskStatusUpdateEvent(
        task_id=task_id,
        context_id=context_id,
        status=_status(data.state, at, _said(task_id, context_id, data.prompt, data.error)),
        metadata=_struct({"synapsed": extra}),
    )
    return {"statusUpdate": _with_milliseconds(json_format.MessageToDict(message), at)}


def artifact_update(event: Event, data: TaskArtifactAdded, context_id: str) -> dict[str, Any]:
    """An `artifactUpdate` of a stream."""
    message = pb.TaskArtifactUpdateEvent(
        task_id=event.task_id or "",
        context_id=context_id,
        artifact=_artifact(data.artifact),
        append=data.append,
        last_chunk=data.last_chunk,
        metadata=_struct({"synapsed": {"event_id": event.id}}),
    )
    return {"artifactUpdate": json_format.MessageToDict(message)}


def _with_milliseconds(document: dict[str, Any], at: str) -> dict[str, Any]:
    """ProtoJSON leaves the fraction out at a whole second; the specification (5.6.1) writes milliseconds always."""
    document["status"]["timestamp"] = at
    return document


def _status(state: TaskState, at: str, said: pb.Message | None) -> pb.TaskStatus:
    timestamp = Timestamp()
    timestamp.FromJsonString(at)
    return pb.TaskStatus(state=pb.TaskState.Name(STATES[state]), message=said, timestamp=timestamp)


def _said(task_id: str, context_id: str, prompt: Prompt | None, error: TaskError | None) -> pb.Message | None:
    """What the agent says with its state: the question it waits with, or why it failed."""
    parts: list[pb.Part]
    if prompt is not None:
        key = prompt.prompt_id
        parts = [pb.Part(text=prompt.prompt or "The agent waits for input.", media_type=_TEXT)]
        if prompt.options:
            parts.append(pb.Part(data=_value(_prompt(prompt)["prompt"]), media_type="application/json"))
    elif error is not None:
        key = "error"
        parts = [pb.Part(text=error.message or error.code, media_type=_TEXT)]
    else:
        return None
    return pb.Message(
        message_id=f"{task_id}.{key}", context_id=context_id, task_id=task_id, role="ROLE_AGENT", parts=parts
    )


def _user_message(task: Task) -> pb.Message:
    message = task.message
    return pb.Message(
        message_id=message.message_id,
        context_id=task.context_id,
        task_id=task.id,
        role="ROLE_USER" if message.role == "user" else "ROLE_AGENT",
        parts=[_part(part) for part in message.parts],
        metadata=_struct(message.metadata) if message.metadata else None,
    )


def _artifact(artifact: Artifact) -> pb.Artifact:
    metadata = dict(artifact.metadata or {})
    if artifact.type != "text":
        metadata.setdefault("type", artifact.type)
    return pb.Artifact(
        artifact_id=artifact.artifact_id,
        name=artifact.name,
        parts=[_part(part) for part in artifact.parts],
        metadata=_struct(metadata) if metadata else None,
    )


def _part(part: Part) -> pb.Part:
    metadata = _struct(part.metadata) if part.metadata else None
    if isinstance(part, TextPart):
        return pb.Part(text=part.text, media_type=_TEXT, metadata=metadata)
    if isinstance(part, DataPart):
        return pb.Part(data=_value(part.data), media_type="application/json", metadata=metadata)
    file = part.file
    made = pb.Part(filename=file.name or "", media_type=file.mime_type or "", metadata=metadata)
    if file.bytes is None:
        made.url = file.uri or ""
        return made
    try:
        made.raw = base64.b64decode(file.bytes, validate=True)
    except binascii.Error:
        made.text = file.bytes  # what is no base64 is shown as it came
    return made


def _metadata(task: Task) -> Struct:
    own: dict[str, Any] = {"priority": task.priority, **_problem(task.error), **_prompt(task.prompt)}
    if task.exact is not None:
        own["exact"] = task.exact
    return _struct({**task.metadata, "synapsed": own})


def _problem(error: TaskError | None) -> dict[str, Any]:
    return {} if error is None else {"error": error.model_dump(mode="json")}


def _prompt(prompt: Prompt | None) -> dict[str, Any]:
    return {} if prompt is None else {"prompt": prompt.model_dump(mode="json")}


def _struct(value: dict[str, Any]) -> Struct:
    struct = Struct()
    json_format.ParseDict(value, struct)
    return struct


def _value(value: Any) -> Value:
    message = Value()
    json_format.ParseDict(value, message)
    return message


# --- A2A to ours -----------------------------------------------------------------------------------------------------


def struct_dict(struct: Struct) -> dict[str, Any]:
    """A Struct as the JSON it came as; whole numbers are integers again."""
    document: dict[str, Any] = json_format.MessageToDict(struct)
    return document


def message_from(message: pb.Message) -> Message:
    """A user's message. Raises A2aError: -32602 for what is missing, -32005 where no part of it can be typed."""
    if not message.message_id:
        raise invalid_params("message.messageId", "is required")
    if message.role != pb.Role.ROLE_USER:
        raise invalid_params("message.role", "must be ROLE_USER")
    if not message.parts:
        raise invalid_params("message.parts", "must not be empty")
    parts = [_part_from(part, index) for index, part in enumerate(message.parts)]
    if not any(isinstance(part, TextPart) and part.text.strip() for part in parts):
        raise A2aError(CONTENT_TYPE_NOT_SUPPORTED, "a message needs a text part that is not blank: it is typed")
    role: Literal["user", "agent"] = "user"
    metadata = struct_dict(message.metadata) if message.HasField("metadata") else None
    return Message(role=role, parts=parts, message_id=message.message_id, metadata=metadata)


def _part_from(part: pb.Part, index: int) -> Part:
    metadata = struct_dict(part.metadata) if part.HasField("metadata") else None
    match part.WhichOneof("content"):
        case "text":
            return TextPart(text=part.text, metadata=metadata)
        case "data":
            return DataPart(data=json_format.MessageToDict(part.data), metadata=metadata)
        case "raw":
            content = FileContent(bytes=base64.b64encode(part.raw).decode("ascii"))
        case "url":
            content = FileContent(uri=part.url)
        case _:
            raise invalid_params(f"message.parts[{index}]", "must have one of text, raw, url, data")
    content.name = part.filename or None
    content.mime_type = part.media_type or None
    return FilePart(file=content, metadata=metadata)
