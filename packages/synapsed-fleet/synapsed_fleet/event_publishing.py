"""This host's events, told to the fleet: read from the log behind a cursor, signed, and published one by one.

The log is the truth, and the fleet's stream a view of it that may lose anything. The cursor is kept in the database,
behind what the broker has confirmed, so that a kill repeats some events under the same ids. Whoever was away for an
hour, or is 100,000 events behind, does not fill the stream with what is over: it tells a `gap`, and goes on from there.
A stream that was made again is told the last hour again.
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
"""Events whose ack is awaited; messages do not wait for them."""
KEPT: Final = "events"
"""The cursor's name; with the stream's, how far that one was told."""

log = structlog.stdlib.get_logger("synapsed.fleet")


class Cursors(Protocol):
    """Interface to the saved cursor of the events that were told."""

    async def cursor(self, name: str) -> int | None: ...

    async def keep_cursor(self, name: str, cursor: int) -> None: ...


class EventTelling(Follower):
    """`run` it, which raises NoBroker. `accepts` says of which agents others are told; `content`: and what was said."""

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
        """Events that are to be told before the cursor is kept."""
        self._names: dict[str, str] = {}
        """Names of removed agents, by id: those of this daemon's life."""
        self._stream = ""
        self._kept = 0

    async def run(self) -> None:
        self.cursor = -1  # it may be another stream than the last time
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
        """The name of an agent here that others may know of; None for another, and for one elsewhere."""
        try:
            name = self._names[agent_id] = self._directory.view(agent_id).name
        except UnknownAgent:
            name = self._names.get(agent_id, "")
        return name if name and self._accepts(name) else None

    # --- the cursor ---

    async def restore(self) -> None:
        """Goes on in the stream that there is now. Raises NoBroker."""
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
            cursor = self._events.last_id if known is None else 0  # who has just joined tells nothing of before
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
        while low < high:  # the last that is too old
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
