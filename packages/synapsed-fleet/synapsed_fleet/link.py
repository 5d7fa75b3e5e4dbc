"""The connection to the broker, as the fleet uses it (`ports.Broker`): one inbox for all answers, and own requests.

nats-py makes the connection and makes it again. Its higher functions are not used: its requests wait for their full
time after the connection was lost, and its `fetch` behaves unexpectedly at a reconnect. Here every wait ends as soon as
the connection does (NoBroker), and the caller asks again.
"""

import asyncio
import itertools
import json
import random
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from synapsed.clock import backoff
from synapsed.shared.outside_json import NotJson, read_object
from synapsed_fleet.dial import REMOVED, connect, explained
from synapsed_fleet.envelope import Envelope
from synapsed_fleet.ports import BrokerRefused, Delivered, NoBroker, Piped, Stored, StreamFacts

CALL_S: Final = 5.0
AGAIN_S: Final = 1.0
"""Seconds until a request is sent again that got no answer, because its stream has no leader."""
ASK_S: Final = 2.0
"""Seconds for a request to a member."""
LOST: Final = "the connection was lost"
NO_RESPONDERS: Final = "503"
NO_MESSAGE: Final = frozenset({"404", "408"})
END: Final = "204"
BATCH_MAX: Final = 2000
"""Records that are read at once."""
AFTER_MAX: Final = 1 << 20
"""Bytes of messages that are read at once."""
FIRST_AFTER_S: Final = 0.5
LONGEST_AFTER_S: Final = 10.0
LIVE_MAX: Final = 256
LIVE_SIZE: Final = 4 << 20
"""Most messages of live text, and their bytes, that wait here; further ones are lost."""

log = structlog.stdlib.get_logger("synapsed.fleet")


@dataclass(frozen=True, slots=True)
class StreamMessage:
    """A message of a consumer (`ports.Delivered`). It is acked only at the broker's own subjects for acks, not at a
    reply subject that a sender may have set."""

    msg: Msg
    client: Client

    @property
    def subject(self) -> str:
        return self.msg.subject

    @property
    def headers(self) -> Mapping[str, str]:
        return self.msg.headers or {}

    @property
    def body(self) -> bytes:
        return self.msg.data

    @property
    def times(self) -> int:
        tokens = self.msg.reply.split(".")
        return int(tokens[-5]) if len(tokens) >= 9 and tokens[-5].isdigit() else 1

    async def ack(self) -> None:
        await self._reply(b"+ACK")

    async def later(self, seconds: float) -> None:
        await self._reply(b"-NAK " + json.dumps({"delay": int(seconds * 1e9)}).encode())

    async def _reply(self, what: bytes) -> None:
        if self.msg.reply.startswith("$JS.ACK."):
            with suppress(NatsError, OSError):
                await self.client.publish(self.msg.reply, what)


