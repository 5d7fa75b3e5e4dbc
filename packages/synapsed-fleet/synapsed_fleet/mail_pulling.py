"""The mail of this host, asked for: one request open at a time, and another as soon as that may be over.

A request is made again at half a batch, at any status, after 6 s of silence (the broker beats every 3 s), and after
each reconnect. That two are open for a moment does no harm: the broker gives each message to one of them.

What is not acked within 5 s the broker gives again. So no more is asked for than this host gets done well before that:
where it takes long, half as much is in hand from then on; and more again, one by one, while it goes quickly. A slow
host would spend its time on copies else.
"""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from synapsed.aio import TaskSet
from synapsed_fleet.link import Link, StreamMessage
from synapsed_fleet.names import BadName, MailKind, MailSubject
from synapsed_fleet.ports import Delivered, NoBroker

BATCH: Final = 256
"""Messages in hand at most: asked for, or here and not done."""
LEAST: Final = 8
FIRST: Final = 64
SLOW_S: Final = 2.0
QUICK_S: Final = 0.5
"""From a message's arrival until it is done."""
EXPIRES_S: Final = 20.0
HEARTBEAT_S: Final = 3.0
SILENCE_S: Final = 6.0
REFUSED_S: Final = 1.0
"""Until the next request where the broker says that it cannot serve any."""
_BEAT: Final = "100"

log = structlog.stdlib.get_logger("synapsed.fleet")


class Pull:
    """`run` it; each delivery is given to `take`. Those of one host are given one after the other, in their order; its
    controls aside, which may take long and hold up nobody."""

    def __init__(
        self, link: Link, stream: str, consumer: str, inbox: str, take: Callable[[Delivered], Coroutine[Any, Any, None]]
    ) -> None:
        self._link = link
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._inbox = f"{inbox}.pull"
        self._take = take
        self._tasks = TaskSet()
        self._lanes: dict[str, asyncio.Lock] = {}
        self._heard = asyncio.Event()
        self._again = True
        self._refused = False
        self._left = 0
        self._in_hand = 0
        self._limit = FIRST
        self._shrunk_at = -SLOW_S

    def reconnected(self) -> None:
        """What was asked over the connection before is not answered any more."""
        self._heard.set()

    async def run(self) -> None:
        try:
            while True:
                await self._link.wait_up()
                with suppress(NoBroker, NatsError, OSError):
                    await self._while_connected()
        finally:
            await self._tasks.cancel()

    async def _while_connected(self) -> None:
        client, connects = self._link.client, self._link.connects

        async def come(msg: Msg) -> None:
            self._come(msg, client)

        subscription = await client.subscribe(f"{self._inbox}.{connects}", cb=come)
        try:
            self._again, self._left = True, 0
            while self._link.up and self._link.connects == connects:
                if self._again and (room := self._limit - self._in_hand - self._left) > 0:
                    self._again = False
                    await self._ask(connects, room)
                try:
                    async with asyncio.timeout(SILENCE_S):
                        await self._heard.wait()
                except TimeoutError:
                    self._again, self._left = True, 0
                self._heard.clear()
                if self._refused:
                    self._refused = False
                    await asyncio.sleep(REFUSED_S)
        finally:
            with suppress(NatsError, OSError):
                await subscription.unsubscribe()

    async def _ask(self, connects: int, room: int) -> None:
        limits = {
            "batch": room,
            "expires": int(EXPIRES_S * 1e9),
            "idle_heartbeat": int(HEARTBEAT_S * 1e9),
        }
        self._left += room
        await self._link.client.publish(self._subject, json.dumps(limits).encode(), reply=f"{self._inbox}.{connects}")

    def _come(self, msg: Msg, client: Client) -> None:
        status = (msg.headers or {}).get("Status", "") if not msg.data else ""
        if status == _BEAT:
            pass
        elif status and not msg.reply.startswith("$JS.ACK."):
            self._again, self._left = True, 0
            self._refused = self._refused or status not in ("404", "408")
        else:
            self._left = max(0, self._left - 1)
            self._begin(StreamMessage(msg, client))
            self._again = self._again or self._in_hand + self._left <= self._limit // 2
        self._heard.set()

    def _begin(self, delivered: StreamMessage) -> None:
        try:
            subject = MailSubject.parse(delivered.subject)
            lane = None if subject.kind is MailKind.CONTROL else subject.src
        except BadName:
            lane = ""
        if lane is None:
            self._tasks.spawn(self._take(delivered))
        else:
            self._in_hand += 1
            self._tasks.spawn(self._in_its_lane(lane, delivered, time.monotonic()))

    async def _in_its_lane(self, lane: str, delivered: StreamMessage, came_at: float) -> None:
        try:
            async with self._lanes.setdefault(lane, asyncio.Lock()):
                await self._take(delivered)
        finally:
            self._in_hand -= 1
            self._done(came_at, time.monotonic())

    def _done(self, came_at: float, now: float) -> None:
        if now - came_at > SLOW_S and came_at > self._shrunk_at:
            self._limit, self._shrunk_at = max(LEAST, self._limit // 2), now
        elif now - came_at < QUICK_S:
            self._limit = min(BATCH, self._limit + 1)
        if self._in_hand + self._left <= self._limit // 2:
            self._again = True
            self._heard.set()
