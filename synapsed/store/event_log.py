"""The event log: rows of the database, of which the recent ones are in memory too, and the reading of both.

A follower, a reader that keeps its place in the log, holds only a cursor. It reads from the ring of recent events, or
from the database if it is further behind. When it has read everything, it waits on a future under its topic (a task, an
agent, or everything). Publishing touches only the topics of the new events, and gives each waiter the id of the first
event that can concern it: a follower that waited while ten thousand other events came continues at that point without
reading them.
"""

import asyncio
import sqlite3
from collections import Counter, deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import structlog

from synapsed.documents.budget import Budget
from synapsed.interfaces import EventFilter, EventPage
from synapsed.model.answered_tasks import HeardEnds, is_end
from synapsed.model.events import OLD_TYPES, Event, parse_event
from synapsed.store.database import Database
from synapsed.store.encoding import LARGE_ROW, EncodedModel, Kept, Sealer, read_large, texts_size, weigh_large
from synapsed.store.task_rows import BORN

RECENT_EVENTS = 4096
"""Number of recent events that are kept in memory."""

RECENT_SIZE = 8 * 1024 * 1024
"""Characters of JSON of the events kept in memory; the oldest go first, and are read from the database when wanted."""

log = structlog.stdlib.get_logger("synapsed.store")

FOLLOW_BATCH = 256
"""Events that a follower takes at a time: limits the memory of one that is far behind."""

WOKEN = 16
"""Largest number of followers that are woken in one turn of the event loop, because each then has work to do."""

READ_SIZE = 1024 * 1024
"""Characters of JSON of the events that are read at a time; only the last event may exceed it."""

SCAN = 20_000
"""Rows that are searched at a time if no index finds the events: other readers use the same thread."""


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event ready to be written."""

    at: float
    agent_id: str
    task_id: str | None
    context_id: str | None
    type: str
    data: EncodedModel


class _Batch:
    """Events that are read at a time, in their order."""

    __slots__ = ("_size", "_size_max", "_small", "events", "large", "last", "limit")

    def __init__(self, limit: int, size_max: int, *, small: bool = False) -> None:
        """`limit` is a number of events, `size_max` one of characters; with `small` it ends before a large event."""
        self.events: list[Event] = []
        self.limit = limit
        self.large: tuple[int, int] | None = None
        """Id of the large event that it ended before, and the memory that this event takes."""
        self.last = 0
        """Id of the last event that was read."""
        self._small = small
        self._size = 0
        self._size_max = size_max

    def add(self, event: Event, size: int) -> None:
        self.events.append(event)
        self.last = event.id
        self._size += size

    def ends_before(self, size: int) -> bool:
        """Returns True if it ends before an event with so many characters of JSON."""
        return self._small and size >= LARGE_ROW

    @property
    def more(self) -> bool:
        """True if it is full, so that there may be more after it."""
        return len(self.events) >= self.limit or self._size >= self._size_max


class _Recent:
    """An event in memory: kept as it was written until it is read, then as one object for all readers. It is never the
    writer's own object, which may still change."""

    __slots__ = ("_at", "_context_id", "_kept", "agent_id", "id", "size", "task_id", "type", "weight")

    def __init__(self, event_id: int, row: EventRow) -> None:
        self.id = event_id
        self.agent_id = row.agent_id
        self.task_id = row.task_id
        self.type = row.type
        self.size = len(row.data)
        self._at = row.at
        self._context_id = row.context_id
        self._kept: Kept | Event = row.data.kept
        self.weight = texts_size(self._kept) if isinstance(self._kept, dict) else self.size
        """Bytes that its large texts take in memory."""

    @property
    def event(self) -> Event:
        if not isinstance(self._kept, Event):
            self._kept = _event(self.id, self._at, self.agent_id, self.task_id, self._context_id, self._kept)
        return self._kept


