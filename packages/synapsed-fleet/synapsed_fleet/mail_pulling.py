"""Pulls the mail of this host: one request is open at a time, and another is made as soon as that one may be over.

A request is made again at half a batch, at any status, after 6 s of silence (the broker's heartbeat comes every 3 s),
and after each reconnect. Two open requests do no harm: the broker gives each message to one of them.

The broker delivers a message without an ack again after 5 s, and a slow host would spend its time on copies. So
messages that would wait here for long are put back, which also lets the mail of other senders come (`mail_turns`).
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
from synapsed_fleet.mail_turns import Back, MailLine
from synapsed_fleet.names import BadName, MailKind, MailSubject
from synapsed_fleet.ports import Delivered, NoBroker

BATCH: Final = 256
"""Most messages in hand: requested, or here and not done."""
LOOK_S: Final = 0.25
"""Seconds between two looks at lines that do not move."""
EXPIRES_S: Final = 20.0
HEARTBEAT_S: Final = 3.0
SILENCE_S: Final = 6.0
REFUSED_S: Final = 1.0
"""Seconds until the next request if the broker says that it cannot serve any."""
_BEAT: Final = "100"

log = structlog.stdlib.get_logger("synapsed.fleet")


class Pull:
    """Pulls mail while `run` runs, and gives each delivery to `take`. Deliveries of one kind from one host are handled
    one after the other, in their order; controls are handled at once, since they may take long."""

    def __init__(
        self, link: Link, stream: str, consumer: str, inbox: str, take: Callable[[Delivered], Coroutine[Any, Any, None]]
    ) -> None:
        self._link = link
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._inbox = f"{inbox}.pull"
        self._take = take
        self._tasks = TaskSet()
        self._lines: dict[tuple[str, str], MailLine[StreamMessage]] = {}
        self._heard = asyncio.Event()
        self._again = True
        self._refused = False
        self._left = 0
        self._in_hand = 0

    def reconnected(self) -> None:
        """Drops requests of the earlier connection, which get no answers any more."""
        self._heard.set()

    async def run(self) -> None:
        try:
            while True:
                await self._link.wait_up()
                with suppress(NoBroker, NatsError, OSError):
                    await self._while_connected()
        finally:
            await self._tasks.cancel()
            # If it is begun again, after a fault: no worker works on these lines any more, and all comes again.
            self._lines.clear()
            self._in_hand = 0

    async def _while_connected(self) -> None:
        client, connects = self._link.client, self._link.connects

        async def come(msg: Msg) -> None:
            self._come(msg, client)

        subscription = await client.subscribe(f"{self._inbox}.{connects}", cb=come)
        try:
            self._again, self._left = True, 0
            silent = 0.0
            while self._link.up and self._link.connects == connects:
                if self._again and (room := BATCH - self._in_hand - self._left) > 0:
                    self._again = False
                    await self._ask(connects, room)
                pause = LOOK_S if self._in_hand else SILENCE_S
                try:
                    async with asyncio.timeout(pause):
                        await self._heard.wait()
                    silent = 0.0
                except TimeoutError:
                    silent += pause
                if silent >= SILENCE_S:
                    self._again, self._left, silent = True, 0, 0.0
                self._heard.clear()
                self._look()
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
            self._ask_on()
        self._heard.set()

    def _begin(self, delivered: StreamMessage) -> None:
        try:
            subject = MailSubject.parse(delivered.subject)
        except BadName:
            name = ("", "")
        else:
            if subject.kind is MailKind.CONTROL:
                self._tasks.spawn(self._take(delivered))
                return
            name = (subject.src, subject.kind)
        line = self._lines.setdefault(name, MailLine())
        self._in_hand += 1
        self._put_back(line.put(delivered, time.monotonic(), first=delivered.times == 1))
        if not line.busy:
            line.busy = True
            self._tasks.spawn(self._work(line))

    async def _work(self, line: MailLine[StreamMessage]) -> None:
        """Works on a line until it is empty."""
        while (delivered := line.next()) is not None:
            began = time.monotonic()
            try:
                await self._take(delivered)
            except Exception:
                log.exception("something that has come is not taken, and comes again", subject=delivered.subject[:200])
            self._in_hand -= 1
            line.done(time.monotonic() - began)
            self._ask_on()
        line.busy = False

    def _look(self) -> None:
        """Puts back messages that wait for long, and forgets senders without messages here."""
        now = time.monotonic()
        for name, line in list(self._lines.items()):
            self._put_back(line.look(now))
            if line.idle(now):
                del self._lines[name]

    def _put_back(self, those: list[Back[StreamMessage]]) -> None:
        if those:
            self._in_hand -= len(those)
            self._tasks.spawn(self._later(those))
            self._ask_on()

    async def _later(self, those: list[Back[StreamMessage]]) -> None:
        for one in those:
            await one.what.later(one.after)

    def _ask_on(self) -> None:
        if self._in_hand + self._left <= BATCH // 2:
            self._again = True
            self._heard.set()