class Link:
    """The connection; `run` keeps it for as long as there is a fleet. `options` returns those of the next connection
    (`dial.options`)."""

    def __init__(self, options: Callable[[], dict[str, Any]], inbox: str, *, on_up: Callable[[], None]) -> None:
        self._options = options
        self._inbox = inbox
        self._on_up = on_up
        self._client: Client | None = None
        self._waiting: dict[str, asyncio.Queue[Msg | None]] = {}
        self._numbers = itertools.count()
        self._prefix = ""
        self._listeners: dict[str, Callable[[Stored], Awaitable[None]]] = {}
        self._connected = asyncio.Event()
        self._closed = asyncio.Event()
        self.error = "it was not reached yet"
        """Reason why there is no broker now."""
        self.connects = 0
        self.since = time.time()
        """Time since which it is up, or is not, in seconds since the epoch."""

    @property
    def up(self) -> bool:
        return self._connected.is_set()

    @property
    def server(self) -> str:
        """Address of the broker that it is connected to, for people."""
        client = self._client
        url = client.connected_url if client is not None and self.up else None
        return "" if url is None else url.netloc.rpartition("@")[2]

    @property
    def client(self) -> Client:
        """Returns the client. Raises NoBroker."""
        if self._client is None or not self.up:
            raise NoBroker(self.error)
        return self._client

    def listen(self, subject: str, take: Callable[[Stored], Awaitable[None]]) -> None:
        """Registers `take`: from the next connection on it gets the messages of the subject, one after the other."""
        self._listeners[subject] = take

    async def wait_up(self) -> None:
        await self._connected.wait()

    async def run(self) -> None:
        """Connects, again and again, until it is cancelled."""
        failures = 0
        while True:
            self._closed.clear()
            try:
                await self._connect()
                failures = 0
                await self._closed.wait()
            except (NatsError, OSError, TimeoutError, ValueError) as error:
                self._failed(error)
                log.info("there is no broker", why=self.error)
            finally:
                await self._disconnect()
            pause = backoff(failures, initial=FIRST_AFTER_S, factor=2.0, maximum=LONGEST_AFTER_S)
            failures += 1
            await asyncio.sleep(pause * (0.7 + 0.6 * random.random()))  # noqa: S311 - no secret

    async def _connect(self) -> None:
        asked = {
            **self._options(),
            "allow_reconnect": True,
            "max_reconnect_attempts": -1,
            "disconnected_cb": self._on_lost,
            "reconnected_cb": self._on_again,
            "closed_cb": self._on_closed,
            "error_cb": self._on_error,
        }
        self._client = client = await connect(**asked)
        self._prefix = f"{self._inbox}.{secrets.token_hex(9)}"
        await client.subscribe(f"{self._prefix}.*", cb=self._answered)
        for subject, take in self._listeners.items():
            await client.subscribe(
                subject, cb=_given_to(take), pending_msgs_limit=LIVE_MAX, pending_bytes_limit=LIVE_SIZE
            )
        await self._on_again()

    async def _disconnect(self) -> None:
        client, self._client = self._client, None
        await self._on_lost()
        if client is not None and not client.is_closed:
            with suppress(NatsError, OSError, TimeoutError, asyncio.CancelledError):
                async with asyncio.timeout(2):
                    await client.close()

    # --- what nats-py tells ---

    async def _on_again(self) -> None:
        self.connects += 1
        self.error = LOST
        self.since = time.time()
        self._connected.set()
        self._on_up()

    async def _on_lost(self) -> None:
        if self._connected.is_set():
            self.since = time.time()
        self._connected.clear()
        for queue in list(self._waiting.values()):
            queue.put_nowait(None)

    async def _on_closed(self) -> None:
        if self._client is not None and (error := self._client.last_error) is not None:
            self._failed(error)
        self._closed.set()

    def _failed(self, error: Exception) -> None:
        """Keeps a revocation of this host's key until there is a connection again."""
        if self.error != REMOVED:
            self.error = explained(error)

    async def _on_error(self, error: Exception) -> None:
        self._failed(error)
        log.debug("the broker's connection", why=self.error)

    async def _answered(self, msg: Msg) -> None:
        queue = self._waiting.get(msg.subject.rpartition(".")[2])
        if queue is not None:
            queue.put_nowait(msg)

    # --- requests ---

    async def _request(
        self, subject: str, body: bytes, *, headers: dict[str, str] | None = None, seconds: float = CALL_S
    ) -> Msg:
        """Returns the first answer. Raises NoBroker."""
        async with self._asked(subject, body, headers) as (queue, ask):
            await ask()
            return await self._answer(queue, seconds)

    async def _insisted(self, subject: str, body: bytes) -> Msg:
        """Returns the first answer, as `_request` does, but asks every AGAIN_S until there is one."""
        until = time.monotonic() + CALL_S
        async with self._asked(subject, body) as (queue, ask):
            await ask()
            while (left := until - time.monotonic()) > AGAIN_S:
                with suppress(TimeoutError):
                    async with asyncio.timeout(AGAIN_S):
                        return _heard(await queue.get())
                await ask()
            return await self._answer(queue, left)

    @asynccontextmanager
    async def _asked(
        self, subject: str, body: bytes, headers: dict[str, str] | None = None
    ) -> "AsyncGenerator[tuple[asyncio.Queue[Msg | None], Callable[[], Awaitable[None]]]]":
        """Yields the queue of answers, and the function that asks. Raises NoBroker."""
        client, number = self.client, str(next(self._numbers))
        queue = self._waiting[number] = asyncio.Queue()

        async def ask() -> None:
            await client.publish(subject, body, reply=f"{self._prefix}.{number}", headers=headers)

        try:
            yield queue, ask
        except (NatsError, OSError) as error:
            raise NoBroker(str(error) or type(error).__name__) from error
        finally:
            self._waiting.pop(number, None)

    async def _answer(self, queue: "asyncio.Queue[Msg | None]", seconds: float) -> Msg:
        try:
            async with asyncio.timeout(seconds):
                msg = await queue.get()
        except TimeoutError as error:
            raise NoBroker("the broker did not answer") from error
        return _heard(msg)

    # --- ports.Broker ---

    async def publish(self, envelope: Envelope, *, first: bool = False) -> Piped:
        headers = envelope.headers()
        if first:
            headers["Nats-Expected-Last-Subject-Sequence"] = "0"
        told = _answer_of(await self._request(envelope.subject, envelope.body, headers=headers))
        if not isinstance(seq := told.get("seq"), int):
            raise NoBroker("the broker answers what is no ack")
        return Piped(seq, told.get("duplicate") is True)

    async def tell(self, envelope: Envelope) -> None:
        try:
            await self.client.publish(envelope.subject, envelope.body, headers=envelope.headers())
        except (NatsError, OSError) as error:
            raise NoBroker(str(error) or type(error).__name__) from error

    async def say(self, subject: str, body: bytes) -> None:
        _answer_of(await self._request(subject, body))

    async def release(self, subject: str) -> None:
        _answer_of(await self._request(subject, b"", headers={"Nats-TTL": "1s"}))

    async def facts(self, stream: str, subjects: str) -> StreamFacts:
        body = json.dumps({"subjects_filter": subjects}).encode()
        told = _answer_of(await self._insisted(f"$JS.API.STREAM.INFO.{stream}", body))
        state = told.get("state") or {}
        return StreamFacts(
            created=str(told.get("created")),
            first=int(state.get("first_seq", 0)),
            last=int(state.get("last_seq", 0)),
            pending=dict(state.get("subjects") or {}),
            size=int(state.get("bytes", 0)),
            size_max=int((told.get("config") or {}).get("max_bytes", 0)),
        )

    async def last(self, stream: str, subject: str) -> Stored | None:
        msg = await self._request(f"$JS.API.DIRECT.GET.{stream}.{subject}", b"")
        return None if _status(msg) in NO_MESSAGE else _stored(msg)

    async def all_last(self, stream: str, subjects: str) -> list[Stored]:
        body = json.dumps({"multi_last": [subjects], "batch": BATCH_MAX}).encode()
        return await self._many(f"$JS.API.DIRECT.GET.{stream}", body)

    async def after(self, stream: str, seq: int, subjects: str, limit: int) -> list[Stored]:
        """Returns at most `limit` messages from `seq` on."""
        body = json.dumps({"seq": seq, "next_by_subj": subjects, "batch": limit, "max_bytes": AFTER_MAX}).encode()
        return await self._many(f"$JS.API.DIRECT.GET.{stream}", body)

    async def _many(self, subject: str, body: bytes) -> list[Stored]:
        found: list[Stored] = []
        async with self._asked(subject, body) as (queue, ask):
            await ask()
            while True:
                msg = await self._answer(queue, CALL_S)
                status = _status(msg)
                if status == END or status in NO_MESSAGE:
                    return found
                found.append(_stored(msg))

    async def ask(self, subject: str, document: Mapping[str, Any]) -> dict[str, Any]:
        return _answer_of(await self._request(subject, json.dumps(document).encode(), seconds=ASK_S))

    async def next(self, stream: str, consumer: str, *, wait: float) -> Delivered | None:
        """Returns the next message of a consumer. It comes under its own subject, so only a subscription of its own
        shows to which request it belongs."""
        limits: dict[str, Any] = {"batch": 1}
        limits |= {"expires": int(wait * 1e9)} if wait else {"no_wait": True}
        client, number = self.client, f"next{next(self._numbers)}"
        queue = self._waiting[number] = asyncio.Queue()

        async def come(msg: Msg) -> None:
            queue.put_nowait(msg)

        try:
            inbox = f"{self._inbox}.{number}"
            subscription = await client.subscribe(inbox, cb=come)
            try:
                subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
                await client.publish(subject, json.dumps(limits).encode(), reply=inbox)
                msg = await self._answer(queue, wait + CALL_S)
            finally:
                with suppress(NatsError, OSError):  # an error would replace a cancellation
                    await subscription.unsubscribe()
        except (NatsError, OSError) as error:
            raise NoBroker(str(error) or type(error).__name__) from error
        finally:
            self._waiting.pop(number, None)
        return None if _status(msg) else StreamMessage(msg, client)


