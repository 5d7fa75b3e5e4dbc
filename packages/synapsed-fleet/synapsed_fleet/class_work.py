"""Claims work that is sent to `any:CLASS` by compare-and-set, so that one host takes it and treats it like any other
message.

The states of one piece of work on this host follow. SQLite has what is needed to find the state again, since each step
may be interrupted:

============  ==============================  =================================================================
state         what happened                   next
============  ==============================  =================================================================
seen          it is kept as a candidate       claim it: the first message of its subject, of that round
claimed       no host was first: it is ours   it becomes a task of an agent here, under its host and id
refused       another message was first       read the claim: it is ours after all (the ack was lost), or another's
undecided     the broker did not say          it stays a candidate, and is asked again
lost          it is another's                 the candidate is forgotten
============  ==============================  =================================================================

Only then the delivery is acked: a host that takes the work a second time finds the claim. So no work runs on two hosts,
and work that a host has claimed stays with that host, even if the host goes away.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, Protocol

import structlog

from synapsed.errors import Busy, NotReady, QueueFull, StoreError, SynapsedError
from synapsed.interfaces import SendRequest
from synapsed.model.task import Task, new_id
from synapsed_fleet import receipts, streams
from synapsed_fleet.a2a_types import Shapes
from synapsed_fleet.envelope import BadEnvelope, Envelope, encoded
from synapsed_fleet.fleet_rows import FleetChange, FleetOrigin, InRow, WorkCandidate
from synapsed_fleet.fleet_table import FleetTable
from synapsed_fleet.names import ANY, BadName, MailKind, WorkSubject, claim, host, urgent
from synapsed_fleet.outgoing import Outgoing, Speaker
from synapsed_fleet.parcel_fetching import Fetching, NotHere, document_of
from synapsed_fleet.peer_certificates import NotMet, Peers
from synapsed_fleet.ports import WRONG_SEQUENCE, Broker, BrokerRefused, Delivered, NoBroker
from synapsed_fleet.wakeup import Bell

ASK_S: Final = 4.0
"""Seconds that one request for work waits at the broker."""
AGAIN_S: Final = 5.0
"""Seconds until undecided candidates are asked for again, and until an idle agent is looked for again."""

log = structlog.stdlib.get_logger("synapsed.fleet")


class ClaimVerdict(Enum):
    """Decision about the host that has a piece of work."""

    OURS = auto()
    ANOTHERS = auto()
    UNDECIDED = auto()


class TakesMail(Protocol):
    """Interface for the mailbox that takes messages (`incoming`)."""

    async def hand_over(self, agent_id: str, request: SendRequest) -> Task: ...

    async def quarantine(self, delivered: Delivered, reason: str) -> None: ...


class IdleAgents(Protocol):
    """Interface to agents that may be given work."""

    def idle(self, cls: str) -> str | None:
        """Returns the id of an agent of the class that has nothing to do, None if all are busy."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkDeps:
    """Dependencies of `Working`. `owed` is called when a receipt is due."""

    me: Speaker
    table: FleetTable
    peers: Peers
    broker: Broker
    outgoing: Outgoing
    fetching: Fetching
    shapes: Shapes
    agents: IdleAgents
    persons: frozenset[str]
    owed: Callable[[], None]


class Claims:
    """Claims of hosts for work: read at the broker, and verified by the signature."""

    def __init__(self, broker: Broker, peers: Peers) -> None:
        self._broker = broker
        self._peers = peers

    async def winner(self, src: str, task_id: str, round_: int = 1) -> str | None:
        """Returns the host that has claimed the work of the host `src`, None while there is no claim. Raises NoBroker,
        NotMet, and BadEnvelope for a claim that its host has not signed."""
        subject = claim(src, task_id, round_)
        found = await self._broker.last(streams.CLAIM, subject)
        if found is None:
            return None
        envelope = Envelope.read(subject, found.headers, found.body)
        try:
            named = host(str(envelope.document().get("host")))
        except BadName as error:
            raise BadEnvelope("a claim names no host") from error
        await self._peers.check(envelope, named, self._broker)
        return named


