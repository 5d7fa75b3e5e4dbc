"""A `Store` and `EventLog` in memory, held to the contract by tests/store/test_store_contract.py."""

import asyncio
import itertools
import sqlite3
import weakref
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from synapsed.clock import Clock, SystemClock
from synapsed.documents.budget import Budget, Large
from synapsed.documents.writing import LARGE, has_large
from synapsed.errors import InvalidRequest, StoreError
from synapsed.interfaces import EventFilter, EventPage, NewEvent, Rows, RowsOfTask, TaskFilter, task_cursor
from synapsed.model.answered_tasks import HeardEnds, is_end
from synapsed.model.events import AttentionChanged, Event, parse_event
from synapsed.model.records import AgentRecord, Checkpoint, FollowerState, ReplyRecord, TurnRecord
from synapsed.model.sender import sender_id_of
from synapsed.model.task import Said, Task
from synapsed.store.schema import migrate

__all__ = ["MemoryEventLog", "MemoryStore"]


class MemoryEventLog:
    """The log as a list: an event's id is its place in it, from 1."""

    def __init__(self) -> None:
        self.all: list[Event] = []
        self.room = Budget()
        self.heard = HeardEnds()
        self.births: dict[str, int] = {}
        self.removed = 0
        """Id up to which events are said not to be kept any more."""
        self._changed = asyncio.Event()
        self._closed = False

    @property
    def last_id(self) -> int:
        return len(self.all)

    @property
    def published(self) -> Mapping[str, int]:
        return Counter(event.data.type for event in self.all)

    def born(self, agent_id: str) -> int:
        return self.births.get(agent_id, 0)

    async def read(
        self,
        after: int,
        *,
        task_id: str | None = None,
        agent_id: str | None = None,
        limit: int = 500,
        types: frozenset[str] | None = None,
    ) -> list[Event]:
        after = max(after, self.born(agent_id or ""))
        found = (
            event
            for event in self.all[max(after, 0) :]
            if task_id in (None, event.task_id)
            and agent_id in (None, event.agent_id)
            and (types is None or event.data.type in types)
        )
        return list(itertools.islice(found, max(limit, 0)))

    async def page(self, after: int, which: EventFilter, *, limit: int, size: int) -> EventPage:
        events: list[Event] = []
        for event in self.all[max(after, 0) :]:
            if len(events) == limit or sum(len(known.data.model_dump_json()) for known in events) >= size:
                return EventPage(events, events[-1].id)
            if _wanted(which, event) and (which.agents is None or event.id > self.born(event.agent_id)):
                events.append(event)
        return EventPage(events, max(after, self.last_id))

    async def changed(self, after: int, which: EventFilter) -> int | None:
        while after >= self.last_id:
            if self._closed:
                return None
            await self._changed.wait()
        return after

    async def open_attention(self, agent_id: str) -> list[Event]:
        last = {
            event.data.id: event
            for event in self.all
            if event.agent_id == agent_id and isinstance(event.data, AttentionChanged)
            if event.id > self.born(agent_id)
        }
        return [
            event
            for event in last.values()
            if isinstance(event.data, AttentionChanged) and event.data.state == "opened"
        ]

    def gap(self, after: int, *, agent_id: str | None = None) -> int | None:
        return self.removed if self.removed > after else None

    async def follow(
        self,
        after: int,
        *,
        task_id: str | None = None,
        agent_id: str | None = None,
        upto: int | None = None,
        reserved: bool = False,
    ) -> AsyncGenerator[Event]:
        while True:
            changed = self._changed
            for event in await self.read(after, task_id=task_id, agent_id=agent_id, limit=len(self.all)):
                if upto is not None and event.id > upto:
                    return
                size = len(event.model_dump_json()) if reserved else 0
                lease = await self.room.take(("event", event.id), size) if size >= LARGE else None
                if task_id is not None and is_end(event):
                    self.heard.add(task_id)
                try:
                    yield event
                finally:
                    if lease is not None:
                        lease.release()
                after = event.id
            if self._closed or upto is not None:
                return
            await changed.wait()

    def append(self, events: Sequence[Event]) -> None:
        self.all.extend(events)
        self._wake()

    def close(self) -> None:
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


