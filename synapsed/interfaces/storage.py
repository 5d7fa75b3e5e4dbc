"""What the supervisor and the streams ask of the store."""

import sqlite3
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from synapsed.documents.budget import Budget, Large
from synapsed.model.answered_tasks import HeardEnds
from synapsed.model.events import Event, NewEvent
from synapsed.model.message_excerpt import Said
from synapsed.model.records import AgentRecord, Checkpoint, FollowerState, ReplyRecord, TurnRecord
from synapsed.model.task import Task, TaskState


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """Which tasks; None means any. Agents are those of now: what there was before one is not its own.
    `updated_since` is inclusive, in the form of `clock.iso`. `before` is the
    `task_cursor` of the last task of a page: only tasks that sort after that one are given (newest first).
    `visible_to` is an agent: tasks that it does or has sent. `size`: no more tasks are given after so many characters
    of their JSON, but one at least where there is one."""

    agent_id: str | None = None
    context_id: str | None = None
    states: frozenset[TaskState] | None = None
    updated_since: str | None = None
    limit: int = 50
    before: str | None = None
    visible_to: str | None = None
    size: int | None = None


type Seal = Callable[[str], str]
"""Makes of a text of JSON one whose secrets cannot be read in the file; what is read has them again."""

type Rows = Callable[[sqlite3.Connection, Seal], object]
"""Writes to tables of a part, in the transaction of a commit: in another thread, and perhaps twice, so that it does
nothing else. An IntegrityError fails that commit only."""

type RowsOfTask = Callable[[Task], Callable[[sqlite3.Connection, bool], object] | None]
"""Returns, of a task that is put, what writes to tables of a part with it, as `Rows` does, and is told whether the task
is new; None for nothing."""


PAGE_SIZE = 8 * 1024 * 1024
"""Characters of JSON after which a page of tasks that somebody asks for ends."""


def task_cursor(task: Task) -> str:
    """The cursor with which `TaskFilter.before` goes on after `task`: opaque to clients."""
    return f"{task.updated_at}~{task.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events; None means any. `types` are those of `model.events`, `agents` and `tasks` ids. Agents are those of
    now: of what came before one nothing is its own (`EventLog.born`)."""

    types: frozenset[str] | None = None
    agents: frozenset[str] | None = None
    tasks: frozenset[str] | None = None


EVERY_EVENT = EventFilter()


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events that are read at a time, and the id up to which there are no others."""

    events: list[Event]
    upto: int


class EventLog(Protocol):
    """The one append-only log. Ids grow by one and survive restarts, so that an id is a cursor."""

    @property
    def last_id(self) -> int:
        """Returns the id of the newest event, 0 if the log has no event."""
        ...

    @property
    def room(self) -> Budget:
        """For what is large, and is read to be written to a client."""
        ...

    @property
    def heard(self) -> HeardEnds:
        """Tasks whose end somebody was given who follows or reads that very task."""
        ...

    @property
    def published(self) -> Mapping[str, int]:
        """How many events were written since the log was opened, by type."""
        ...

    def born(self, agent_id: str) -> int:
        """Returns the id of the last event before the agent: older ones with its id are of one that was removed. 0
        where there is no such agent: then all of the id are meant."""
        ...

    async def read(
        self,
        after: int,
        *,
        task_id: str | None = None,
        agent_id: str | None = None,
        limit: int = 500,
        types: frozenset[str] | None = None,
    ) -> list[Event]:
        """At most `limit` events with an id greater than `after`, oldest first; fewer if they are large, but at
        least one if there is one. `types`: only events of these."""
        ...

    async def page(self, after: int, which: EventFilter, *, limit: int, size: int) -> EventPage:
        """At most `limit` events after `after`, fewer once they have `size` characters of JSON; it may have none
        although there are more, as not everything is looked at in one go."""
        ...

    async def changed(self, after: int, which: EventFilter) -> int | None:
        """Returns when there is something after `after`: the id after which such events can be. None: the store is
        closed, and nothing will come."""
        ...

    def gap(self, after: int, *, agent_id: str | None = None) -> int | None:
        """The id up to which events after `after` are not kept any more, None where they all are."""
        ...

    async def open_attention(self, agent_id: str) -> list[Event]:
        """What was said last (`attention`) of each thing that a person is still needed for."""
        ...

    def follow(
        self,
        after: int,
        *,
        task_id: str | None = None,
        agent_id: str | None = None,
        upto: int | None = None,
        reserved: bool = False,
    ) -> AsyncGenerator[Event]:
        """Every such event with an id greater than `after`, until the store is closed, or up to the event `upto`. A
        pull view: a slow reader costs nothing but its cursor. With `reserved` a large event is read when there is
        `room` for it, which it takes until the next is asked for. Leave it by `aclosing`."""
        ...


