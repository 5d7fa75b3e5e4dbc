"""Publishes this host's events to the fleet: reads the log behind a cursor, signs each event, and publishes it.

The log is the truth; the fleet's stream is a view of it that may lose anything. The cursor in the database is never
ahead of what the broker has confirmed, so after a kill some events are repeated under the same ids. A host that was
away for an hour, or is 100,000 events behind, does not fill the stream with old events: it publishes a `gap`, and goes
on from there. A stream that was made again gets the last hour again.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

import structlog

from synapsed.clock import Clock
from synapsed.errors import UnknownAgent
from synapsed.interfaces import Directory, EventFilter, EventLog
from synapsed.model.events import Event
from synapsed.store.follower import Follower, NotNow
from synapsed_fleet import streams
from synapsed_fleet.envelope import Envelope
from synapsed_fleet.event_body import GAP, event_body, event_id, gap_body, told_types
from synapsed_fleet.names import EventSubject
from synapsed_fleet.outgoing import Outgoing
from synapsed_fleet.ports import Broker, BrokerRefused, NoBroker

BEHIND_MAX: Final = 100_000
"""Events."""
BEHIND_MAX_S: Final = 3600.0
IN_FLIGHT: Final = 32
"""Events whose ack may be missing at one time; messages do not wait for them."""
KEPT: Final = "events"
"""Name of the saved cursor; with the time after it when a stream was made, the cursor of that stream."""

log = structlog.stdlib.get_logger("synapsed.fleet")


class Cursors(Protocol):
    """Interface to the saved cursor of the published events."""

    async def cursor(self, name: str) -> int | None: ...

    async def keep_cursor(self, name: str, cursor: int) -> None: ...


class EventTelling(Follower):
    """Follower of the event log that publishes it; `run` raises NoBroker. `accepts` returns True for the agents whose
    events are published; `content`: with texts of people and programs."""

    name = "fleet events"
    escapes = (NoBroker,)

    def __init__(
        self,
        *,
        name: str,
        events: EventLog,
        cursors: Cursors,
        directory: Directory,
        broker: Broker,
        outgoing: Outgoing,
        clock: Clock,
        accepts: Callable[[str], bool],
        content: bool,
    ) -> None:
        super().__init__(events)
        self._host = name
        self._cursors = cursors
        self._directory = directory
        self._broker = broker
        self._outgoing = outgoing
        self._clock = clock
        self._accepts = accepts
        self._content = content
        self.wants = EventFilter(types=told_types(content=content))
        self._told: list[Event] = []
        """Events that are published before the cursor is saved."""
        self._names: dict[str, str] = {}
        """Names of removed agents, by id; known since this daemon began."""
        self._stream = ""
        self._kept = 0

    async def run(self) -> None:
        self.cursor = -1  # the stream may have been made again meanwhile
        await super().run()

    async def handle(self, event: Event) -> None:
        self._told.append(event)

    async def handled(self) -> None:
        told, self._told = self._told, []
        for begin in range(0, len(told), IN_FLIGHT):
            some = told[begin : begin + IN_FLIGHT]
            done = await asyncio.gather(*map(self._publish, some), return_exceptions=True)
            for error in done:
                if isinstance(error, BaseException):
                    raise NotNow(str(error)) if isinstance(error, BrokerRefused) else error
        if self.cursor > self._kept:
            await self._keep(self.cursor)

    async def _publish(self, event: Event) -> None:
        agent = self._agent(event.agent_id)
        if event.agent_id and agent is None:
            return
        body = event_body(event, agent, content=self._content)
        if body is not None:
            await self._broker.publish(self._signed(event.data.type, event_id(event), body))

    def _signed(self, kind: str, named: str, body: bytes) -> Envelope:
        return self._outgoing.sign(str(EventSubject(self._host, kind)), named, body)

    def _agent(self, agent_id: str) -> str | None:
        """Returns the name of an agent of this host that others may know of; None for any other agent."""
        try:
            name = self._names[agent_id] = self._directory.view(agent_id).name
        except UnknownAgent:
            name = self._names.get(agent_id, "")
        return name if name and self._accepts(name) else None

    # --- the cursor ---

    async def restore(self) -> None:
        """Goes on in the stream that exists now. Raises NotNow if the broker refuses, NoBroker."""
        self._told = []
        try:
            await self._place()
        except BrokerRefused as error:
            raise NotNow(str(error)) from None

    async def _place(self) -> None:
        facts = await self._broker.facts(streams.EVENTS, "syn.ev._")
        self._stream = facts.created
        cursor = await self._cursors.cursor(f"{KEPT} {facts.created}")
        if cursor is None:
            known = await self._cursors.cursor(KEPT)
            cursor = self._events.last_id if known is None else 0  # a new member publishes no older events
        first = await self._first(cursor)
        if first > cursor:
            now = self._clock.wall()
            named = f"gap{cursor:010d}-{int(now * 1000):x}"
            await self._broker.publish(self._signed(GAP, named, gap_body(cursor + 1, first, at=now)))
        self.cursor = first
        await self._keep(first)

    async def _first(self, cursor: int) -> int:
        """Returns the cursor to continue from, which is later than `cursor` if that is too far behind."""
        last = self._events.last_id
        low, high = max(cursor, last - BEHIND_MAX), last
        oldest = self._clock.wall() - BEHIND_MAX_S
        if (event := await self._next(low)) is None or event.at >= oldest:
            return low
        while low < high:  # finds the last event that is too old
            middle = (low + high) // 2
            event = await self._next(middle)
            if event is None or event.at >= oldest:
                high = middle
            else:
                low = middle + 1
        return low

    async def _next(self, after: int) -> Event | None:
        found = await self._events.read(after, limit=1)
        return found[0] if found else None

    async def _keep(self, cursor: int) -> None:
        self._kept = cursor
        await self._cursors.keep_cursor(KEPT, cursor)
        await self._cursors.keep_cursor(f"{KEPT} {self._stream}", cursor)
