"""The JSON of agents that speak as synapse-a2a does, from and to our models. Pure.

Two forms of everything are read: the one that was first asked for (S1, S2, S15: docs/words.md), and that of synapse-a2a
as it is (`{"type", "data": {"content"}}` for an artifact, `metadata.permission` for a question, `data: {"type": "done",
…}` for the end of a stream). Every value is checked for its type.
"""

import hashlib
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from synapsed.a2a_types.partial_answer import ArtifactPiece, Snapshot
from synapsed.model.task import Artifact, DataPart, Message, Part, Prompt, PromptOption, TaskState, TextPart

MARK: Final = "message_id"
"""Member of `metadata.synapsed` that marks a task there as made of a message of ours."""

PIECES_MAX: Final = 2_000
"""Most artifacts of a task, and parts of them, together."""
_STATES: Final = {state.value: state for state in TaskState} | {"cancelled": TaskState.CANCELED}
_TYPES: Final = frozenset({"confirmation", "selection", "text", "password", "permission", "question", "trust", "login"})
_SCREEN: Final = "_context_start"
"""Member of a task's metadata there: its answer is the text of the screen from that point on."""
_REPLIED: Final = "_explicit_reply_recorded"
"""Member of a task's metadata there: true if the program has handed its answer over itself."""
_PART: Final[TypeAdapter[Part]] = TypeAdapter(Part)


def body_of(message: Message, metadata: dict[str, Any]) -> dict[str, Any]:
    """Returns the body of a send. `response_mode` keeps the program from a reply to an address that does not exist."""
    sent = message.model_dump(mode="json", by_alias=True, exclude_none=True)
    given = metadata.get("synapsed")
    own = {**(given if isinstance(given, dict) else {}), MARK: message.message_id}
    return {"message": sent, "metadata": {"response_mode": "silent", **metadata, "synapsed": own}}


def made_of(told: Any, message_id: str) -> bool:
    """Returns True if the task was made of this message."""
    task = _object(told)
    own = _object(_object(task.get("metadata")).get("synapsed"))
    return message_id in (own.get(MARK), _object(task.get("message")).get(MARK))


def snapshot_of(told: Any) -> Snapshot:
    """Returns the task in an answer. Raises ValueError if it has no id, or too many artifacts."""
    task = _object(told)
    task = _object(task["task"]) if isinstance(task.get("task"), dict) else task
    task_id = task.get("id")
    if not isinstance(task_id, str) or not task_id:
        raise ValueError("there is no task in it")
    artifacts = _list(task.get("artifacts"))
    if len(artifacts) + sum(len(_parts(one)) for one in artifacts) > PIECES_MAX:
        raise ValueError(f"it has more than {PIECES_MAX} artifacts and parts")
    found = [artifact_of(one, number) for number, one in enumerate(artifacts, 1)]
    return _snapshot(task_id, task, [artifact for artifact in found if artifact.parts])


def event_of(name: str, told: Any, task_id: str) -> Snapshot | ArtifactPiece | None:
    """Returns the content of an event of a stream, None if it has no use: text on the screen meanwhile is no answer."""
    data = _object(told)
    kind = name if name != "message" else str(data.get("type") or "")
    if isinstance(data.get("data"), dict) and data.get("type") in ("status", "artifact"):
        kind, data = str(data["type"]), data["data"]
    there = _first(data, "taskId", "task_id") or _first(_object(data.get("task")), "id") or task_id
    if kind == "artifact" and isinstance(data.get("artifact"), dict):
        if len(_parts(data["artifact"])) > PIECES_MAX:
            raise ValueError(f"it has more than {PIECES_MAX} parts")
        return ArtifactPiece(artifact_of(data["artifact"], 0), data.get("append") is True, there, "")
    if kind == "done":
        return snapshot_of({**data, "id": there})
    if kind == "status" or "state" in data:
        return _snapshot(there, data, None)
    return None


