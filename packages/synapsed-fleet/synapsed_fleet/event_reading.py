"""Reads the events of the whole fleet from their stream, behind a cursor: without a consumer, watch or subscription.

Each event is checked: one that the host in its subject has not signed is not shown. A copy is shown once. A `gap` is
shown if events after the cursor are not kept any more, and if the stream was made again.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator
from typing import Final

import structlog

from synapsed.clock import Clock, iso
from synapsed.errors import InvalidRequest, NotReady
from synapsed_fleet import streams
from synapsed_fleet.envelope import BadEnvelope, Envelope
from synapsed_fleet.event_body import GAP, EventCursor, read_event, stream_name
from synapsed_fleet.fleet_answers import FleetEvent
from synapsed_fleet.names import BadName, EventSubject
from synapsed_fleet.peer_certificates import NotMet, Peers
from synapsed_fleet.ports import Broker, BrokerRefused, NoBroker, Stored

PAGE: Final = 256
POLL_S: Final = 0.5
"""Seconds between two reads of a caller that follows, if there was no event."""
LOOK_S: Final = 10.0
"""Seconds between two looks at the stream itself: it may have been made again."""
SEEN: Final = 4096
"""Ids of events by which a copy is known."""

log = structlog.stdlib.get_logger("synapsed.fleet")


class EventHearing:
    """Gives the fleet's events to any caller: each `follow` holds a cursor and one page."""

    def __init__(self, broker: Broker, peers: Peers, clock: Clock) -> None:
        self._broker = broker
        self._peers = peers
        self._clock = clock

    async def follow(
        self, after: str | None, *, newest: bool, host: str | None = None, types: frozenset[str] | None = None
    ) -> AsyncGenerator[FleetEvent | None]:
        """Yields the events after `after` (None: from now on); with `newest` it ends with the newest of now. The first
        item is None, once events can be read. Raises InvalidRequest for an invalid cursor, and NotReady if there is no
        broker at the beginning or, with `newest`, before the end."""
        place = EventPlace(self._broker, self._clock)
        begun = await self._begin(place, after)
        yield None
        if begun is not None:
            yield begun
        seen: OrderedDict[str, None] = OrderedDict()
        subjects = "syn.ev.>" if host is None else f"syn.ev.{host}.>"
        while True:
            gap, stored = await self._page(place, subjects, newest=newest)
            if gap is not None:
                yield gap
            for one in stored:
                if newest and one.seq > place.upto:
                    return
                place.seq = one.seq
                event = await self._read(one, place.cursor(), seen)
                if event is not None and (types is None or event.event in types):
                    yield event
            if newest and not stored:
                return
            if not stored:
                await asyncio.sleep(POLL_S)

    async def _page(
        self, place: "EventPlace", subjects: str, *, newest: bool
    ) -> tuple[FleetEvent | None, list[Stored]]:
        try:
            gap = await place.look()
            return gap, await self._broker.after(streams.EVENTS, place.seq + 1, subjects, PAGE)
        except (NoBroker, BrokerRefused) as error:
            if newest:
                raise _away(error) from None
            return None, []

    async def _begin(self, place: "EventPlace", after: str | None) -> FleetEvent | None:
        try:
            return await place.begin(None if after is None else EventCursor.parse(after))
        except BadEnvelope as error:
            raise InvalidRequest(f"after: {(after or '')[:100]!r}: {error}", field="after") from None
        except (NoBroker, BrokerRefused) as error:
            raise _away(error) from None

    async def _read(self, stored: Stored, cursor: str, seen: OrderedDict[str, None]) -> FleetEvent | None:
        try:
            subject = EventSubject.parse(stored.subject)
            envelope = Envelope.read(stored.subject, stored.headers, stored.body)
            named = f"{subject.src}/{envelope.id}"
            if named in seen:
                return None
            await self._peers.check(envelope, subject.src, self._broker)
            event = read_event(subject.src, subject.type, envelope.body, place=cursor)
        except (BadName, BadEnvelope, NotMet) as error:
            log.info("an event is not shown", subject=ascii(stored.subject[:200]), why=str(error))
            return None
        except (NoBroker, BrokerRefused) as error:
            log.info(
                "an event cannot be checked now, and is not shown", subject=ascii(stored.subject[:200]), why=str(error)
            )
            return None
        seen[named] = None
        if len(seen) > SEEN:
            seen.popitem(last=False)
        return event


class EventPlace:
    """Place of a reader in the present stream."""

    def __init__(self, broker: Broker, clock: Clock) -> None:
        self._broker = broker
        self._clock = clock
        self._stream = ""
        self._looked_at = 0.0
        self.seq = 0
        self.upto = 0
        """Place of the newest event when the reader began."""

    def cursor(self) -> str:
        return str(EventCursor(self._stream, self.seq))

    async def begin(self, cursor: EventCursor | None) -> FleetEvent | None:
        """Sets the place by the cursor; returns a gap if events after the cursor are missing."""
        facts = await self._facts()
        self.upto = facts[1]
        if cursor is None:
            self.seq = self.upto
            return None
        self.seq = cursor.seq
        if cursor.stream not in ("", self._stream):
            return self._made_again(facts[0])
        return self._missing(facts[0], facts[1], told=cursor.seq > 0)

    async def look(self) -> FleetEvent | None:
        """Checks now and then that the stream is still the same; returns a gap if it is not, or if events are
        missing."""
        if self._clock.monotonic() - self._looked_at < LOOK_S:
            return None
        before = self._stream
        first, last = await self._facts()
        return self._missing(first, last) if self._stream == before else self._made_again(first)

    async def _facts(self) -> tuple[int, int]:
        facts = await self._broker.facts(streams.EVENTS, "syn.ev._")
        self._looked_at = self._clock.monotonic()
        self._stream = stream_name(facts.created)
        return facts.first, facts.last

    def _missing(self, first: int, last: int, *, told: bool = True) -> FleetEvent | None:
        if self.seq > last:  # an older copy of the stream was restored
            return self._made_again(first)
        if self.seq + 1 >= first:
            return None
        before, self.seq = self.seq, first - 1
        return self._gap(before + 1, first - 1) if told else None

    def _made_again(self, first: int) -> FleetEvent:
        before, self.seq = self.seq, max(0, first - 1)
        return self._gap(before + 1, None)

    def _gap(self, first: int, last: int | None) -> FleetEvent:
        """Returns a gap; `to` is None if the number of lost events is unknown."""
        return FleetEvent(id=None, event=GAP, data={"from": first, "to": last}, time=iso(self._clock.wall()))


def _away(error: Exception) -> NotReady:
    return NotReady(
        f"the fleet's events are read at its broker, which is not reached now: {error}; 'synapsectl fleet status' "
        "says more"
    )