class MemoryStore:
    """Keeps everything by value. `refuse` is raised by every write while it is set."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.refuse: StoreError | None = None
        self._clock = clock or SystemClock()
        self._log = MemoryEventLog()
        self._tasks: dict[str, Task] = {}
        self._turns: dict[str, TurnRecord] = {}
        self._agents: dict[str, AgentRecord] = {}
        self._born_task: dict[str, int] = {}
        self._replies: dict[str, ReplyRecord] = {}
        self._checkpoints: dict[str, Checkpoint] = {}
        self._followers: dict[str, FollowerState] = {}
        self._with_tasks: list[tuple[RowsOfTask, Callable[[], None] | None]] = []
        self._closed = False

    @property
    def events(self) -> MemoryEventLog:
        return self._log

    async def close(self) -> None:
        self._closed = True
        self._log.close()

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
        await self._write()
        known = {*self._tasks, *(task.id for task in tasks)}
        if any(record is not None and record.task_id not in known for record in (turn, reply)):
            raise StoreError("no such task for this turn or reply", reason="constraint")
        told = self._put_rows(tasks, also)
        for agent in agents:
            if agent.id not in self._agents:
                self._log.births[agent.id] = self._log.last_id
                self._born_task[agent.id] = len(self._tasks)
            self._agents[agent.id] = _copy(agent)
        for task in tasks:
            self._tasks[task.id] = _copy(task)
        if turn_ended is not None:
            self._turns.pop(turn_ended, None)
        if turn is not None:
            self._turns[turn.task_id] = _copy(turn)
        if reply_over is not None:
            self._replies.pop(reply_over, None)
        if reply is not None:
            self._replies[reply.task_id] = _copy(reply)
        found = self._append(events)
        for after in told:
            after()
        return found

    async def keep_follower(
        self,
        name: str,
        state: FollowerState,
        *,
        events: Sequence[NewEvent] = (),
        others: Mapping[str, FollowerState] | None = None,
    ) -> None:
        await self._write()
        self._followers |= {name: state} | dict(others or {})
        self._append(events)

    async def forget_follower(self, name: str) -> None:
        await self._write()
        self._followers.pop(name, None)

    async def follower(self, name: str) -> FollowerState | None:
        self._check_open()
        return self._followers.get(name)

    # --- tables of parts

    @cached_property
    def tables(self) -> sqlite3.Connection:
        """In a database that has nothing else."""
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        weakref.finalize(self, connection.close)
        migrate(connection)
        return connection

    def with_tasks(self, rows: RowsOfTask, *, durable: bool = False, after: Callable[[], None] | None = None) -> None:
        self._with_tasks.append((rows, after))

    async def read[T](self, query: Callable[[sqlite3.Connection], T]) -> T:
        self._check_open()
        return query(self.tables)

    def _put_rows(self, tasks: Sequence[Task], also: Sequence[Rows]) -> set[Callable[[], None]]:
        """All of it, or nothing. Returns who is told of it."""
        asked = ((task, rows(task), after) for task in tasks for rows, after in self._with_tasks)
        of_tasks = [(task, write, after) for task, write, after in asked if write is not None]
        if not of_tasks and not also:
            return set()
        try:
            with self.tables:
                for task, write, _ in of_tasks:
                    write(self.tables, task.id not in self._tasks)
                for rows in also:
                    rows(self.tables, str)
        except sqlite3.IntegrityError as error:
            raise StoreError(str(error), reason="constraint") from error
        return {after for *_, after in of_tasks if after is not None}

    async def agents(self) -> list[AgentRecord]:
        self._check_open()
        return [_copy(agent) for agent in self._agents.values()]

    async def delete_agent(self, agent_id: str, events: Sequence[NewEvent] = ()) -> None:
        await self._write()
        self._agents.pop(agent_id, None)
        self._log.births.pop(agent_id, None)
        self._born_task.pop(agent_id, None)
        self._checkpoints.pop(agent_id, None)
        self._append(events)

    async def task(self, task_id: str) -> Task | None:
        self._check_open()
        task = self._tasks.get(task_id)
        return None if task is None else _copy(task)

    async def is_former(self, task_id: str, agent_id: str) -> bool:
        self._check_open()
        return task_id in list(self._tasks)[: self._born_task.get(agent_id, 0)]

    def _own(self, which: TaskFilter) -> list[Task]:
        """Those that fit, without what was there before the agents."""
        before = max(self._born_task.get(agent or "", 0) for agent in (which.agent_id, which.visible_to))
        return [task for task in list(self._tasks.values())[before:] if _selected(task, which)]

    async def committed(self, task_id: str) -> Task | None:
        return await self.task(task_id)

    async def task_metadata(self, task_id: str) -> dict[str, Any]:
        task = await self.task(task_id)
        return {} if task is None else task.metadata

    async def said(self, task_id: str) -> Said | None:
        task = await self.task(task_id)
        return None if task is None else Said.of(task.model_dump(mode="json"))

    async def tasks(self, which: TaskFilter) -> tuple[list[Task], int]:
        self._check_open()
        if which.before is not None and "~" not in which.before:
            raise InvalidRequest(f"{which.before!r} is not a cursor")
        found = self._own(which)
        found.sort(key=lambda task: (task.updated_at, task.id), reverse=True)
        page = [task for task in found if which.before is None or _place(task_cursor(task)) < _place(which.before)]
        given: list[Task] = []
        size = 0
        for task in page[: max(which.limit, 0)]:
            given.append(_copy(task))
            size += len(task.model_dump_json())
            if which.size is not None and size >= which.size:
                break
        return given, len(found)

    async def weigh(self, which: str | TaskFilter) -> list[Large]:
        if isinstance(which, TaskFilter):
            return self._large((await self.tasks(which))[0])
        ids = [which] if which in self._tasks else await self.find_tasks(which, 2)
        return self._large([self._tasks[found] for found in ids])

    def _large(self, tasks: Sequence[Task]) -> list[Large]:
        written = [(task.id, task.model_dump_json()) for task in tasks if has_large(task)]
        return [Large(task_id, len(data), data) for task_id, data in written if len(data) >= LARGE]

    async def has_tasks(self, which: TaskFilter) -> bool:
        return bool((await self.tasks(replace(which, limit=1, size=None)))[0])

    async def find_tasks(
        self, prefix: str, limit: int, *, agent_id: str | None = None, visible_to: str | None = None
    ) -> list[str]:
        self._check_open()
        which = TaskFilter(agent_id=agent_id, visible_to=visible_to)
        found = (task.id for task in self._own(which) if task.id.startswith(prefix))
        return sorted(found)[: max(limit, 0)]

    async def open_tasks(self) -> list[Task]:
        self._check_open()
        return [_copy(task) for task in self._tasks.values() if not task.terminal]

    async def turns(self) -> list[TurnRecord]:
        self._check_open()
        return [_copy(turn) for turn in self._turns.values()]

    async def replies(self) -> list[ReplyRecord]:
        self._check_open()
        return [_copy(reply) for reply in self._replies.values()]

    async def save_checkpoint(self, agent_id: str, checkpoint: Checkpoint) -> None:
        await self._write()
        if agent_id in self._agents:
            self._checkpoints[agent_id] = checkpoint.model_copy(deep=True)

    async def checkpoint(self, agent_id: str) -> Checkpoint | None:
        self._check_open()
        checkpoint = self._checkpoints.get(agent_id)
        return None if checkpoint is None else checkpoint.model_copy(deep=True)

    def _append(self, new: Sequence[NewEvent]) -> list[Event]:
        at = self._clock.wall()
        events = [
            Event(
                id=number,
                at=at,
                agent_id=event.agent_id,
                task_id=event.task_id,
                context_id=event.context_id,
                data=parse_event(event.data.model_dump_json()),
            )
            for number, event in enumerate(new, start=self._log.last_id + 1)
        ]
        self._log.append(events)
        return events

    async def _write(self) -> None:
        self._check_open()
        if self.refuse is not None:
            raise self.refuse

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the store is closed", reason="closed")


def _wanted(which: EventFilter, event: Event) -> bool:
    return (
        (which.tasks is None or event.task_id in which.tasks)
        and (which.agents is None or event.agent_id in which.agents)
        and (which.types is None or event.data.type in which.types)
    )


def _copy[M: (Task, TurnRecord, AgentRecord, ReplyRecord)](model: M) -> M:
    """By way of JSON, as a database would."""
    return type(model).model_validate_json(model.model_dump_json())


def _place(cursor: str) -> tuple[str, ...]:
    return tuple(cursor.split("~", 1))


def _selected(task: Task, which: TaskFilter) -> bool:
    return (
        which.agent_id in (None, task.agent_id)
        and which.context_id in (None, task.context_id)
        and (which.states is None or task.status in which.states)
        and (which.updated_since is None or task.updated_at >= which.updated_since)
        and (which.visible_to is None or which.visible_to in (task.agent_id, sender_id_of(task)))
    )
