"""Receipts and controls, which hosts send to each other as documents, and the fields of a task that they need: written
and read. Does no I/O. Everything that is read came from another host, and is checked. Messages and updates are in
`messages`."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from synapsed.interfaces import given_here
from synapsed.model.external import KEY as EXTERNAL
from synapsed.model.task import Message, Task
from synapsed_fleet.envelope import BadEnvelope, encoded
from synapsed_fleet.names import ID

PERSON: Final = "person"
"""Name of another host's person, before the `@`."""
GONE: Final = {"gone": True}
"""Update of a task that was removed by its age."""
ROUNDS_MAX: Final = 99
IDS_MAX: Final = 1000
"""Most ids in one receipt, or request."""


# --- tasks -----------------------------------------------------------------------------------------------------------


def files_of_task(task: Task, *, answer: bool) -> list[str]:
    """Returns the ids of the files that go with a task's message, or its answer."""
    parts = [part for artifact in task.artifacts for part in artifact.parts] if answer else task.message.parts
    return given_here(parts)


def round_of(task: Task) -> int:
    """Returns the round of work for any host: 1, and one more each time that a host was lost with the work."""
    told = (task.metadata.get(EXTERNAL) or {}).get("round", 1)
    return told if isinstance(told, int) else 1


def lost_with(task: Task) -> list[str]:
    """Returns the hosts that had the work, and were treated as lost with it."""
    told = (task.metadata.get(EXTERNAL) or {}).get("lost")
    return [str(host) for host in told] if isinstance(told, list) else []


def read_round(document: Mapping[str, Any]) -> int:
    """Returns the round of work for any host. Raises BadEnvelope."""
    told = document.get("round", 1)
    if type(told) is not int or not 1 <= told <= ROUNDS_MAX:
        raise BadEnvelope("its round is no number of one")
    return told


# --- receipts --------------------------------------------------------------------------------------------------------


def receipt_body(ids: Sequence[str], refused: Mapping[str, Any]) -> bytes:
    """Returns the body of a receipt. `refused`: code and message of messages that will never be taken."""
    return encoded({"ids": list(ids), "refused": dict(refused)})


def read_receipt(document: Mapping[str, Any]) -> tuple[list[str], dict[str, tuple[str, str]]]:
    """Returns the ids, and code and message of those that were refused. Raises BadEnvelope."""
    ids, refused = document.get("ids"), document.get("refused")
    if not isinstance(ids, list) or len(ids) > IDS_MAX or not all(map(_is_id, ids)):
        raise BadEnvelope("it is no receipt")
    told: dict[str, tuple[str, str]] = {}
    for one, why in (refused if isinstance(refused, dict) else {}).items():
        code, message = (why.get("code"), why.get("message")) if isinstance(why, dict) else (None, None)
        if isinstance(code, str) and isinstance(message, str):
            told[one] = code[:64], message[:2000]
    return ids, told


# --- controls --------------------------------------------------------------------------------------------------------


def cancel_body(task_id: str) -> dict[str, Any]:
    return {"do": "cancel", "task": task_id}


def answer_body(task_id: str, message: Message, prompt_id: str | None) -> dict[str, Any]:
    return {"do": "answer", "task": task_id, "message": message.model_dump(mode="json"), "prompt_id": prompt_id}


def tell_body(task_ids: Sequence[str]) -> dict[str, Any]:
    """Returns the body of a request for the state of these tasks, which this host has sent."""
    return {"do": "tell", "tasks": list(task_ids)}


def unknown_body(task_ids: Sequence[str]) -> dict[str, Any]:
    """Returns the body of the answer that these tasks are not known here."""
    return {"do": "unknown", "tasks": list(task_ids)}


def task_of(document: Mapping[str, Any]) -> str:
    """Returns the task that a control is about. Raises BadEnvelope."""
    if not _is_id(task := document.get("task")):
        raise BadEnvelope("it names no task")
    return str(task)


def tasks_of(document: Mapping[str, Any]) -> list[str]:
    """Returns the tasks that a control is about. Raises BadEnvelope."""
    tasks = document.get("tasks")
    if not isinstance(tasks, list) or len(tasks) > IDS_MAX or not all(map(_is_id, tasks)):
        raise BadEnvelope("it names no tasks")
    return tasks


def _is_id(told: Any) -> bool:
    return isinstance(told, str) and ID.fullmatch(told) is not None


def answer_of(document: Mapping[str, Any]) -> tuple[Message, str | None]:
    """Returns the answer in a control, and the prompt that it is for. Raises BadEnvelope."""
    try:
        message = Message.model_validate(document.get("message"), extra="ignore")
    except ValueError as error:
        raise BadEnvelope("it has no answer") from error
    prompt_id = document.get("prompt_id")
    if prompt_id is not None and not isinstance(prompt_id, str):
        raise BadEnvelope("its prompt has no id")
    return message, prompt_id
