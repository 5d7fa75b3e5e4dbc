"""Interfaces between the modules of the fleet: mainly the broker, as far as it is used."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from synapsed_fleet.envelope import Envelope


class NoBroker(Exception):
    """Error if the broker is not reached, or has no leader now: every call is tried again."""


class BrokerRefused(Exception):
    """Error if the broker refuses a call. `code` is JetStream's `err_code`."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


WRONG_SEQUENCE = 10071
"""`err_code` of a publication that expected another last message of its subject: another one came first."""


@dataclass(frozen=True, slots=True)
class Piped:
    """The broker's ack of a message, which closes no row: the broker may lose the message."""

    seq: int
    copy: bool = False
    """True if the broker had the message already: `seq` is then the place of that one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFacts:
    """State of a stream: `created` identifies it among streams of the same name, `pending` counts the requested
    messages in it, by subject."""

    created: str
    first: int
    last: int
    pending: Mapping[str, int]
    size: int = 0
    size_max: int = 0
    """Bytes in the stream; and the most that it may have, 0 if not known."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A message as the broker keeps it."""

    subject: str
    headers: Mapping[str, str]
    body: bytes
    seq: int


class Broker(Protocol):
    """One connection. Every method raises NoBroker if the broker is not reached, and BrokerRefused."""

    @property
    def up(self) -> bool: ...

    async def publish(self, envelope: Envelope, *, first: bool = False) -> Piped:
        """Publishes to the stream of the envelope's subject; `first`: only if there is no message of that subject."""
        ...

    async def tell(self, envelope: Envelope) -> None:
        """Publishes to present listeners, without a copy or a confirmation."""
        ...

    async def say(self, subject: str, body: bytes) -> None:
        """Publishes a plain message to the stream of its subject."""
        ...

    async def release(self, subject: str) -> None:
        """Releases the messages under the subject, which are not needed any more."""
        ...

    async def facts(self, stream: str, subjects: str) -> StreamFacts:
        """Returns the state of a stream; `subjects`: pattern of the messages that are counted by subject."""
        ...

    async def last(self, stream: str, subject: str) -> Stored | None:
        """Returns the last message of the subject, from any broker that has it; None if there is no message."""
        ...

    async def all_last(self, stream: str, subjects: str) -> list[Stored]:
        """Returns the last message of each of the subjects."""
        ...

    async def after(self, stream: str, seq: int, subjects: str, limit: int) -> list[Stored]:
        """Returns at most `limit` messages of the subjects from `seq` on, in their order."""
        ...

    async def next(self, stream: str, consumer: str, *, wait: float) -> "Delivered | None":
        """Returns the next message that a consumer gives within `wait` seconds; with 0: only one that is there now."""
        ...

    async def ask(self, subject: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Sends a request to a member, and returns the answer, which is JSON."""
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
    """One message of this host's mail, or of work; the receiver acks it once it is committed."""

    @property
    def times(self) -> int:
        """Number of deliveries, this one included."""
        ...

    async def ack(self) -> None:
        """Acks the message, and raises no error: after a lost ack the broker delivers the message again."""
        ...

    async def later(self, seconds: float) -> None:
        """Asks for another delivery after `seconds`."""
        ...
