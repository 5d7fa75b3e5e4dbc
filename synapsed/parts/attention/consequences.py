"""Decides on items that need a person although no program asks: when each begins and ends. Pure.

==========  =============================================  =====================================================
kind        opens when                                     is over when
==========  =============================================  =====================================================
crash_loop  a program ended too often and is tried again   it was stopped, or has run for STABLE_S
            only now and then
failure     a program ended by a failure and is not        it was stopped, or runs
            started again
failure     a task of a person failed, and nobody waited   the person has read the task, or looked at its agent
finished    a task of a person was completed, and nobody   the same, or the agent has finished another one
            waited
==========  =============================================  =====================================================

A person's task is one without a sender: tasks of agents and parts are not. A client that waits gets the task's end: by
a stream of the task, by the answer to a call that blocks, by a notification, or by reading the task. A task that met a
usage limit, or an account that does not work, has an item of its own kind; a task that was stopped needs no person.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from synapsed.model.events import (
    REMOVED,
    AttentionChanged,
    AttentionKind,
    Event,
    NewEvent,
    Origin,
    ProcessState,
    StateChanged,
    TaskStatusChanged,
)
from synapsed.model.sender import sender_of
from synapsed.model.task import Task, TaskState
from synapsed.parts.attention.board import Board, OpenItem

GRACE_S = 1.5
"""Seconds after a task's end in which a client that waits for the task gets it."""

STABLE_S = 60.0
"""Seconds after which a program that had crashed in a loop counts as running."""

QUESTION_MAX = 500
FAILURES_MAX = 10
"""Most failed tasks of one agent that are items; if there are more, the oldest is closed."""

TYPES: Final = frozenset({"agentState", "taskStatus"})
"""Events that have consequences."""

OF_PROCESS: Final[tuple[AttentionKind, ...]] = ("crash_loop", "failure")
OF_TASK: Final[tuple[AttentionKind, ...]] = ("finished", "failure", "sign_in")

_ELSEWHERE: Final = frozenset({"RATE_LIMITED"})
"""Codes of failures that are an item of another kind."""
_AT_REST: Final = frozenset({ProcessState.STOPPED, ProcessState.PARKED, REMOVED})


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts at the time at which an event is looked at: the state of its agent (None: no such agent), its task, and
    True if a client got the task's end, or a person looked at the agent."""

    state: ProcessState | None
    task: Task | None = None
    heard: bool = False


def follows(event: Event, board: Board, facts: Facts) -> list[NewEvent]:
    """Returns the events that follow from `event`, which is GRACE_S old."""
    match event.data:
        case StateChanged() as told:
            return _of_process(event, told, board, facts)
        case TaskStatusChanged(state=TaskState.COMPLETED | TaskState.FAILED) if facts.state is not None:
            return _of_task(event, board, facts)
    return []


def needs_task(event: Event) -> bool:
    """Returns True if `Facts.task` is needed."""
    return isinstance(event.data, TaskStatusChanged) and event.data.state in (TaskState.COMPLETED, TaskState.FAILED)


def stable(board: Board, *, age: Callable[[str, float], float]) -> list[NewEvent]:
    """Returns the events that close crash loops that are over. `age` returns the seconds since a time of an agent."""
    ran = ((item, board.running_since(item.agent_id)) for item in board.items if item.kind == "crash_loop")
    return [closed(item) for item, since in ran if since is not None and age(item.agent_id, since) >= STABLE_S]


def seen(board: Board, read: Iterable[str], looked_at: Iterable[str]) -> list[NewEvent]:
    """Returns the events that close items because a person has read one of these tasks, or looks at one of these
    agents."""
    tasks, agents = frozenset(read), frozenset(looked_at)
    return [
        closed(item, by=Origin("person"))
        for item in board.items
        if item.kind in OF_TASK and not item.asks and (item.task_id in tasks or item.agent_id in agents)
    ]


def closed(item: OpenItem, *, by: Origin | None = None) -> NewEvent:
    """Returns the event that closes the item: put away by `by`, or gone."""
    told = AttentionChanged(
        id=item.id,
        state="gone" if by is None else "answered",
        kind=item.kind,
        question=item.question[:QUESTION_MAX],
        prompt_id=item.prompt_id,
        until=item.until,
        by=by.by if by is not None else None,
        who=by.who if by is not None else None,
        where=by.where if by is not None else None,
    )
    return NewEvent(item.agent_id, told, item.task_id)


def _of_process(event: Event, told: StateChanged, board: Board, facts: Facts) -> list[NewEvent]:
    known = [item for item in board.of(event.agent_id, *OF_PROCESS) if item.task_id is None]
    if told.state == REMOVED:
        return [closed(item) for item in board.items if item.agent_id == event.agent_id]
    if told.state in _AT_REST:
        return [closed(item) for item in known]
    if told.state is ProcessState.RUNNING:
        return [closed(item) for item in known if item.kind == "failure"]
    if told.state is ProcessState.FAILED and not any(item.kind == "crash_loop" for item in known):
        return [*map(closed, known), _opened(event, "crash_loop", told.reason)]
    ended = told.state is ProcessState.EXITED and facts.state is ProcessState.EXITED
    if ended and not told.fine and not known:
        return [_opened(event, "failure", told.reason)]
    return []


def _of_task(event: Event, board: Board, facts: Facts) -> list[NewEvent]:
    task = facts.task
    if task is None or facts.heard or sender_of(task) is not None or task.metadata.get("direction") == "outgoing":
        return []
    if task.status is TaskState.COMPLETED:
        before = board.of(event.agent_id, "finished")
        count = task.metadata.get("in_background")
        beside = f"({count} in the background) " if count else ""
        return [*map(closed, before), _opened(event, "finished", beside + (task.answer or "").lstrip())]
    error = task.error
    if (
        task.status is not TaskState.FAILED
        or error is None
        or error.code in _ELSEWHERE
        or error.details.get("held") == "account"
    ):
        return []
    before = [item for item in board.of(event.agent_id, "failure") if item.task_id is not None]
    surplus = before[: max(0, len(before) + 1 - FAILURES_MAX)]
    return [*map(closed, surplus), _opened(event, "failure", error.message)]


def _opened(event: Event, kind: AttentionKind, question: str) -> NewEvent:
    """Returns the event that opens an item. Its id follows from `event`: it is the same, however often the event is
    read."""
    words = question.strip()[:QUESTION_MAX]
    told = AttentionChanged(id=f"{kind}-{event.id}", state="opened", kind=kind, question=words)
    return NewEvent(event.agent_id, told, event.task_id, event.context_id)
