"""Interfaces between the modules of the fleet: above all the broker, as far as it is used."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from synapsed_fleet.envelope import Envelope


class NoBroker(Exception):
    """It is not there, or has no leader now: everything is tried again."""


class BrokerRefused(Exception):
    """It is there, and says no. `code` is JetStream's `err_code`."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


WRONG_SEQUENCE = 10071
"""`err_code` of a publish that expected another last message of its subject: somebody was first."""


@dataclass(frozen=True, slots=True)
class Piped:
    """The broker's word that it has something, which closes nothing: it may lose it."""

    seq: int
    copy: bool = False
    """It had it already: `seq` is where that stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFacts:
    """State of a stream: `created` tells one from another of the same name, `pending` counts the requested messages in
    it, by subject."""

    created: str
    first: int
    last: int
    pending: Mapping[str, int]
    size: int = 0
    size_max: int = 0
    """Bytes that are in it, and that may be; 0: not told."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A message that is read where it is kept."""

    subject: str
    headers: Mapping[str, str]
    body: bytes
    seq: int


class Broker(Protocol):
    """One connection. Every method raises NoBroker if it is not there, and BrokerRefused."""

    @property
    def up(self) -> bool: ...

    async def publish(self, envelope: Envelope, *, first: bool = False) -> Piped:
        """Into the stream of its subject; `first`: only if there is no message of that subject."""
        ...

    async def tell(self, envelope: Envelope) -> None:
        """To whoever listens now, and is kept nowhere: nobody says whether it has come."""
        ...

    async def say(self, subject: str, body: bytes) -> None:
        """A plain message, into the stream of its subject if there is one."""
        ...

    async def release(self, subject: str) -> None:
        """Releases the messages under the subject, which are not needed any more."""
        ...

    async def facts(self, stream: str, subjects: str) -> StreamFacts:
        """`subjects`: what is counted by subject."""
        ...

    async def last(self, stream: str, subject: str) -> Stored | None:
        """The last message of the subject, from any broker that has it."""
        ...

    async def all_last(self, stream: str, subjects: str) -> list[Stored]:
        """The last message of each of the subjects."""
        ...

    async def after(self, stream: str, seq: int, subjects: str, limit: int) -> list[Stored]:
        """At most `limit` messages of the subjects from `seq` on, in their order."""
        ...

    async def next(self, stream: str, consumer: str, *, wait: float) -> "Delivered | None":
        """The next message that a consumer gives within so many seconds; 0: if there is one now."""
        ...

    async def ask(self, subject: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """A question to a member, answered by JSON."""
        ...


class Came(Protocol):
    """A message from the broker."""

    @property
    def subject(self) -> str: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def body(self) -> bytes: ...


class Delivered(Came, Protocol):
    """One message of one's own mail, or of work: to be acked once it is committed."""

    @property
    def times(self) -> int:
        """Number of deliveries, this one included."""
        ...

    async def ack(self) -> None:
        """May raise nothing: an ack that is lost brings the message again."""
        ...

    async def later(self, seconds: float) -> None:
        """It comes again after so long."""
        ...
