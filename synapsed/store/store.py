"""The store: durable state behind the `Store` protocol.

Models are encoded as JSON in the event loop, before anything is queued. This is a snapshot (the caller may change the
objects afterwards), made in the cheapest way: the encoder holds the interpreter's lock, so another thread would not
free the loop, and a deep copy costs many times more. Models with large texts become documents first (`store.encoding`),
and the commits after them wait for their encoding.
"""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import structlog
from pydantic_core import PydanticSerializationError

from synapsed.aio import at_once
from synapsed.clock import Clock
from synapsed.documents.budget import Large
from synapsed.documents.writing import Texts
from synapsed.errors import StoreError
from synapsed.interfaces import NewEvent, Rows, RowsOfTask, TaskFilter
from synapsed.model.events import Event
from synapsed.model.events.wire import OF_TASKS
from synapsed.model.records import AgentRecord, Checkpoint, FollowerState, ReplyRecord, TurnRecord
from synapsed.model.task import Said, Task
from synapsed.store.database import Database
from synapsed.store.encoding import EncodedModel, Sealer
from synapsed.store.event_log import RECENT_EVENTS, EventRow, SqliteEventLog, append_events, last_event_id
from synapsed.store.retention import Cut, Pruned, find_cut, prune, removed_ids, shrink
from synapsed.store.task_rows import (
    PartsRows,
    RecentTasks,
    TaskRow,
    find_ids,
    has_tasks,
    is_former,
    put_agents,
    put_tasks,
    select_born,
    select_metadata,
    select_open,
    select_page,
    select_said,
    select_task,
    weigh,
    weigh_page,
)

log = structlog.stdlib.get_logger("synapsed.store")

_KEYS = {"agents": "id", "followers": "name", "replies": "task_id", "turns": "task_id"}
"""Tables of records, and the key column of each."""