class _Ring:
    """The newest events, without a gap: ids `first` to `last`, each in the slot of its id modulo the capacity."""

    def __init__(self, last: int, events_max: int, size_max: int) -> None:
        self.first = last + 1
        self.last = last
        self._slots: list[_Recent | None] = [None] * events_max
        self._size = 0
        self._size_max = size_max

    def append(self, recent: _Recent) -> None:
        assert recent.id == self.last + 1, "ids grow by one"
        if recent.id - self.first == len(self._slots):
            self._drop_first()
        self._slots[recent.id % len(self._slots)] = recent
        self.last = recent.id
        self._size += recent.size
        while self._size > self._size_max:
            self._drop_first()

    def covers(self, after: int) -> bool:
        """Returns True if every event after `after` is in the ring."""
        return after + 1 >= self.first

    def between(self, after: int, upto: int) -> Iterator[_Recent]:
        """Returns the events with `after < id <= upto`, which must all be in the ring."""
        slots = self._slots
        for number in range(after + 1, upto + 1):
            recent = slots[number % len(slots)]
            assert recent is not None
            yield recent

    def _drop_first(self) -> None:
        place = self.first % len(self._slots)
        oldest = self._slots[place]
        assert oldest is not None
        self._slots[place] = None
        self._size -= oldest.size
        self.first += 1


class SqliteEventLog:
    """The `EventLog` of a database; `publish` is for the store that writes it."""

    def __init__(
        self,
        database: Database,
        last_id: int,
        *,
        removed: Mapping[str, int] | None = None,
        born: Mapping[str, int] | None = None,
        recent: int = RECENT_EVENTS,
        recent_size: int = RECENT_SIZE,
    ) -> None:
        self._database = database
        self._ring = _Ring(last_id, recent, recent_size)
        self.room = Budget()
        self.heard = HeardEnds()
        self._waiting: dict[str | None, set[asyncio.Future[int]]] = {}
        self._removed = dict(removed or {})
        self._born = dict(born or {})
        self._large: WeakValueDictionary[int, Event] = WeakValueDictionary()
        self._closed = False
        self.published: Counter[str] = Counter()

    @property
    def last_id(self) -> int:
        return self._ring.last

    def born(self, agent_id: str) -> int:
        return self._born.get(agent_id, 0)

    async def read(
        self,
        after: int,
        *,
        task_id: str | None = None,
        agent_id: str | None = None,
        limit: int = 500,
        types: frozenset[str] | None = None,
    ) -> list[Event]:
        which, upto = _which(task_id, agent_id, types), self.last_id
        after = self._begin(after, which)
        while True:
            page = await self._read(after, upto, which, _Batch(limit, READ_SIZE))
            if page.events or page.upto >= upto or limit <= 0:
                return page.events
            after = page.upto

    async def page(self, after: int, which: EventFilter, *, limit: int, size: int) -> EventPage:
        return await self._read(self._begin(after, which), self.last_id, which, _Batch(limit, size))

    async def changed(self, after: int, which: EventFilter) -> int | None:
        if after < self.last_id:
            return after
        return None if self._closed else max(after, await self._next(_topic(which)))

    async def open_attention(self, agent_id: str) -> list[Event]:
        return await self._database.read(_open_attention, agent_id)

    def gap(self, after: int, *, agent_id: str | None = None) -> int | None:
        if self._ring.covers(after):
            return None
        upto = max(self._removed.values(), default=0) if agent_id is None else self._removed.get(agent_id, 0)
        return upto if upto > max(after, 0 if agent_id is None else self.born(agent_id)) else None

    async def follow(
        self,
        after: int,
        *,
        task_id: str | None = None,
        agent_id: str | None = None,
        upto: int | None = None,
        reserved: bool = False,
    ) -> AsyncGenerator[Event]:
        which = _which(task_id, agent_id)
        cursor: int | None = self._begin(after, which)  # once: a follower of an agent sees its removal
        while cursor is not None and (upto is None or cursor < upto):
            last = self.last_id if upto is None else upto
            if self._closed and cursor < last and not self._ring.covers(cursor):
                return
            batch = _Batch(FOLLOW_BATCH, READ_SIZE, small=reserved)
            page = await self._read(cursor, last, which, batch)
            cursor = page.upto
            page.events.reverse()
            while page.events:
                if task_id is not None and is_end(page.events[-1]):
                    self.heard.add(task_id)
                yield page.events.pop()  # from here on only the reader refers to it
            if batch.large is not None:
                cursor, size = batch.large
                lease = await self.room.take(("event", cursor), size)
                try:
                    page = await self._read(cursor - 1, cursor, which, _Batch(1, READ_SIZE))
                    while page.events:
                        if task_id is not None and is_end(page.events[-1]):
                            self.heard.add(task_id)
                        yield page.events.pop()
                finally:
                    lease.release()
            if cursor >= last and upto is None:
                # `changed` does not await between its comparison and its registration: no event is missed.
                cursor = await self.changed(cursor, which)

    def admit(self, gone: Iterable[str], there: Iterable[str]) -> None:
        """Notes agents that are gone, and those with a record now: a new one begins after the last event. Call it
        before the events written with them are published."""
        for agent_id in gone:
            self._born.pop(agent_id, None)
        for agent_id in there:
            self._born.setdefault(agent_id, self.last_id)

    def publish(self, ids: Sequence[int], rows: Sequence[EventRow]) -> None:
        """Makes durable events visible; their ids grow by one."""
        for event_id, row in zip(ids, rows, strict=True):
            self._ring.append(_Recent(event_id, row))
            self.published[row.type] += 1
            self._wake(None, event_id - 1)
            self._wake(f"agent {row.agent_id}", event_id - 1)
            if row.task_id is not None:
                self._wake(f"task {row.task_id}", event_id - 1)

    def forget(self, upto: Mapping[str, int]) -> None:
        """Notes, by agent, the newest event that was removed."""
        for agent_id, event_id in upto.items():
            self._removed[agent_id] = max(event_id, self._removed.get(agent_id, 0))

    def close(self) -> None:
        """Ends each follower when it has read the events in memory. The database may be closed from now on."""
        self._closed = True
        for topic in list(self._waiting):
            self._wake(topic, self.last_id)

    async def _read(self, after: int, upto: int, which: EventFilter, batch: _Batch) -> EventPage:
        if after >= upto or batch.limit <= 0:
            return EventPage([], after)
        if not self._ring.covers(after):
            upto = min(upto, after + SCAN) if _scans(which) else upto
            await self._database.read(_select, after, upto, which, batch, self._large)
        else:
            for recent in self._ring.between(after, upto):
                if _matches(which, recent) and (not _several(which) or recent.id > self.born(recent.agent_id)):
                    if batch.ends_before(recent.size):
                        batch.large = (recent.id, recent.weight)
                        break
                    batch.add(recent.event, recent.size)
                    if batch.more:
                        break
        if batch.large is not None:
            return EventPage(batch.events, batch.large[0] - 1)
        return EventPage(batch.events, batch.last if batch.more else upto)

    def _begin(self, after: int, which: EventFilter) -> int:
        """Returns `after`, or the place where the oldest of the wanted agents begins, if that is later."""
        return after if which.agents is None else max(after, min(map(self.born, which.agents), default=0))

    async def _next(self, topic: str | None) -> int:
        """Waits for the next event of `topic`; returns the cursor just before it."""
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(topic, set())
        waiting.add(future)
        try:
            return await future
        finally:
            waiting.discard(future)
            if not waiting and self._waiting.get(topic) is waiting:
                del self._waiting[topic]

    def _wake(self, topic: str | None, cursor: int) -> None:
        if waiting := self._waiting.pop(topic, None):
            _wake_some(deque(waiting), cursor)