def _snapshot(task_id: str, task: dict[str, Any], artifacts: list[Artifact] | None) -> Snapshot:
    status = task.get("state", task.get("status"))
    more = status if isinstance(status, dict) else {}
    word = str(more.get("state", status)).lower().replace("-", "_")
    state = _STATES.get(word, TaskState.WORKING)
    error, metadata = _object(task.get("error")), _object(task.get("metadata"))
    prompt = _prompt(task_id, task, more) if state is TaskState.INPUT_REQUIRED else None
    own: dict[str, Any] = {key: task[key] for key in ("exact", "truncated") if isinstance(task.get(key), bool)}
    if isinstance(task.get("missing_lines"), int):
        own["missing_lines"] = task["missing_lines"]
    if "exact" not in own and _SCREEN in metadata and not metadata.get(_REPLIED):
        own["exact"] = False
    if error:
        own["error"] = {"code": str(error.get("code") or "MODEL_ERROR")[:64]}
    if prompt is not None:
        own["prompt"] = prompt.model_dump(mode="json")
    context_id = task.get("context_id")
    return Snapshot(
        id=task_id,
        context_id=context_id if isinstance(context_id, str) else "",
        state=state,
        artifacts=artifacts,
        said=str(error.get("message") or ""),
        own=own,
    )


def artifact_of(told: Any, number: int) -> Artifact:
    """Returns an artifact; `number` is its place among the others, and its id if it has none."""
    artifact = _object(told)
    metadata = artifact.get("metadata")
    parts = [_part(part) for part in artifact["parts"]] if isinstance(artifact.get("parts"), list) else None
    if parts is None:
        data = artifact.get("data")
        content = data.get("content") if isinstance(data, dict) else data
        if isinstance(data, dict) and metadata is None:
            metadata = data.get("metadata")
        whole: Part = TextPart(text=content) if isinstance(content, str) else DataPart(data=data)
        parts = [whole] if content not in (None, "") else []
    name = _first(artifact, "name") or "output"
    return Artifact(
        artifact_id=_first(artifact, "artifact_id", "artifactId") or (f"{name}-{number}" if number else name),
        type=_first(artifact, "type") or "text",
        name=name,
        parts=parts,
        metadata=metadata if isinstance(metadata, dict) and metadata else None,
    )


def _part(told: Any) -> Part:
    """Returns a part; a part of an unknown type is kept as data."""
    try:
        return _PART.validate_python(told)
    except ValidationError:
        text = _object(told).get("text")
        return TextPart(text=text) if isinstance(text, str) else DataPart(data=told)


def _prompt(task_id: str, task: dict[str, Any], status: dict[str, Any]) -> Prompt:
    """Returns the task's question: in the form that was first asked for, as a permission of synapse-a2a's, or as a
    plain one."""
    told = _object(task.get("prompt")) or _object(status.get("message"))
    permission = _object(_object(task.get("metadata")).get("permission"))
    if not told and permission:
        told = {"type": "permission", "prompt": permission.get("pty_context"), "options": ["approve", "deny"]}
    text = str(told.get("prompt") or "The agent waits for input.")
    options = told.get("options")
    mark = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    kind, default = told.get("type"), told.get("default")
    return Prompt.model_validate(
        {
            "prompt_id": _first(told, "prompt_id") or f"{task_id}:{mark}",
            "type": kind if kind in _TYPES else "question",
            "prompt": text,
            "options": [_option(one) for one in options] if isinstance(options, list) else [],
            "default": default if isinstance(default, str) else None,
            "own_words": told.get("own_words") is True,
        }
    )


def _option(told: Any) -> PromptOption:
    key = _first(_object(told), "key", "label") or str(told)
    return PromptOption(key=key, label=_first(_object(told), "label") or key)


def _parts(artifact: Any) -> list[Any]:
    return _list(_object(artifact).get("parts"))


def _list(told: Any) -> list[Any]:
    return told if isinstance(told, list) else []


def _first(data: dict[str, Any], *keys: str) -> str:
    """Returns the first of these members that is a text, and not empty."""
    return next((data[key] for key in keys if isinstance(data.get(key), str) and data[key]), "")


def _object(told: Any) -> dict[str, Any]:
    return told if isinstance(told, dict) else {}