RECENT_TASKS_SIZE = 8 * 1024 * 1024
"""Characters of JSON of recently written tasks that are kept in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """The work of one transaction, as rows: it may be applied twice, and in another thread."""

    events: Sequence[EventRow] = ()
    tasks: Sequence[TaskRow] = ()
    gone: Sequence[tuple[str, str]] = ()
    """Tables, and the keys of the rows that are removed there."""
    agents: Sequence[tuple[str, str]] = ()
    """Ids and data of agents that are added, or replaced."""
    kept: Sequence[tuple[str, str, str]] = ()
    """Tables, keys and data of rows that are added, or replaced."""
    also: Sequence[Rows] = ()
    durable: bool = False
    """True if it must outlive a power failure."""

    def encoded(self) -> list[EncodedModel]:
        return [*(row.data for row in self.tasks), *(row.data for row in self.events)]

    @property
    def unfinished(self) -> bool:
        """True while a large text is still to be encoded."""
        return any(encoded.unfinished for encoded in self.encoded())

    @property
    def parts(self) -> set[PartsRows]:
        """Returns the rows of parts that are written with its tasks."""
        return {beside.part for row in self.tasks for beside in row.beside}

    def apply(self, connection: sqlite3.Connection, sealer: Sealer) -> list[int]:
        """Applies the change in the open transaction; returns the ids of the events."""
        for table, key in self.gone:
            connection.execute(f"DELETE FROM {table} WHERE {_KEYS[table]} = ?", (key,))  # noqa: S608 - constants
        put_agents(connection, self.agents, sealer)
        put_tasks(connection, self.tasks, sealer)
        for table, key, data in self.kept:
            column = _KEYS[table]
            connection.execute(
                f"INSERT INTO {table} ({column}, data) VALUES (?, ?) "  # noqa: S608 - constants
                f"ON CONFLICT ({column}) DO UPDATE SET data = excluded.data",
                (key, sealer.seal(data)),
            )
        for rows in self.also:
            rows(connection, sealer.seal)
        return append_events(connection, self.events, sealer)


class SqliteStore:
    """The `Store` on a SQLite file. Make it with `open`, end it with `close`."""

    def __init__(self, database: Database, log: SqliteEventLog, clock: Clock, texts: Texts) -> None:
        self.database = database
        """The database itself, for its counters."""
        self.events = log
        self._clock = clock
        self._recent = RecentTasks(RECENT_TASKS_SIZE)
        self._with_tasks: list[PartsRows] = []
        self._order = asyncio.Lock()
        self._in_order = 0
        self._rescued = False
        self._left: set[str] = set()
        """Agents that were not deleted because the database refused: a later agent with the same id is a new one."""
        self.texts = texts
        """The large texts that are being written, to the database or to clients."""

    @classmethod
    async def open(cls, path: Path, *, clock: Clock, recent_events: int = RECENT_EVENTS) -> Self:
        """Opens the store at `path`, created (0600) if missing; `recent_events` of its log are kept in memory. Raises
        StoreError: damaged, of a newer version, not ours, not writable; `details["reason"]` has the reason."""
        database = await Database.open(path)
        try:
            last_id = await database.read(last_event_id)
            removed = await database.read(removed_ids)
            born = await database.read(select_born)
        except BaseException:
            await database.close()
            raise
        log = SqliteEventLog(database, last_id, removed=removed, born=born, recent=recent_events)
        return cls(database, log, clock, Texts())

    async def rescue(self) -> None:
        """Writes everything again to a path from which the file was removed, now and at the end. Raises StoreError."""
        self._rescued = True
        await self.database.rescue()

    async def close(self) -> None:
        """Finishes the commits that were begun, lets the followers read them and end, closes the file. May be called
        again. Raises StoreError if a database whose file was removed cannot be written again."""
        async with self._order:
            pass  # an encoding that runs was begun before
        await self.database.drain()
        rescued, self._rescued = self._rescued, False
        try:
            if rescued:
                await self.database.rescue()
        finally:
            self.events.close()
            await self.database.close()

    @property
    def failed(self) -> asyncio.Future[str]:
        return self.database.failed

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
        over = {"turns": turn_ended, "replies": reply_over}
        with _encoding():
            rows = [TaskRow.of(task, self.texts, self._with_tasks) for task in tasks]
            change = _Change(
                events=self._event_rows(events),
                tasks=rows,
                gone=[
                    *((table, key) for table, key in over.items() if key is not None),
                    *(("agents", agent.id) for agent in agents if agent.id in self._left),
                ],
                agents=[(agent.id, agent.model_dump_json()) for agent in agents],
                kept=[
                    *([("turns", turn.task_id, turn.model_dump_json())] if turn is not None else ()),
                    *([("replies", reply.task_id, reply.model_dump_json())] if reply is not None else ()),
                ],
                also=also,
                durable=durable or any(beside.part.durable for row in rows for beside in row.beside),
            )
        return await self._write(change, events)

    def with_tasks(self, rows: RowsOfTask, *, durable: bool = False, after: Callable[[], None] | None = None) -> None:
        self._with_tasks.append(PartsRows(rows, durable, after))

    async def read[T](self, query: Callable[[sqlite3.Connection], T]) -> T:
        return await self.database.read(query)

    async def agents(self) -> list[AgentRecord]:
        """Returns the agents in the order in which they were first put."""
        return await self.database.models(AgentRecord, "SELECT data FROM agents ORDER BY seq")

    async def delete_agent(self, agent_id: str, events: Sequence[NewEvent] = ()) -> None:
        with _encoding():
            change = _Change(gone=[("agents", agent_id)], events=self._event_rows(events))
        try:
            await self._write(change, events)
        except StoreError:
            self._left.add(agent_id)
            raise

    async def task(self, task_id: str) -> Task | None:
        recent = self._recent.get(task_id)
        if recent is not None:
            return recent
        return await self.database.read(select_task, task_id, self.events.room)

    async def committed(self, task_id: str) -> Task | None:
        return await self.database.read(select_task, task_id, self.events.room)

    async def is_former(self, task_id: str, agent_id: str) -> bool:
        return self.events.born(agent_id) > 0 and await self.database.read(is_former, task_id, agent_id)

    async def task_metadata(self, task_id: str) -> dict[str, Any]:
        return await self.database.read(select_metadata, task_id)

    async def said(self, task_id: str) -> Said | None:
        recent = self._recent.document(task_id)
        if recent is not None:
            return Said.of(recent)
        return await self.database.read(select_said, task_id)

    async def tasks(self, which: TaskFilter) -> tuple[list[Task], int]:
        return await self.database.read(select_page, which, self.events.room)

    async def weigh(self, which: str | TaskFilter) -> list[Large]:
        if isinstance(which, TaskFilter):
            return await self.database.read(weigh_page, which)
        if (large := self._recent.weigh(which)) is not None:
            return large
        return await self.database.read(weigh, which)

    async def has_tasks(self, which: TaskFilter) -> bool:
        return await self.database.read(has_tasks, which)

    async def find_tasks(
        self, prefix: str, limit: int, *, agent_id: str | None = None, visible_to: str | None = None
    ) -> list[str]:
        return await self.database.read(find_ids, prefix, limit, agent_id=agent_id, visible_to=visible_to)

    async def open_tasks(self) -> list[Task]:
        return await self.database.read(select_open, self.events.room)

    async def turns(self) -> list[TurnRecord]:
        return await self.database.models(TurnRecord, "SELECT data FROM turns ORDER BY rowid")

    async def find_cut(self, *, keep: int, oldest: str | None, newest: str) -> Cut | None:
        """Returns the cut for tasks that are too many or too old; see `store.retention`."""
        return await self.database.read(find_cut, keep=keep, oldest=oldest, newest=newest)

    async def prune(self, cut: Cut) -> Pruned:
        """Does one small step of the removal."""

        def forget(pruned: Pruned) -> None:
            for task_id, _ in pruned.tasks:
                self._recent.drop(task_id)
            self.events.forget(pruned.upto)

        return await self.database.write(lambda connection: prune(connection, cut), forget)

    async def shrink(self, pages: int) -> bool:
        return await self.database.write(lambda connection: shrink(connection, pages))

    async def replies(self) -> list[ReplyRecord]:
        """Returns the replies in the order in which they were first put."""
        return await self.database.models(ReplyRecord, "SELECT data FROM replies ORDER BY rowid")

    # --- rules, webhooks and moods ---

    async def keep_follower(
        self,
        name: str,
        state: FollowerState,
        *,
        events: Sequence[NewEvent] = (),
        others: Mapping[str, FollowerState] | None = None,
    ) -> None:
        with _encoding():
            states = {name: state, **(others or {})}
            kept = [("followers", each, one.model_dump_json()) for each, one in states.items()]
            change = _Change(kept=kept, events=self._event_rows(events))
        await self._write(change, events)

    async def forget_follower(self, name: str) -> None:
        await self._write(_Change(gone=[("followers", name)]), ())

    async def follower(self, name: str) -> FollowerState | None:
        found = await self.database.models(FollowerState, "SELECT data FROM followers WHERE name = ?", name)
        return found[0] if found else None

    async def save_checkpoint(self, agent_id: str, checkpoint: Checkpoint) -> None:
        with _encoding():
            data = checkpoint.model_dump_json(exclude={"redraw"})
        redraw, sealer = checkpoint.redraw, self.database.sealer

        def put(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO checkpoints (agent_id, data, redraw) SELECT id, ?, ? FROM agents WHERE id = ? "
                "ON CONFLICT (agent_id) DO UPDATE SET data = excluded.data, redraw = excluded.redraw",
                (sealer.seal(data), sealer.seal_blob(redraw), agent_id),
            )

        await self.database.write(put)

    async def checkpoint(self, agent_id: str) -> Checkpoint | None:
        row = await self.database.read(
            lambda connection: connection.execute(
                "SELECT data, redraw FROM checkpoints WHERE agent_id = ?", (agent_id,)
            ).fetchone()
        )
        redraw = None if row is None else self.database.sealer.unseal_blob(row[1])
        try:
            return None if redraw is None else Checkpoint.model_validate({**json.loads(row[0]), "redraw": redraw})
        except (ValueError, TypeError) as error:  # the screen is drawn from the kept output then
            log.warning("a checkpoint cannot be read", agent_id=agent_id, error=str(error))
            return None

    def _event_rows(self, events: Sequence[NewEvent]) -> list[EventRow]:
        at = self._clock.wall()
        return [
            EventRow(
                at,
                event.agent_id,
                event.task_id,
                event.context_id,
                event.data.type,
                EncodedModel(event.data, self.texts, masked=event.data.type not in OF_TASKS),
            )
            for event in events
        ]

    async def _write(self, change: _Change, events: Sequence[NewEvent]) -> list[Event]:
        """Applies `change`; publishes it as soon as it is durable, even if the caller no longer waits."""

        def show(ids: list[int]) -> None:
            for task in change.tasks:
                self._recent.put(task)
            gone, there = [key for table, key in change.gone if table == "agents"], [key for key, _ in change.agents]
            self._left.difference_update(gone)
            self.events.admit(gone, there)
            self.events.publish(ids, change.events)
            for part in change.parts:
                if part.after is not None:
                    part.after()

        if change.unfinished or self._in_order:
            act = self._write_in_order(change, show)
            ids = await asyncio.shield(at_once(act))
        else:
            ids = await self.database.write(self._apply(change), show, durable=change.durable)
        return [
            Event.model_construct(
                id=event_id,
                at=row.at,
                agent_id=row.agent_id,
                task_id=row.task_id,
                context_id=row.context_id,
                data=new.data,
            )
            for event_id, row, new in zip(ids, change.events, events, strict=True)
        ]

    def _apply(self, change: _Change) -> Callable[[sqlite3.Connection], list[int]]:
        sealer = self.database.sealer
        return lambda connection: change.apply(connection, sealer)

    async def _write_in_order(self, change: _Change, show: Callable[[list[int]], None]) -> list[int]:
        """Encodes the large texts of `change`. Changes that come meanwhile are written after it."""
        self._in_order += 1
        try:
            async with self._order:
                with _encoding():
                    for encoded in change.encoded():
                        await encoded.finish(self.database.sealer)
                # At once: it is in the database's queue before the next change may go on.
                act = self.database.write(self._apply(change), show, durable=change.durable)
                writing = at_once(act)
        finally:
            self._in_order -= 1
        return await writing


@contextmanager
def _encoding() -> Iterator[None]:
    try:
        yield
    except PydanticSerializationError as error:
        raise StoreError(f"this cannot be kept as JSON: {error}", reason="unencodable") from error
