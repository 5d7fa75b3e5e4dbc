"""Sends and receives the text of answers that still grow, between hosts, in `live_text_pieces`.

Neither direction delays anything else: text that cannot be sent now is dropped, and the answer comes by mail.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

import structlog

from synapsed.clock import Clock
from synapsed.errors import StoreError
from synapsed.interfaces import EventFilter, EventLog, Store
from synapsed.model.events import Event, TaskArtifactAdded
from synapsed.model.external import KEY as EXTERNAL
from synapsed.model.task import ANSWER_ID, Task
from synapsed.store.follower import Follower
from synapsed.store.lookup import told_before
from synapsed.tasks import transitions
from synapsed_fleet.envelope import BadEnvelope, Envelope
from synapsed_fleet.fleet_rows import FleetOrigin, carried_by_fleet
from synapsed_fleet.fleet_table import FleetTable
from synapsed_fleet.incoming import Incoming
from synapsed_fleet.live_text_pieces import ASK_EVERY_S, Bounded, Listened, Place, SaidPiece, SayAgain, read
from synapsed_fleet.names import BadName, SaySubject, parse_update
from synapsed_fleet.outgoing import Outgoing, Speaker
from synapsed_fleet.parcel_fetching import document_of
from synapsed_fleet.peer_certificates import NotMet, Peers
from synapsed_fleet.ports import Broker, NoBroker, Stored

SAY_EVERY_S: Final = 0.05
"""Seconds whose text goes in one piece."""
QUARANTINE_EVERY_S: Final = 1.0
"""Seconds between two invalid pieces that are quarantined: live text may come faster than a database can write."""

log = structlog.stdlib.get_logger("synapsed.fleet")


class LiveTelling(Follower):
    """Follower of the event log that sends the text which agents here write to the hosts that have sent their tasks."""

    name = "live text"
    wants = EventFilter(types=frozenset({"taskArtifact"}))
    pace = SAY_EVERY_S

    def __init__(
        self, *, me: Speaker, events: EventLog, store: Store, table: FleetTable, broker: Broker, outgoing: Outgoing
    ) -> None:
        super().__init__(events)
        self._me = me
        self._store = store
        self._table = table
        self._broker = broker
        self._outgoing = outgoing
        self._places: Bounded[tuple[FleetOrigin, Place] | None] = Bounded()
        """Place up to which each task's text was sent; None for tasks that no other host has sent."""
        self._said: list[tuple[str, SaidPiece]] = []

    async def handle(self, event: Event) -> None:
        if (found := await self._piece(event)) is not None:
            self._said.append(found)

    async def handled(self) -> None:
        said, self._said = self._said, []
        for dst, piece in _joined(said):
            await self._say(dst, piece)

    async def again(self, src: str, named: str) -> None:
        """Sends the whole text so far of the task that the host `src` calls `named`."""
        known = await self._table.taken(src, named)
        task = None if known is None or known.task_id is None else await self._store.task(known.task_id)
        if task is not None and not task.terminal and FleetOrigin.of(task.metadata) == (src, named):
            begin, text = await _said_before(self._events, task.id, self._events.last_id)
            await self._say(src, SaidPiece(named, begin, 0, text))

    async def _say(self, dst: str, piece: SaidPiece) -> None:
        subject = str(SaySubject(dst, self._me.name))
        try:
            for each in piece.split():
                await self._broker.tell(self._outgoing.sign(subject, f"{each.task}/{each.at}", each.body()))
        except NoBroker:
            log.debug("a piece of text is not told: there is no broker", task=piece.task)

    async def _piece(self, event: Event) -> tuple[str, SaidPiece] | None:
        """Returns the host for which the event's text is meant, and the text as a piece; None for the end of an answer,
        and for a task that no other host has sent."""
        data = event.data
        if not isinstance(data, TaskArtifactAdded) or event.task_id is None or data.artifact.artifact_id != ANSWER_ID:
            return None
        if data.last_chunk:
            self._places.pop(event.task_id, None)
            return None
        if event.task_id not in self._places:
            self._places[event.task_id] = await self._begun(event.task_id, event.id)
        if (known := self._places[event.task_id]) is None:
            return None
        origin, place = known
        if not data.append or place.length == 0:
            place.begin, place.length = event.id, 0
        piece = SaidPiece(origin.id, place.begin, place.length, data.artifact.text)
        place.length += len(piece.text)
        return origin.src, piece

    async def _begun(self, task_id: str, before: int) -> tuple[FleetOrigin, Place] | None:
        """Returns the place up to which a task's text was sent before the event `before`."""
        task = await self._store.task(task_id)
        origin = None if task is None else FleetOrigin.of(task.metadata)
        if origin is None:
            return None
        begin, text = await _said_before(self._events, task_id, before - 1)
        return origin, Place(begin, len(text))