def _given_to(take: Callable[[Stored], Awaitable[None]]) -> Callable[[Msg], Awaitable[None]]:
    async def come(msg: Msg) -> None:
        try:
            await take(Stored(msg.subject, msg.headers or {}, msg.data, 0))
        except Exception:
            log.exception("what was told by another host is lost", subject=msg.subject[:200])

    return come


def _heard(msg: Msg | None) -> Msg:
    """Returns the answer. Raises NoBroker if there is no answer."""
    if msg is None:
        raise NoBroker("the connection was lost")
    if _status(msg) == NO_RESPONDERS:
        raise NoBroker("nobody answers there: the streams have no leader now, or were not made")
    return msg


def _status(msg: Msg) -> str:
    return (msg.headers or {}).get("Status", "") if not msg.data else ""


def _answer_of(msg: Msg) -> dict[str, Any]:
    """Returns the JSON of an answer. Raises NoBroker for errors that may soon be over, BrokerRefused for others."""
    try:
        told = read_object(msg.data)
    except NotJson as error:
        raise NoBroker("the broker answers what is no object of JSON") from error
    if isinstance(error_ := told.get("error"), dict):
        code, message = int(error_.get("err_code") or 0), str(error_.get("description") or error_.get("message"))
        if error_.get("code") in (503, 504):
            raise NoBroker(message)
        raise BrokerRefused(code, message)
    return told


def _stored(msg: Msg) -> Stored:
    headers = msg.headers or {}
    seq = headers.get("Nats-Sequence", "0")
    return Stored(headers.get("Nats-Subject", msg.subject), headers, msg.data, int(seq) if seq.isdigit() else 0)
