"""The mail of this host, asked for: one request open at a time, and another as soon as that may be over.

A request is made again at half a batch, at any status, after 6 s of silence (the broker beats every 3 s), and after
each reconnect. That two are open for a moment does no harm: the broker gives each message to one of them.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from synapsed.aio import TaskSet
from synapsed.fleet.link import Link, StreamMessage
from synapsed.fleet.names import BadName, MailKind, MailSubject
from synapsed.fleet.ports import Delivered, NoBroker

BATCH: Final = 256
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
        self, link: Link, stream: str, consumer: str, inbox: str, take: Callable[[Delivered], Awaitable[None]]
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
            self._again = True
            while self._link.up and self._link.connects == connects:
                if self._again:
                    self._again = False
                    await self._ask(connects)
                try:
                    async with asyncio.timeout(SILENCE_S):
                        await self._heard.wait()
                except TimeoutError:
                    self._again = True
                self._heard.clear()
                if self._refused:
                    self._refused = False
                    await asyncio.sleep(REFUSED_S)
        finally:
            with suppress(NatsError, OSError):
                await subscription.unsubscribe()

    async def _ask(self, connects: int) -> None:
        limits = {
            "batch": BATCH,
            "expires": int(EXPIRES_S * 1e9),
            "idle_heartbeat": int(HEARTBEAT_S * 1e9),
        }
        self._left = BATCH
        await self._link.client.publish(self._subject, json.dumps(limits).encode(), reply=f"{self._inbox}.{connects}")

    def _come(self, msg: Msg, client: Client) -> None:
        status = (msg.headers or {}).get("Status", "") if not msg.data else ""
        if status == _BEAT:
            pass
        elif status and not msg.reply.startswith("$JS.ACK."):
            self._again = True
            self._refused = self._refused or status not in ("404", "408")
        else:
            self._left -= 1
            self._again = self._again or self._left <= BATCH // 2
            self._tasks.spawn(self._in_its_lane(StreamMessage(msg, client)))
        self._heard.set()

    async def _in_its_lane(self, delivered: StreamMessage) -> None:
        try:
            subject = MailSubject.parse(delivered.subject)
            lane = None if subject.kind is MailKind.CONTROL else subject.src
        except BadName:
            lane = ""
        if lane is None:
            return await self._take(delivered)
        async with self._lanes.setdefault(lane, asyncio.Lock()):
            return await self._take(delivered)