def _joined(said: Sequence[tuple[str, SaidPiece]]) -> Iterator[tuple[str, SaidPiece]]:
    """Joins pieces that follow each other."""
    last: tuple[str, SaidPiece] | None = None
    for dst, piece in said:
        if last is not None:
            to, before = last
            if (to, before.task, before.begin) == (dst, piece.task, piece.begin):
                last = dst, SaidPiece(piece.task, piece.begin, before.at, before.text + piece.text)
                continue
            yield last
        last = dst, piece
    if last is not None:
        yield last


async def _said_before(events: EventLog, task_id: str, upto: int) -> tuple[int, str]:
    """Returns the text of a task up to the event `upto`, and the event with which the text begins."""
    begin, text, after = 0, "", 0
    while batch := await events.read(after, task_id=task_id):
        for event in batch:
            data = event.data
            if event.id > upto:
                return begin, text
            if isinstance(data, TaskArtifactAdded) and data.artifact.artifact_id == ANSWER_ID:
                if not data.append or not text:
                    begin, text = event.id, ""
                text += data.artifact.text
        after = batch[-1].id
    return begin, text


class LiveHearing:
    """Receives the text of tasks that this host has sent; `again` is called if another host asks for earlier text."""

    def __init__(
        self,
        *,
        me: Speaker,
        store: Store,
        peers: Peers,
        broker: Broker,
        outgoing: Outgoing,
        incoming: Incoming,
        clock: Clock,
        again: Callable[[str, str], Awaitable[None]],
    ) -> None:
        self._me = me
        self._store = store
        self._peers = peers
        self._broker = broker
        self._outgoing = outgoing
        self._incoming = incoming
        self._clock = clock
        self._again = again
        self._listened = Listened()
        self._asked: Bounded[float] = Bounded()
        self._quarantined_at = -QUARANTINE_EVERY_S

    async def take(self, came: Stored) -> None:
        """Handles one piece, or request, from the broker. An exception that it raises is a bug."""
        try:
            subject = self._addressed(came.subject)
            envelope = Envelope.read(came.subject, came.headers, came.body)
            await self._peers.check(envelope, subject.src, self._broker)
            if envelope.known_version:
                said = read(parse_update(envelope.id)[0], await document_of(envelope))
                await (self._asks(subject.src, said) if isinstance(said, SayAgain) else self._hear(subject.src, said))
        except (BadName, BadEnvelope) as error:
            now = self._clock.monotonic()
            if now - self._quarantined_at >= QUARANTINE_EVERY_S:
                self._quarantined_at = now
                await self._incoming.quarantine(came, str(error))
        except (NotMet, NoBroker, StoreError) as error:
            log.debug("a piece of text is not heard", why=str(error))

    def _addressed(self, subject: str) -> SaySubject:
        """Parses the subject of text for this host. Raises BadName, BadEnvelope."""
        parsed = SaySubject.parse(subject)
        if parsed.dst != self._me.name:
            raise BadEnvelope("it is for another host")
        return parsed

    async def _asks(self, src: str, ask: SayAgain) -> None:
        now, key = self._clock.monotonic(), f"{src} {ask.task}"
        if now - self._asked.get(key, -ASK_EVERY_S) >= ASK_EVERY_S / 2:
            self._asked[key] = now
            await self._again(src, ask.task)

    async def _hear(self, src: str, piece: SaidPiece) -> None:
        async with self._incoming.lock(piece.task):
            task = await self._store.task(piece.task)
            if task is None or task.terminal or not _has(task, src):
                return self._listened.forget(piece.task)
            told = self._listened.knows(task.id) or bool(await told_before(self._store.events, task.id))
            heard = self._listened.take(piece, told=told)
            if heard == "ask":
                return await self._ask(src, task.id)
            if heard is not None:
                await self._tell(task, *heard)
        return None

    async def _tell(self, task: Task, text: str, append: bool) -> None:
        try:
            await self._store.commit(events=[transitions.said(task, text=text, append=append)])
        except StoreError:
            self._listened.forget(task.id)  # later pieces would not follow the text in the log
            raise

    async def _ask(self, src: str, task_id: str) -> None:
        if self._listened.may_ask(task_id, self._clock.monotonic()):
            subject = str(SaySubject(src, self._me.name))
            await self._broker.tell(self._outgoing.sign(subject, task_id, SayAgain.body()))


def _has(task: Task, src: str) -> bool:
    """Returns True if the host `src` has the task."""
    return carried_by_fleet(task) and (task.metadata.get(EXTERNAL) or {}).get("host") == src
