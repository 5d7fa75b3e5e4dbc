"""Interface of the store for the supervisor and the streams."""

import sqlite3
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from synapsed.documents.budget import Budget, Large
from synapsed.model.answered_tasks import HeardEnds
from synapsed.model.events import Event, NewEvent
from synapsed.model.records import AgentRecord, Checkpoint, FollowerState, ReplyRecord, TurnRecord
from synapsed.model.task import Said, Task, TaskState

STORE_RETRY_S = 1.0
"""Pause in seconds before something that the database refused (disk full) is written again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """Filter for tasks; None means any. Tasks of a removed agent with the same id do not count."""

    agent_id: str | None = None
    context_id: str | None = None
    states: frozenset[TaskState] | None = None
    updated_since: str | None = None
    """Inclusive, in the form of `clock.iso`."""
    limit: int = 50
    before: str | None = None
    """`task_cursor` of the last task of a page: only tasks that sort after it are returned (newest first)."""
    visible_to: str | None = None
    """An agent: only tasks that it does or has sent."""
    size: int | None = None
    """Most characters of JSON in the list, which has at least one task if there is one."""


type Seal = Callable[[str], str]
"""Encrypts the secrets in a JSON text before it is written to the file; reading decrypts them."""

type Rows = Callable[[sqlite3.Connection, Seal], object]
"""Writes to tables of a part, in the transaction of a commit. It runs in another thread, and perhaps twice, so it must
do nothing else. With an IntegrityError only that commit fails."""

type RowsOfTask = Callable[[Task], Callable[[sqlite3.Connection, bool], object] | None]
"""Returns the function that writes to tables of a part when the task is stored, as `Rows` does; its bool is True if the
task is new. None: there are no rows for the task."""


PAGE_SIZE = 8 * 1024 * 1024
"""Characters of JSON after which a requested page of tasks ends."""


def task_cursor(task: Task) -> str:
    """Returns the cursor with which `TaskFilter.before` goes on after `task`: opaque to clients."""
    return f"{task.updated_at}~{task.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Filter for events; None means any. `types` are those of `model.events`, `agents` and `tasks` ids. Agents are the
    present ones: events of a removed agent with the same id do not count (`EventLog.born`)."""

    types: frozenset[str] | None = None
    agents: frozenset[str] | None = None
    tasks: frozenset[str] | None = None


