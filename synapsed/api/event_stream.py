"""Sends the event log to one subscriber: filtered, in batches on request or if the subscriber is behind, and without
delaying others.

A subscriber is a cursor. It holds one page of events at the most (`PAGE_SIZE` characters, even if it is far behind),
encoded once for all receivers, and requests the next page when its connection has taken this one. Events that are no
longer kept, or cannot be encoded, are replaced by a `gap`.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import structlog

from synapsed.aio import Pace
from synapsed.clock import Clock
from synapsed.errors import StoreError
from synapsed.interfaces import EventFilter, EventLog
from synapsed.model.events import Event
from synapsed.model.events.wire import BATCH, batch, encoded, gap

PAGE_EVENTS = 64
PAGE_SIZE = 64 * 1024
"""Characters of JSON of the events that one subscriber holds."""

LAG = 32
"""Number of events that wait for a subscriber, from which on they are sent together."""

CACHE_SIZE = 2 * 1024 * 1024
"""Bytes of encoded events that are kept for further subscribers."""

SLOW_S = 0.010
"""Seconds; a send that takes longer is logged (document 004)."""

SLOW_EVERY_S = 60.0
"""Seconds between two such lines of the log about one subscriber."""

log = structlog.stdlib.get_logger("synapsed.events")


@dataclass(frozen=True, slots=True)
class SentEvent:
    """The unit of sending: one event, a batch, or a gap, which has no id."""

    event: str
    event_id: int | None
    data: bytes


class EventCache:
    """Encoded events, each encoded once."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, bytes] = OrderedDict()
        self._size = 0

    async def of(self, event: Event, pace: Pace) -> bytes | None:
        """Returns the encoded event; None if it cannot be encoded: that is logged, and only this event is lost."""
        if (known := self._known.get(event.id)) is not None:
            return known
        await pace.turn()
        if (known := self._known.get(event.id)) is not None:
            return known
        try:
            data = encoded(event)
        except Exception:  # whatever it is, the other events are sent
            log.exception("an event cannot be sent", id=event.id, type=event.data.type)
            return None
        self._known[event.id] = data
        self._size += len(data)
        while self._size > CACHE_SIZE:
            self._size -= len(self._known.popitem(last=False)[1])
        return data


class Subscription:
    """One subscriber's place in the log. `window` is the number of seconds for which events are collected into a batch,
    0 for no batches. `who` describes the subscriber in the daemon's log."""

    def __init__(
        self,
        events: EventLog,
        cache: EventCache,
        clock: Clock,
        pace: Pace,
        *,
        after: int,
        which: EventFilter,
        window: float = 0.0,
        who: dict[str, object],
    ) -> None:
        self._log = events
        self._cache = cache
        self._clock = clock
        self._pace = pace
        self._which = which
        self._window = window
        self._cursor = after
        self._told = after
        """Event up to which gaps are reported."""
        self._slow_from = 0.0
        self._slow = 0
        self._who = who

    async def follow(self, *, upto: int | None = None) -> AsyncGenerator[SentEvent]:
        """Yields the events to send, for ever, or up to the event `upto`."""
        try:
            while upto is None or self._cursor < upto:
                async for sent in self._next(upto):
                    begun = self._clock.monotonic()
                    yield sent
                    del sent  # the next may come much later, and this one takes memory
                    self._note(self._clock.monotonic() - begun)
                if upto is None and await self._wait():
                    return
        except StoreError as error:
            log.warning("a subscriber is let go", **self._who, after=self._cursor, why=error.message)
        finally:
            behind = self._log.last_id - self._cursor
            say = log.info if behind or self._slow else log.debug
            say("a subscriber has left", **self._who, after=self._cursor, behind=behind, slow_sends=self._slow)

    async def _next(self, upto: int | None) -> AsyncGenerator[SentEvent]:
        page = await self._log.page(self._cursor, self._which, limit=PAGE_EVENTS, size=PAGE_SIZE)
        if (missing := self._missing()) is not None:
            yield missing
        events = [event for event in page.events if upto is None or event.id <= upto]
        del page.events[:]
        ready: list[tuple[Event, bytes]] = []
        for event in events:
            if (data := await self._cache.of(event, self._pace)) is None:
                for sent in self._packed(ready):
                    yield sent
                ready = []
                yield self._gap(event.id, event.id)
            else:
                ready.append((event, data))
        for sent in self._packed(ready):
            yield sent
        self._cursor = page.upto

    def _packed(self, ready: list[tuple[Event, bytes]]) -> list[SentEvent]:
        if not ready:
            return []
        if len(ready) > 1 and (self._window or len(ready) >= LAG):
            last = ready[-1][0].id
            data = batch([data for _, data in ready], last=last, at=self._clock.wall())
            return [SentEvent(BATCH, last, data)]
        return [SentEvent(event.data.type, event.id, data) for event, data in ready]

    def _missing(self) -> SentEvent | None:
        """Returns a gap for removed events after the cursor that is not reported yet."""
        agents = self._which.agents
        ends = [self._log.gap(self._cursor, agent_id=agent) for agent in agents] if agents is not None else []
        end = self._log.gap(self._cursor) if agents is None else max((one or 0 for one in ends), default=0)
        if not end or end <= self._told:
            return None
        first, self._told = max(self._cursor, self._told) + 1, end
        return self._gap(first, end)

    def _gap(self, first: int, last: int) -> SentEvent:
        return SentEvent("gap", None, gap(first, last, at=self._clock.wall()))

    async def _wait(self) -> bool:
        """Waits until there is something to send; returns True if nothing will come any more."""
        cursor = await self._log.changed(self._cursor, self._which)
        if cursor is None:
            return True
        self._cursor = cursor
        if self._window:
            await asyncio.sleep(self._window)
        return False

    def _note(self, seconds: float) -> None:
        """Logs a slow connection: the time from one event to the request of the next one is spent by the connection."""
        if seconds <= SLOW_S:
            return
        self._slow += 1
        now = self._clock.monotonic()
        if now >= self._slow_from:
            self._slow_from = now + SLOW_EVERY_S
            log.warning("a subscriber is slow", **self._who, seconds=round(seconds, 3), after=self._cursor)