class Working:
    """Claims work and gives it to agents of this host. `take` handles each delivery; `resume` runs at the start and
    whenever something is undecided."""

    def __init__(self, deps: WorkDeps, mailbox: TakesMail, claims: Claims) -> None:
        self._deps = deps
        self._mailbox = mailbox
        self._claims = claims
        self._deciding: set[tuple[str, str]] = set()
        self.undecided = Bell()
        """Rings for each candidate that comes."""

    async def ask(self, classes: Sequence[str]) -> None:
        """Asks for work of each class while an agent of it is idle; never returns."""
        await asyncio.gather(*(self._ask(cls) for cls in classes))

    async def _ask(self, cls: str) -> None:
        while True:
            try:
                if self._deps.agents.idle(cls) is not None and self._deps.broker.up:
                    found = await self._deps.broker.next(streams.WORK, urgent(cls), wait=0)
                    found = found or await self._deps.broker.next(streams.WORK, cls, wait=ASK_S)
                    if found is not None:
                        await self.take(found)
                        continue
            except (NoBroker, BrokerRefused) as error:
                log.debug("no work can be asked for", work=cls, why=str(error))
            except StoreError as error:
                log.warning("work cannot be kept now", why=error.message)
            await asyncio.sleep(1.0)

    async def take(self, delivered: Delivered) -> None:
        """Handles one delivery, up to its ack; undecided work is delivered again."""
        deps = self._deps
        try:
            subject = WorkSubject.parse(delivered.subject)
            envelope = Envelope.read(delivered.subject, delivered.headers, delivered.body)
            await deps.peers.check(envelope, subject.src, deps.broker)
            document = await document_of(envelope)
            round_ = receipts.read_round(document)
        except (BadName, BadEnvelope) as error:
            await self._mailbox.quarantine(delivered, str(error))
            return await delivered.ack()
        except NotMet:
            return await delivered.later(AGAIN_S)
        work = WorkCandidate(src=subject.src, id=envelope.id, cls=subject.cls, round=round_, body=json.dumps(document))
        if await deps.table.taken(subject.src, envelope.id) is not None:
            verdict = await self._judge_again(work)
        else:
            await deps.table.change(FleetChange(candidates=(work,)))
            self.undecided.set()
            verdict = await self._decide(work)
        if verdict is ClaimVerdict.UNDECIDED:
            return await delivered.later(AGAIN_S)
        await delivered.ack()
        deps.owed()
        return None

    async def _judge_again(self, work: WorkCandidate) -> ClaimVerdict:
        """Decides about work that was taken here before. If it comes in another round, its sender believed this host to
        be lost: the work done here counts for that round too, unless another host has claimed it."""
        verdict = await self.claim(work) if work.round > 1 else ClaimVerdict.OURS
        if verdict is ClaimVerdict.OURS:
            await self._deps.table.owe(work.src, work.id)
        if verdict is ClaimVerdict.OURS and work.round > 1:
            await self._deps.table.tell_again(work.src, [work.id])
        return verdict

    async def resume(self) -> bool:
        """Decides all candidates that are left: the last daemon was killed, or the broker did not answer, or no agent
        of this host was free. Returns True if there were any."""
        candidates = await self._deps.table.candidates()
        for work in candidates:
            await self._decide(work)
        return bool(candidates)

    async def _decide(self, work: WorkCandidate) -> ClaimVerdict:
        key = (work.src, work.id)
        if key in self._deciding:
            return ClaimVerdict.UNDECIDED
        self._deciding.add(key)
        try:
            verdict = await self.claim(work)
            if verdict is ClaimVerdict.ANOTHERS:
                await self._deps.table.change(FleetChange(decided=(key,)))
            elif verdict is ClaimVerdict.OURS:
                await self._begin(work)
        finally:
            self._deciding.discard(key)
        return verdict

    async def claim(self, work: WorkCandidate) -> ClaimVerdict:
        deps = self._deps
        body = encoded({"host": deps.me.name, "task": work.id, "round": work.round})
        envelope = deps.outgoing.sign(claim(work.src, work.id, work.round), new_id(), body)
        try:
            try:
                await deps.broker.publish(envelope, first=True)
            except BrokerRefused as error:
                if error.code != WRONG_SEQUENCE:
                    raise
            # Read it in any case: an ack may be for another host's claim, and the ack of ours may have been lost.
            winner = await self._claims.winner(work.src, work.id, work.round)
        except (NoBroker, NotMet) as error:
            log.info("it is not known yet whose this work is", task=work.id, why=str(error))
            return ClaimVerdict.UNDECIDED
        except BrokerRefused as error:
            log.warning("work cannot be claimed", task=work.id, why=str(error))
            return ClaimVerdict.UNDECIDED
        except BadEnvelope as error:
            log.warning("a claim is not its host's", task=work.id, why=str(error))
            return ClaimVerdict.ANOTHERS
        if winner is None:
            return ClaimVerdict.UNDECIDED
        return ClaimVerdict.OURS if winner == deps.me.name else ClaimVerdict.ANOTHERS

    async def _begin(self, work: WorkCandidate) -> None:
        """Makes a task of an agent here; if none can take it now, the candidate waits."""
        deps, origin = self._deps, FleetOrigin(work.src, work.id)
        if await deps.table.taken(*origin) is None:
            await deps.shapes.ready()
            from synapsed_fleet import messages

            try:
                subject = str(WorkSubject(work.cls, work.src))
                kept = Envelope(subject=subject, id=work.id, body=work.body.encode())
                document = await deps.fetching.document(kept, work.src, f"{ANY}{work.cls}")
                addressed = await asyncio.to_thread(messages.read_message, document, origin, persons=deps.persons)
                agent_id = deps.agents.idle(work.cls.removesuffix("-hi"))
                if agent_id is None:
                    return
                await self._mailbox.hand_over(agent_id, addressed.request)
            except NotHere:
                return
            except (QueueFull, Busy, NotReady, StoreError) as error:
                log.info("work waits for an agent", task=work.id, why=error.message)
                return
            except (SynapsedError, BadEnvelope) as error:
                await self._refuse(origin, error)
        await deps.table.change(FleetChange(decided=((origin.src, origin.id),)))
        await deps.fetching.taken(*origin)
        deps.owed()

    async def _refuse(self, origin: FleetOrigin, error: SynapsedError | BadEnvelope) -> None:
        told: dict[str, Any] = {"code": "INVALID_REQUEST", "message": str(error)}
        if isinstance(error, SynapsedError):
            told = {"code": error.code, "message": error.message}
        row = InRow(src=origin.src, id=origin.id, kind=MailKind.MESSAGE, refused=json.dumps(told))
        await self._deps.table.change(FleetChange(taken=(row,)))
