"""Decides the transitions of a task. Pure: every change is a `Commit`, the one transaction that makes it durable.

A change is a function from the present task to the new task and the events about the change. The agent's actor performs
it by committing, and only then relies on it. Processes and time come in only as arguments (`now`: seconds since the
epoch).
"""

import json
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from synapsed.clock import iso
from synapsed.errors import InvalidRequest, UnsupportedMedia
from synapsed.model.events import AgentTransition, NewEvent, TaskArtifactAdded, TaskDelivered, TaskStatusChanged
from synapsed.model.external import alias_of, external_id
from synapsed.model.link import LinkExited
from synapsed.model.records import ReplyRecord, TurnRecord
from synapsed.model.sender import SENDER_TASK, SYSTEM, Tier, sender_of
from synapsed.model.task import (
    ANSWER_ID,
    HISTORY_KEPT,
    INTERRUPTED_STATES,
    NEW_CONVERSATION,
    PROGRESS,
    Artifact,
    DataPart,
    FilePart,
    Message,
    Prompt,
    Task,
    TaskError,
    TaskState,
    TextPart,
)
from synapsed.shared.choices import whole

IN_BACKGROUND = "in_background"
"""Key of a completed task's metadata: the number of background tasks that the program goes on with."""

COMMAND = "command"
"""Key of a task's metadata: its text may be a command of the program."""


def is_command(task: Task) -> bool:
    """Returns True if the text of `task` may be a command of the program."""
    return task.metadata.get(COMMAND) is True


def wants_new_conversation(task: Task) -> bool:
    return task.metadata.get(NEW_CONVERSATION) is True


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The new state of one task, and everything that is written with it."""

    task: Task
    events: tuple[NewEvent, ...] = ()
    turn: TurnRecord | None = None
    turn_ended: str | None = None
    reply: ReplyRecord | None = None


def submitted(task: Task, reply: ReplyRecord | None = None) -> Commit:
    """Returns the commit of a new task; with `reply` an agent waits for the answer."""
    return Commit(task=task, events=(_status(task),), reply=reply)


def accepted(task: Task, reply: ReplyRecord | None = None) -> Commit:
    """Returns the commit of a new task: that of `submitted`, with the event of `passed_on`."""
    commit = submitted(task, reply)
    return replace(commit, events=(*commit.events, *passed_on(task)))


def begun(task: Task, *, launch_id: str, attempt: int, now: float) -> Commit:
    """Returns the commit by which the task leaves the mailbox; durable before a byte of the message is typed."""
    task = _changed(task, now, status=TaskState.WORKING)
    turn = TurnRecord(task_id=task.id, launch_id=launch_id, attempt=attempt)
    return Commit(task=task, events=(_status(task),), turn=turn)


def progressed(task: Task, *, message_id: str, text: str, now: float) -> Commit:
    """Adds an assistant message that was not the last; it replaces an earlier message with the same id."""
    artifact = Artifact(artifact_id=f"{PROGRESS}-{message_id}", name=PROGRESS, parts=[TextPart(text=text)])
    task = _changed(task, now, artifacts=_with(task.artifacts, artifact))
    return Commit(task=task, events=(_event(task, TaskArtifactAdded(artifact=artifact)),))


def said(task: Task, *, text: str, append: bool) -> NewEvent:
    """Returns the event for a piece of an unfinished answer; the task itself gets the answer whole."""
    return _event(task, TaskArtifactAdded(artifact=Artifact.answer(text), append=append, last_chunk=False))


def in_blocks(task: Task, *, blocks: Sequence[Artifact], now: float) -> Commit | None:
    """Returns the commit of the blocks of the unfinished answer, which are kept; None if it has just these."""
    if not (news := _news(task, blocks)):
        return None
    task = _changed(task, now, artifacts=[*_without_blocks(task), *blocks])
    return Commit(task=task, events=tuple(_event(task, data) for data in news))


def completed(
    task: Task,
    *,
    answer: str,
    exact: bool,
    now: float,
    truncated: bool = False,
    missing: int | None = None,
    blocks: Sequence[Artifact] = (),
    told: str = "",
    background: int = 0,
) -> Commit:
    """Completes the task. `blocks` are the pieces of an answer that is more than text; the answer itself is kept whole,
    except for a beginning that was gone from the screen (`truncated`; `missing` is the number of its lines, if known).
    `told` is the text that was sent already: it is not sent again, unless the answer is another text, nor are the
    blocks that the task has already. `background`: number of the program's background tasks that go on."""
    artifacts = [Artifact.answer(answer, truncated=truncated, missing=missing), *blocks]
    append = bool(told) and answer.startswith(told)
    rest = Artifact.answer(answer[len(told) :], truncated=truncated, missing=missing)
    end = TaskArtifactAdded(artifact=rest if append else artifacts[0], append=append)
    news = _news(task, blocks)
    task = _changed(
        task,
        now,
        status=TaskState.COMPLETED,
        exact=exact,
        truncated=truncated,
        missing_lines=missing,
        metadata={**task.metadata, IN_BACKGROUND: background} if background else task.metadata,
        prompt=None,
        artifacts=[*(a for a in _without_blocks(task) if a.artifact_id != ANSWER_ID), *artifacts],
    )
    events = (*(_event(task, data) for data in (end, *news)), _status(task))
    return Commit(task=task, events=events, turn_ended=task.id)


