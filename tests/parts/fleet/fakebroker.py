"""A broker that is a few dictionaries, and the connection of one host to it, for fleets without processes (`world`).

Each step that leaves a host (a write, a read, a publish, an ack) can be the one before or after which its daemon is
killed.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from synapsed_fleet import streams
from synapsed_fleet.envelope import Envelope
from synapsed_fleet.ports import WRONG_SEQUENCE, BrokerRefused, NoBroker, Piped, Stored, StreamFacts

__all__ = ["Broker", "Fuse", "Kept", "Killed", "Wire"]


class Killed(BaseException):
    """The daemon is no more, at this very moment."""


class Fuse:
    """Kills at the step with this number; steps are counted from 1. None: never."""

    def __init__(self) -> None:
        self.at: int | None = None
        self.steps = 0

    def step(self) -> None:
        self.steps += 1
        if self.at is not None and self.steps >= self.at:
            raise Killed


@dataclass
class Kept:
    """One message of a stream, and whether somebody has it in hand."""

    subject: str
    headers: Mapping[str, str]
    body: bytes
    seq: int
    times: int = 0
    out: bool = False


@dataclass
class Stream:
    """A stream of the broker."""

    created: str
    messages: list[Kept] = field(default_factory=list)
    last: int = 0
    seen: dict[str, int] = field(default_factory=dict)


_STREAMS = {"to": streams.IN, "work": streams.WORK, "claim": streams.CLAIM, "ev": streams.EVENTS}


class Broker:
    """JetStream as far as it is used. `away`: nobody reaches it; `lose_acks`: what is published is kept, and its ack is
    lost so often."""

    def __init__(self) -> None:
        self.made = 0
        self.streams: dict[str, Stream] = {}
        self.records: dict[str, Stored] = {}
        self.files: dict[str, Stored] = {}
        self.said = 0
        self.live: dict[str, list[Stored]] = {}
        """What is told and kept nowhere, by the host that listens."""
        self.lose_live = 0
        self.away = False
        self.lose_acks = 0
        self.lose_receipts = 0
        self.wipe()

    def wipe(self) -> None:
        """Its disk is lost; the admin's daemon has made the streams again."""
        self.made += 1
        self.streams = {
            name: Stream(str(self.made)) for name in (streams.IN, streams.WORK, streams.CLAIM, streams.EVENTS)
        }
        self.files.clear()

    def put(self, envelope: Envelope, *, first: bool) -> Piped:
        kind = envelope.subject.split(".")[1]
        stream = self.streams[_STREAMS[kind]]
        headers = envelope.headers()
        if headers["Nats-Msg-Id"] in stream.seen:
            return Piped(stream.seen[headers["Nats-Msg-Id"]], copy=True)
        if first and any(each.subject == envelope.subject for each in stream.messages):
            raise BrokerRefused(WRONG_SEQUENCE, "wrong last sequence: 1")
        if self.lose_receipts and envelope.subject.endswith(".rcpt"):
            self.lose_receipts -= 1
            return Piped(stream.last + 1)
        stream.last += 1
        stream.seen[headers["Nats-Msg-Id"]] = stream.last
        stream.messages.append(Kept(envelope.subject, headers, envelope.body, stream.last))
        return Piped(stream.last)

    def forget_who_has_what(self) -> None:
        """Whatever was in hand is given out again: ack_wait is over."""
        for stream in self.streams.values():
            for each in stream.messages:
                each.out = False


class Wire:
    """The connection of one host (`ports.Broker`), which ends with its daemon."""

    def __init__(self, broker: Broker, fuse: Fuse) -> None:
        self._broker = broker
        self._fuse = fuse

    @property
    def up(self) -> bool:
        return not self._broker.away

    @asynccontextmanager
    async def _reached(self) -> AsyncGenerator[None]:
        self._fuse.step()
        if self._broker.away:
            raise NoBroker("it is away")
        yield
        self._fuse.step()

    async def publish(self, envelope: Envelope, *, first: bool = False) -> Piped:
        async with self._reached():
            piped = self._broker.put(envelope, first=first)
            if self._broker.lose_acks:
                self._broker.lose_acks -= 1
                raise NoBroker("its ack was lost")
        return piped

    async def tell(self, envelope: Envelope) -> None:
        async with self._reached():
            if self._broker.lose_live:
                self._broker.lose_live -= 1
            else:
                told = Stored(envelope.subject, envelope.headers(), envelope.body, 0)
                self._broker.live.setdefault(envelope.subject.split(".")[2], []).append(told)

    async def say(self, subject: str, body: bytes) -> None:
        async with self._reached():
            kept = self._broker.files if subject.startswith("syn.file.") else self._broker.records
            self._broker.said += 1
            kept[subject] = Stored(subject, {}, body, self._broker.said)

    async def release(self, subject: str) -> None:
        async with self._reached():
            self._broker.files.pop(subject, None)

    async def facts(self, stream: str, subjects: str) -> StreamFacts:
        async with self._reached():
            if stream == streams.FILES:
                return StreamFacts(created="1", first=0, last=0, pending={}, size=0, size_max=1 << 30)
            found = self._broker.streams[stream]
            pending: dict[str, int] = {}
            for each in found.messages:
                pending[each.subject] = pending.get(each.subject, 0) + 1
            first = found.messages[0].seq if found.messages else found.last + 1
        return StreamFacts(created=found.created, first=first, last=found.last, pending=pending)

    async def last(self, stream: str, subject: str) -> Stored | None:
        async with self._reached():
            if stream == streams.HOSTS:
                return self._broker.records.get(subject)
            if stream == streams.FILES:
                return self._broker.files.get(subject)
            found = [each for each in self._broker.streams[stream].messages if each.subject == subject]
        return Stored(subject, found[-1].headers, found[-1].body, found[-1].seq) if found else None

    async def all_last(self, stream: str, subjects: str) -> list[Stored]:
        return list(self._broker.records.values())

    async def after(self, stream: str, seq: int, subjects: str, limit: int) -> list[Stored]:
        async with self._reached():
            begin = subjects.removesuffix(">")
            found = [
                each
                for each in self._broker.streams[stream].messages
                if each.seq >= seq and each.subject.startswith(begin)
            ]
        return [Stored(each.subject, each.headers, each.body, each.seq) for each in found[:limit]]

    async def ask(self, subject: str, document: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    async def next(self, stream: str, consumer: str, *, wait: float) -> "Given | None":
        async with self._reached():
            for each in self._broker.streams[stream].messages:
                if not each.out and _is_for(each.subject, consumer):
                    each.out = True
                    each.times += 1
                    return Given(self._broker, stream, each, self._fuse)
        return None


def _is_for(subject: str, consumer: str) -> bool:
    tokens = subject.split(".")
    return tokens[2] == consumer


@dataclass
class Given:
    """A delivery."""

    broker: Broker
    stream: str
    message: Kept
    fuse: Fuse

    @property
    def subject(self) -> str:
        return self.message.subject

    @property
    def headers(self) -> Mapping[str, str]:
        return self.message.headers

    @property
    def body(self) -> bytes:
        return self.message.body

    @property
    def times(self) -> int:
        return self.message.times

    async def ack(self) -> None:
        self.fuse.step()
        with suppress(ValueError):
            self.broker.streams[self.stream].messages.remove(self.message)
        self.fuse.step()

    async def later(self, seconds: float) -> None:
        self.fuse.step()
