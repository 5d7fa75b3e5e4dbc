"""Converts a task elsewhere from A2A's types to ours. It uses no connection, and loads no client of HTTP."""

from typing import Any, Final

from a2a.types import a2a_pb2 as pb
from google.protobuf import json_format
from google.protobuf.json_format import ParseError

import synapsed.a2a_types.free_json
import synapsed.a2a_types.timestamps  # noqa: F401 - both change protobuf
from synapsed.a2a_types.a2a_errors import A2aError
from synapsed.a2a_types.convert import STATES, parts_from, struct_dict
from synapsed.a2a_types.partial_answer import ArtifactPiece, Snapshot
from synapsed.a2a_types.spoken import spoken
from synapsed.errors import RemoteRefused
from synapsed.model.task import Artifact, Part, TaskState

TEXT_SHOWN: Final = 500
"""Characters of another server's text that an error shows."""
UNREADABLE: Final = (A2aError, ParseError, ValueError, TypeError, AttributeError, KeyError, RecursionError)
"""Errors of the SDK for an answer of another shape than it expects."""
_STATES: Final = {pb.TaskState.Value(name): state for state, name in STATES.items()}


def snapshot_from(document: dict[str, Any]) -> Snapshot:
    """Returns the task in a ProtoJSON document; unknown fields are ignored. Raises RemoteRefused."""
    try:
        return snapshot_of(json_format.ParseDict(document, pb.Task(), ignore_unknown_fields=True))
    except UNREADABLE as error:
        message = f"the host answers what is not A2A: {str(error)[:TEXT_SHOWN]}"
        raise RemoteRefused(message, remote="INVALID") from error


def snapshot_of(task: pb.Task) -> Snapshot:
    return _at(task.id, task, artifacts=[_artifact(artifact) for artifact in task.artifacts])


def _at(task_id: str, told: pb.Task | pb.TaskStatusUpdateEvent, *, artifacts: list[Artifact] | None) -> Snapshot:
    told_own = struct_dict(told.metadata).get("synapsed")
    own = told_own if isinstance(told_own, dict) else {}
    return Snapshot(
        id=task_id,
        context_id=told.context_id,
        state=_STATES.get(told.status.state, TaskState.WORKING),
        artifacts=artifacts,
        said=spoken(parts_from(told.status.message.parts), data="prompt" not in own),
        own=own,
        mark=_mark(told.status),
    )


def _mark(status: pb.TaskStatus) -> str:
    at = status.timestamp.ToNanoseconds() if status.HasField("timestamp") else ""
    return f"{status.message.message_id}/{at}".strip("/")


def update_of(update: pb.StreamResponse) -> Snapshot | ArtifactPiece:
    """Returns an item of a stream. `artifacts` is None for a mere status, which has no artifacts."""
    if update.HasField("task"):
        return snapshot_of(update.task)
    if update.HasField("message"):
        return answered(update.message)
    if update.HasField("artifact_update"):
        piece = update.artifact_update
        return ArtifactPiece(_artifact(piece.artifact), piece.append, piece.task_id, piece.context_id)
    return _at(update.status_update.task_id, update.status_update, artifacts=None)


def answered(message: pb.Message) -> Snapshot:
    """Returns a completed task for an answer that came without a task."""
    artifact = Artifact(artifact_id="message", parts=parts_from(message.parts))
    return Snapshot(message.task_id, message.context_id, TaskState.COMPLETED, [artifact], "", {})


def _artifact(artifact: pb.Artifact) -> Artifact:
    parts: list[Part] = parts_from(artifact.parts)
    metadata = struct_dict(artifact.metadata) if artifact.HasField("metadata") else None
    return Artifact(
        artifact_id=artifact.artifact_id, name=artifact.name or "output", parts=parts, metadata=metadata or None
    )