class Store(Protocol):
    """Durable state. Every method is safe to cancel; a commit that was begun completes. Where the database refuses,
    StoreError is raised (`details["reason"]`: `full`, `corrupt`, `busy`, `io`, …), nothing of that call is stored, and
    later calls work again when the cause is gone.

    What is put is taken as it is at the call. Tasks and records are given out as fresh objects; an event that is read
    is shared by its readers and must not be changed."""

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
        """One transaction: tasks and agents are put whole, `turn` and `reply` are put, the turn of task `turn_ended`
        and the reply of task `reply_over` are removed, events are appended, the rows of `also` changed. Returns the
        events with their ids, after they are durable against kill -9, and `durable`, against a power failure. Commits
        are done in the order of the calls. The tasks of `turn` and `reply` must be known."""
        ...

    def with_tasks(self, rows: RowsOfTask, *, durable: bool = False, after: Callable[[], None] | None = None) -> None:
        """Has `rows` asked of each task that is put from now on. A commit in which it has some is `durable`, and
        followed by a call of `after` in the event loop."""
        ...

    async def read[T](self, query: Callable[[sqlite3.Connection], T]) -> T:
        """The value of `query`, run in another thread on one snapshot of what is committed."""
        ...

    async def agents(self) -> list[AgentRecord]: ...

    async def delete_agent(self, agent_id: str, events: Sequence[NewEvent] = ()) -> None:
        """Forget the agent and its checkpoint; its tasks stay. The next agent with that id is another one."""
        ...

    async def task(self, task_id: str) -> Task | None: ...

    async def committed(self, task_id: str) -> Task | None:
        """The task as it is in the database. Whoever has just read a row there that tells of a change of the task
        needs this: `task` may still give the one before, for the moment between a commit and its being shown."""
        ...

    async def task_metadata(self, task_id: str) -> dict[str, Any]:
        """The task's metadata, without what else there is of it, which may be large; empty where it is gone."""
        ...

    async def is_former(self, task_id: str, agent_id: str) -> bool:
        """Whether the task was there before the agent, so that it can only be of one that had its id."""
        ...

    async def tasks(self, which: TaskFilter) -> tuple[list[Task], int]:
        """The tasks, most recently updated first, and how many there are without `limit` and `before`. Raises
        InvalidRequest for what is no cursor."""
        ...

    async def weigh(self, which: str | TaskFilter) -> list[Large]:
        """What is large of the task, or of those whose ids begin so, or of the tasks that `tasks` would give. Raises
        InvalidRequest for what is no cursor."""
        ...

    async def has_tasks(self, which: TaskFilter) -> bool:
        """Whether there is such a task, without reading one; `limit` and `size` do not count."""
        ...

    async def find_tasks(
        self, prefix: str, limit: int, *, agent_id: str | None = None, visible_to: str | None = None
    ) -> list[str]:
        """At most `limit` ids of tasks that begin with `prefix`, sorted; `agent_id` and `visible_to` are those of
        `TaskFilter`."""
        ...

    async def open_tasks(self) -> list[Task]:
        """Every task not in a terminal state, in order of arrival."""
        ...

    async def turns(self) -> list[TurnRecord]: ...

    async def replies(self) -> list[ReplyRecord]: ...

    async def said(self, task_id: str) -> Said | None:
        """The task's message, as much of it as is looked at for moods."""
        ...

    async def follower(self, name: str) -> FollowerState | None:
        """None for one that is new."""
        ...

    async def keep_follower(
        self,
        name: str,
        state: FollowerState,
        *,
        events: Sequence[NewEvent] = (),
        others: Mapping[str, FollowerState] | None = None,
    ) -> None:
        """How far it, and `others` with it, have come in the log, with the events that tell of what it did."""
        ...

    async def forget_follower(self, name: str) -> None:
        """Removes what the follower `name` kept; does nothing if it kept nothing."""
        ...

    async def save_checkpoint(self, agent_id: str, checkpoint: Checkpoint) -> None:
        """Replaces the one before; dropped where the agent is not (or no longer) known."""
        ...

    async def checkpoint(self, agent_id: str) -> Checkpoint | None: ...