def failed(task: Task, *, code: str, message: str, now: float, details: dict[str, Any] | None = None) -> Commit:
    error = TaskError(code=code, message=message, details=details or {})
    task = _changed(task, now, status=TaskState.FAILED, error=error, prompt=None)
    return Commit(task=task, events=(_status(task, error=error),), turn_ended=task.id)


def undelivered(task: Task, *, reason: str, screen: str, now: float) -> Commit:
    """Fails the task, because the program did not get the message; the program's `screen` shows the reason."""
    message = f"the message could not be delivered: {reason}"
    return failed(task, code="UNDELIVERED", message=message, details={"screen": screen}, now=now)


def canceled(task: Task, *, reason: str, now: float) -> Commit:
    metadata = {**task.metadata, "reason": reason}
    task = _changed(task, now, status=TaskState.CANCELED, metadata=metadata, prompt=None)
    return Commit(task=task, events=(_status(task, reason=reason),), turn_ended=task.id)


def stopped(task: Task, *, reason: str, failure: str, now: float) -> Commit:
    """Ends a task whose turn was stopped: it is canceled, or with `failure` fails, because there was no answer."""
    if failure:
        return failed(task, code="TIMEOUT", message=failure, now=now)
    return canceled(task, reason=reason, now=now)


def waiting(task: Task, *, prompt: Prompt, now: float) -> Commit:
    """Sets the task waiting for a person's answer to the program's prompt."""
    state = TaskState.AUTH_REQUIRED if prompt.type == "login" else TaskState.INPUT_REQUIRED
    task = _changed(task, now, status=state, prompt=prompt)
    return Commit(task=task, events=(_status(task, prompt=prompt),))


def answered(task: Task, *, prompt: Prompt, answer: Message) -> Task:
    """Returns the task with the question and its answer; neither has an event of its own."""
    asked = TextPart(text=whole(prompt.model_dump()))
    question = Message(role="agent", parts=[asked], message_id=f"{task.id}.{prompt.prompt_id}")
    return task.model_copy(update={"exchange": [*task.exchange, question, answer][-HISTORY_KEPT:]})


def has_answer(task: Task, message: Message) -> bool:
    """Returns True if `message` is an answer that the task has already."""
    return any(said.message_id == message.message_id and said.parts == message.parts for said in task.exchange)


def handed_over(task: Task, *, artifact: Artifact, append: bool, last_chunk: bool, now: float) -> Commit:
    """Adds output that the program reported itself: a new artifact, one that replaces another, or more parts of one."""
    known = next((each for each in task.artifacts if each.artifact_id == artifact.artifact_id), None)
    whole = artifact
    if append and known is not None:
        whole = known.model_copy(update={"parts": [*known.parts, *artifact.parts]})
    task = _changed(task, now, artifacts=_with(task.artifacts, whole))
    told = TaskArtifactAdded(artifact=artifact, append=append and known is not None, last_chunk=last_chunk)
    return Commit(task=task, events=(_event(task, told),))


def working_again(task: Task, *, now: float) -> Commit:
    task = _changed(task, now, status=TaskState.WORKING, prompt=None)
    return Commit(task=task, events=(_status(task),))


def returned(task: Task, record: TurnRecord, *, reason: str, now: float) -> Commit:
    """Returns the task to the mailbox, as the program never got its text; the next attempt has its own number."""
    task = _changed(task, now, status=TaskState.SUBMITTED, prompt=None)
    turn = record.model_copy(update={"attempt": record.attempt + 1, "link": {}})
    return Commit(task=task, events=(_status(task, reason=reason),), turn=turn)


def put_off(task: Task, record: TurnRecord, *, reason: str, now: float) -> Commit:
    """Puts the task off, because the program has the message and could not work on it: the task waits, and then the
    program is asked to go on."""
    task = _changed(task, now, status=TaskState.SUBMITTED, prompt=None)
    changes = {"attempt": record.attempt + 1, "link": {}, "continued": record.launch_id}
    return Commit(task=task, events=(_status(task, reason=reason),), turn=record.model_copy(update=changes))


def delivered(task: Task, before: TurnRecord, after: TurnRecord) -> list[NewEvent]:
    """Returns the event for a change of the record from `before` to `after` in which the message was submitted: the
    submit key is known to be written, or the program's channel has taken the message."""
    if _is_delivered(before) or not _is_delivered(after):
        return []
    return [NewEvent.of(task, TaskDelivered(attempt=after.attempt))]


def _is_delivered(record: TurnRecord) -> bool:
    return record.link.get("submit_offset") is not None or record.link.get("taken") is True


def is_submitted(record: TurnRecord) -> bool:
    """Returns True if the program may have the message, which is then never typed again."""
    return bool(record.link.get("submitted"))