def _wake_some(waiting: deque[asyncio.Future[int]], cursor: int) -> None:
    """Wakes the first waiters now, and the others in the next turns of the loop."""
    for _ in range(min(WOKEN, len(waiting))):
        future = waiting.popleft()
        if not future.done():
            future.set_result(cursor)
    if waiting:
        waiting[0].get_loop().call_soon(_wake_some, waiting, cursor)


def append_events(connection: sqlite3.Connection, rows: Sequence[EventRow], sealer: Sealer) -> list[int]:
    """Writes the rows in the open transaction; returns their ids. A rollback gives the ids back: there is no gap."""
    ids = []
    for row in rows:
        cursor = connection.execute(
            "INSERT INTO events (at, agent_id, task_id, context_id, type, data) "
            "VALUES (?, ?, ?, ?, ?, CAST(? AS TEXT))",
            (row.at, row.agent_id, row.task_id, row.context_id, row.type, row.data.sealed(sealer)),
        )
        assert cursor.lastrowid is not None
        ids.append(cursor.lastrowid)
    return ids


def last_event_id(connection: sqlite3.Connection) -> int:
    """Returns the id of the newest event that ever existed; 0 if there was no event."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchone()
    return int(row[0]) if row else 0


def _which(task_id: str | None, agent_id: str | None, types: frozenset[str] | None = None) -> EventFilter:
    return EventFilter(
        types=types,
        tasks=None if task_id is None else frozenset({task_id}),
        agents=None if agent_id is None else frozenset({agent_id}),
    )


def _matches(which: EventFilter, row: _Recent) -> bool:
    return (
        (which.tasks is None or row.task_id in which.tasks)
        and (which.agents is None or row.agent_id in which.agents)
        and (which.types is None or row.type in which.types)
    )


def _several(which: EventFilter) -> bool:
    """Returns True if there are several agents, each of which begins at another event; a single agent is read from its
    beginning on (`_begin`)."""
    return which.agents is not None and len(which.agents) > 1


def _topic(which: EventFilter) -> str | None:
    """Returns the narrowest topic to wait on."""
    if which.tasks is not None and len(which.tasks) == 1:
        return f"task {next(iter(which.tasks))}"
    if which.agents is not None and len(which.agents) == 1:
        return f"agent {next(iter(which.agents))}"
    return None


def _scans(which: EventFilter) -> bool:
    """Returns True if no index finds the events one after the other."""
    return which.types is not None or len(which.tasks or ()) > 1 or len(which.agents or ()) > 1


def _select(
    connection: sqlite3.Connection,
    after: int,
    upto: int,
    which: EventFilter,
    batch: _Batch,
    large: MutableMapping[int, Event],
) -> None:
    """Fills `batch`. Large events, which many readers may wait for and hold, are searched in `large` first: this runs
    in the only thread that reads, so no event is made twice."""
    where = ["id > ?", "id <= ?"]
    values: list[int | str] = [after, upto]
    # A task has few events, an agent many: the plus keeps the planner on the task's index.
    agents = "agent_id" if which.tasks is None else "+agent_id"
    for column, wanted in (("task_id", which.tasks), (agents, which.agents), ("+type", _stored(which.types))):
        if wanted is not None:
            where.append(f"{column} IN ({', '.join('?' * len(wanted))})")
            values += sorted(wanted)
    if _several(which):
        where.append(f"id > {BORN.format('events.agent_id')}")
    rows = connection.execute(
        "SELECT id, at, agent_id, task_id, context_id, length(data), "  # noqa: S608 - constants
        f"CASE WHEN length(data) < {LARGE_ROW} THEN data END "
        f"FROM events WHERE {' AND '.join(where)} ORDER BY id LIMIT ?",
        (*values, batch.limit),
    )
    with closing(rows):
        for event_id, at, agent_id, task_id, context_id, size, small in rows:
            if batch.ends_before(size):
                width, _ = weigh_large(connection, "events", event_id)
                batch.large = (event_id, width * size)
                break
            event = large.get(event_id)
            if event is None:
                event = _stored_event(connection, event_id, at, agent_id, task_id, context_id, small)
                if event is None:
                    batch.limit, batch.last = batch.limit - 1, event_id  # it counts as read
                    continue
                if small is None:
                    large[event_id] = event
            batch.add(event, size)
            if batch.more:
                break


def _stored(types: frozenset[str] | None) -> frozenset[str] | None:
    """Returns the types as rows may have them: older programs had other names for some."""
    return None if types is None else types.union(was for was, now in OLD_TYPES.items() if now in types)


def _open_attention(connection: sqlite3.Connection, agent_id: str) -> list[Event]:
    rows = connection.execute(
        "SELECT events.id, at, events.agent_id, task_id, context_id, data FROM open_attention "  # noqa: S608 - a constant
        "CROSS JOIN events ON events.id = open_attention.event "  # in this order
        f"WHERE open_attention.agent_id = ? AND open_attention.event > {BORN.format('?')} ORDER BY events.id",
        (agent_id, agent_id),
    )
    return [event for row in rows if (event := _stored_event(connection, *row)) is not None]


def _stored_event(connection: sqlite3.Connection, event_id: int, *row: Any) -> Event | None:
    """Returns the event of a row, whose data is None if it is large; None if it cannot be read."""
    at, agent_id, task_id, context_id, data = row
    try:
        data = data or read_large(connection, "events", event_id)
        return _event(event_id, at, agent_id, task_id, context_id, data)
    except (ValueError, AttributeError) as error:  # no JSON, or no object
        log.error("an event cannot be read, and is passed over", event_id=event_id, kind=type(error).__name__)  # noqa: TRY400
        return None


def _event(event_id: int, at: float, agent_id: str, task_id: str | None, context_id: str | None, data: Kept) -> Event:
    return Event.model_construct(
        id=event_id, at=at, agent_id=agent_id, task_id=task_id, context_id=context_id, data=parse_event(data)
    )