EVERY_EVENT = EventFilter()


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events of one read, and the id up to which there are no other matching events."""

    events: list[Event]
    upto: int


class EventLog(Protocol):
    """The one append-only log. Ids grow by one and survive restarts, so that an id is a cursor."""

    @property
    def last_id(self) -> int:
        """Returns the id of the newest event, 0 if the log has no event."""

    @property
    def room(self) -> Budget:
        """Budget for large values that are read to be written to a client."""

    @property
    def heard(self) -> HeardEnds:
        """Tasks whose end was sent to a client that follows or reads that very task."""

    @property
    def published(self) -> Mapping[str, int]:
        """Number of events by type that were written since the log was opened."""

    def born(self, agent_id: str) -> int:
        """Returns the id of the last event before the agent: older events with its id belong to a removed agent. 0 if
        there is no such agent: then all events of the id count."""

    async def read(
        self,
        after: int,
        *,
        task_id: str | None = None,
        agent_id: str | None = None,
        limit: int = 500,
        types: frozenset[str] | None = None,
    ) -> list[Event]:
        """Returns at most `limit` events with an id greater than `after`, oldest first; fewer if they are large, but at
        least one if there is one. `types`: only events of these types."""

    async def page(self, after: int, which: EventFilter, *, limit: int, size: int) -> EventPage:
        """Returns at most `limit` events after `after`, fewer once they have `size` characters of JSON. The page may be
        empty although there are more, because one call does not read the whole log."""

    async def changed(self, after: int, which: EventFilter) -> int | None:
        """Waits until the log may have matching events after `after`, and returns the id after which these can be.
        Returns None if the store is closed: then no more events come."""

    def gap(self, after: int, *, agent_id: str | None = None) -> int | None:
        """Returns the id up to which events after `after` are not kept any more; None if all of them are kept."""

    async def open_attention(self, agent_id: str) -> list[Event]:
        """Returns the last `attention` event of each item for which a person is still needed."""

    def follow(
        self,
        after: int,
        *,
        task_id: str | None = None,
        agent_id: str | None = None,
        upto: int | None = None,
        reserved: bool = False,
    ) -> AsyncGenerator[Event]:
        """Yields every such event with an id greater than `after`, until the store is closed, or up to the event
        `upto`. Events are read when the reader asks for them: a slow reader costs only its cursor. With `reserved` a
        large event is read when there is `room` for it, which it takes until the next one is read. Close the generator
        with `aclosing`."""


class Store(Protocol):
    """Durable state. Every method is safe to cancel; a commit that was begun completes. If the database refuses,
    StoreError is raised (`details["reason"]`: `full`, `corrupt`, `busy`, `io`, …), nothing of that call is stored, and
    later calls work again when the cause is gone.

    Values count as they are at the call. Returned tasks and records are new objects; an event that is read is shared by
    its readers and must not be changed."""

    @property
    def events(self) -> EventLog: ...

    async def commit(
        self,
        *,
        events: Sequence[NewEvent] = (),
        tasks: Sequence[Task] = (),
        turn: TurnRecord | None = None,
        turn_ended: str | None = None,
        agents: Sequence[AgentRecord] = (),
        reply: ReplyRecord | None = None,
        reply_over: str | None = None,
        also: Sequence[Rows] = (),
        durable: bool = False,
    ) -> list[Event]:
        """Commits one transaction: whole tasks and agents, `turn` and `reply` are stored, the turn of task `turn_ended`
        and the reply of task `reply_over` are removed, events are appended, the rows of `also` changed. Returns the
        events with their ids, once they survive kill -9, and with `durable` also a power failure. Commits are done in
        the order of the calls. The tasks of `turn` and `reply` must be known."""

    def with_tasks(self, rows: RowsOfTask, *, durable: bool = False, after: Callable[[], None] | None = None) -> None:
        """Calls `rows` for each task that is stored from now on. `durable`: a commit with such rows survives a power
        failure. After such a commit `after` is called in the event loop."""

    async def read[T](self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Returns the value of `query`, run in another thread on one snapshot of the committed data."""

    async def agents(self) -> list[AgentRecord]: ...

    async def delete_agent(self, agent_id: str, events: Sequence[NewEvent] = ()) -> None:
        """Removes the agent and its checkpoint; its tasks stay. The next agent with that id is another agent."""

    async def task(self, task_id: str) -> Task | None: ...

    async def committed(self, task_id: str) -> Task | None:
        """Returns the task as the database has it. A caller that has just read a row about a change of the task needs
        this: `task` may still return the former state, in the moment between a commit and its publication."""

    async def task_metadata(self, task_id: str) -> dict[str, Any]:
        """Returns the task's metadata without the rest of the task, which may be large; empty if the task is gone."""

    async def is_former(self, task_id: str, agent_id: str) -> bool:
        """Returns True if the task is older than the agent, so that it belongs to a former agent with that id."""

    async def tasks(self, which: TaskFilter) -> tuple[list[Task], int]:
        """Returns the tasks, most recently updated first, and how many there are without `limit` and `before`. Raises
        InvalidRequest for a wrong cursor."""

    async def weigh(self, which: str | TaskFilter) -> list[Large]:
        """Returns the large values of the task with the id `which`, or of the tasks whose ids begin with it, or of the
        tasks that `tasks` would return. Raises InvalidRequest for a wrong cursor."""

    async def has_tasks(self, which: TaskFilter) -> bool:
        """Returns True if there is such a task, without reading it; `limit` and `size` do not count."""

    async def find_tasks(
        self, prefix: str, limit: int, *, agent_id: str | None = None, visible_to: str | None = None
    ) -> list[str]:
        """Returns at most `limit` ids of tasks that begin with `prefix`, sorted; the rest is as in `TaskFilter`."""

    async def open_tasks(self) -> list[Task]:
        """Returns every task not in a terminal state, in order of arrival."""

    async def turns(self) -> list[TurnRecord]: ...

    async def replies(self) -> list[ReplyRecord]: ...

    async def said(self, task_id: str) -> Said | None:
        """Returns the excerpt of the task's message that moods use."""

    async def follower(self, name: str) -> FollowerState | None:
        """Returns the state of the follower (a reader of the log that keeps its place); None for a new one."""

    async def keep_follower(
        self,
        name: str,
        state: FollowerState,
        *,
        events: Sequence[NewEvent] = (),
        others: Mapping[str, FollowerState] | None = None,
    ) -> None:
        """Stores the follower's progress, in one transaction with that of `others` and the events of its actions."""

    async def forget_follower(self, name: str) -> None:
        """Removes the state of the follower `name`, if there is one."""

    async def save_checkpoint(self, agent_id: str, checkpoint: Checkpoint) -> None:
        """Replaces the former checkpoint; does nothing if the agent is not (or no longer) known."""

    async def checkpoint(self, agent_id: str) -> Checkpoint | None: ...