def is_being_stopped(record: TurnRecord) -> bool:
    """Returns True if the turn's end was requested; the program may not have got the request yet."""
    return bool(record.link.get("interrupting"))


def waits_for(task: Task, prompt_id: str) -> bool:
    """Returns True if the task waits for an answer to that prompt: it may have another prompt already."""
    asked = task.prompt.prompt_id if task.prompt is not None else prompt_id
    return task.status in INTERRUPTED_STATES and asked == prompt_id


def text_of(message: Message) -> str:
    """Returns the text to type for an answer to a prompt: text as it is, data as JSON, a file by its address. Raises
    InvalidRequest for an empty message, UnsupportedMedia for a file that came by value."""
    pieces = []
    for part in message.parts:
        match part:
            case TextPart():
                pieces.append(part.text)
            case DataPart():
                pieces.append(json.dumps(part.data, ensure_ascii=False, indent=2))
            case FilePart() if part.file.uri is not None:
                pieces.append(f"{part.file.name}: {part.file.uri}" if part.file.name else part.file.uri)
            case FilePart():
                raise UnsupportedMedia("a prompt cannot be answered with a file's content", part="file")
    text = "\n".join(pieces)
    if not text.strip():
        raise InvalidRequest("the message is empty", field="message.parts")
    return text


def describe_exit(exited: LinkExited) -> str:
    """Returns `exit code 7`, `signal SIGKILL`, or the reason why the code is not known."""
    code = exited.exit_code
    if code is None:
        return exited.reason or "exit code unknown"
    return f"exit code {code}" if code >= 0 else f"signal {_signal_name(-code)}"


def exit_details(exited: LinkExited) -> dict[str, Any]:
    """Returns `exit_code` and, if there was one, `signal`, for a task's error."""
    code = exited.exit_code
    details: dict[str, Any] = {"exit_code": code}
    if code is not None and code < 0:
        details["signal"] = _signal_name(-code)
    return details


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _changed(task: Task, now: float, **changes: Any) -> Task:
    return task.model_copy(update={**changes, "updated_at": iso(now)})


def _with(artifacts: Iterable[Artifact], new: Artifact) -> list[Artifact]:
    kept = list(artifacts)
    for index, artifact in enumerate(kept):
        if artifact.artifact_id == new.artifact_id:
            kept[index] = new
            return kept
    return [*kept, new]


def _without_blocks(task: Task) -> list[Artifact]:
    return [artifact for artifact in task.artifacts if not artifact.is_block]


def _news(task: Task, blocks: Sequence[Artifact]) -> list[TaskArtifactAdded]:
    """Returns the changes of the answer's blocks: new and changed ones, and those that are gone, without parts."""
    before = {artifact.artifact_id: artifact for artifact in task.artifacts if artifact.is_block}
    told = [block for block in blocks if before.pop(block.artifact_id, None) != block]
    gone = [artifact.model_copy(update={"parts": []}) for artifact in before.values()]
    return [TaskArtifactAdded(artifact=artifact) for artifact in (*told, *gone)]


def _status(
    task: Task, *, reason: str | None = None, error: TaskError | None = None, prompt: Prompt | None = None
) -> NewEvent:
    return _event(task, TaskStatusChanged(state=task.status, reason=reason, error=error, prompt=prompt))


def _event(task: Task, data: TaskStatusChanged | TaskArtifactAdded) -> NewEvent:
    return NewEvent.of(task, data)


REASON_SHOWN = 200
"""Characters of a message in the reason of a handover."""
_ID_MAX = 128


def passed_on(task: Task) -> tuple[NewEvent, ...]:
    """Returns the event that an agent passed a new task on to another; none for a task of a person, or of synapsed."""
    sender = sender_of(task)
    if sender is None or sender.id == SYSTEM or sender.tier is Tier.PERSON:
        return ()
    outside = sender.tier is Tier.EXTERNAL
    named = outside and alias_of(sender.id) is None
    from_task = task.metadata.get(SENDER_TASK)
    told = AgentTransition(
        from_agent=external_id(sender.id) if named else sender.id,
        to_agent=task.agent_id,
        reason=_beginning(task.message.text) or None,
        kind="external" if outside or alias_of(task) is not None else "message",
        from_task=from_task if isinstance(from_task, str) and len(from_task) <= _ID_MAX else None,
    )
    return (NewEvent.of(task, told),)


def handed_back(record: ReplyRecord, task: Task, *, own_words: bool) -> tuple[NewEvent, ...]:
    """Returns the event that `task`, the asking agent's own, got its reply."""
    if record.asked is None:
        return ()
    end = task.status.value if task.error is None else f"{task.status.value}, {task.error.code}"
    reason = "it replied" if own_words else f"its turn ended: {end}"
    told = AgentTransition(
        from_agent=record.asked, to_agent=record.asker, reason=reason, kind="reply", from_task=record.request
    )
    return (NewEvent.of(task, told),)


def _beginning(text: str) -> str:
    words = " ".join(text[: 4 * REASON_SHOWN].split())
    return words if len(words) <= REASON_SHOWN else f"{words[: REASON_SHOWN - 1]}…"
