"""The JSON of agents that speak the first A2A, from and to our models. Pure. Every value is checked for its type.

A message and its parts have the same form as ours. An artifact is identified by its number, and comes in pieces if
`append` is true; the message in a status is part of the answer only if there is no artifact.
"""

from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from synapsed.a2a_types.partial_answer import ArtifactPiece, Snapshot
from synapsed.a2a_types.spoken import spoken
from synapsed.model.task import Artifact, DataPart, Message, Part, TaskState, TextPart

PIECES_MAX: Final = 2_000
"""Most artifacts of a task, and parts of them, together."""
_STATES: Final = {state.value: state for state in TaskState} | {"cancelled": TaskState.CANCELED}
_PART: Final[TypeAdapter[Part]] = TypeAdapter(Part)


def params_of(message: Message, metadata: dict[str, Any], task_id: str, session_id: str) -> dict[str, Any]:
    """Returns the parameters of a send; the session is the task's own if none is named."""
    sent = message.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"message_id"})
    return {"id": task_id, "sessionId": session_id or task_id, "message": sent, "metadata": metadata}


def task_of(told: Any) -> Snapshot:
    """Returns the task in an answer. Raises ValueError if it has no id, or too many artifacts."""
    task = _object(told)
    task_id = task.get("id")
    if not isinstance(task_id, str) or not task_id:
        raise ValueError("there is no task in it")
    pieces = _list(task.get("artifacts"))
    if len(pieces) + sum(len(_list(_object(one).get("parts"))) for one in pieces) > PIECES_MAX:
        raise ValueError(f"it has more than {PIECES_MAX} artifacts and parts")
    found: list[Artifact] = []
    places: dict[int, int] = {}
    for one in pieces:
        artifact, index, append = _artifact(one, len(found))
        if append and (place := places.get(index)) is not None:
            parts = [*found[place].parts, *artifact.parts]
            found[place] = found[place].model_copy(update={"parts": parts})
        else:
            places[index] = len(found)
            found.append(artifact)
    return _snapshot(task_id, task, [one for one in found if one.parts])


def event_of(told: Any, task_id: str) -> Snapshot | ArtifactPiece:
    """Returns the content of an event of a stream. Raises ValueError if it is no event, or belongs to another task."""
    event = _object(told)
    there = event.get("id")
    if there is not None and there != task_id:
        raise ValueError("it is about another task")
    if isinstance(event.get("artifact"), dict):
        artifact, _, append = _artifact(event["artifact"], None)
        return ArtifactPiece(artifact, append, task_id, "")
    if "status" not in event:
        raise ValueError("there is neither a status nor an artifact in it")
    if isinstance(event.get("artifacts"), list):
        return task_of(event | {"id": task_id})
    return _snapshot(task_id, event, None)


def _snapshot(task_id: str, task: dict[str, Any], artifacts: list[Artifact] | None) -> Snapshot:
    status = _object(task.get("status"))
    state = _STATES.get(str(status.get("state")).lower().replace("-", "_"), TaskState.WORKING)
    session, at = task.get("sessionId"), status.get("timestamp")
    parts = [_part(part) for part in _list(_object(status.get("message")).get("parts"))[:PIECES_MAX]]
    return Snapshot(
        id=task_id,
        context_id=session if isinstance(session, str) else "",
        state=state,
        artifacts=artifacts,
        said=spoken(parts),
        own={},
        mark=at if isinstance(at, str) else "",
    )


def _artifact(told: Any, place: int | None) -> tuple[Artifact, int, bool]:
    """Returns an artifact, its number, and True if it continues an earlier piece with that number. In whole tasks
    several artifacts may have the same number: there the place is the name."""
    artifact = _object(told)
    index, name, metadata = artifact.get("index"), artifact.get("name"), artifact.get("metadata")
    number = index if isinstance(index, int) else 0
    made = Artifact(
        artifact_id=f"artifact-{number if place is None else place}",
        name=name if isinstance(name, str) and name else "output",
        parts=[_part(part) for part in _list(artifact.get("parts"))],
        metadata=metadata if isinstance(metadata, dict) and metadata else None,
    )
    return made, number, artifact.get("append") is True


def _part(told: Any) -> Part:
    """Returns a part; a part of an unknown type is kept as data."""
    try:
        return _PART.validate_python(told)
    except ValidationError:
        text = _object(told).get("text")
        return TextPart(text=text) if isinstance(text, str) else DataPart(data=told)


def _list(told: Any) -> list[Any]:
    return told if isinstance(told, list) else []


def _object(told: Any) -> dict[str, Any]:
    return told if isinstance(told, dict) else {}
