"""Sender of push notifications: starts and ends the loops of `telling`, one for each active config."""

import asyncio

import structlog

from synapsed.aio import cancel_all, whole
from synapsed.errors import QueueFull
from synapsed.kernel import Kernel
from synapsed.parts.a2a.push.lanes import Lanes
from synapsed.parts.a2a.push.push_record import PushRecord
from synapsed.parts.a2a.push.push_table import PushTable
from synapsed.parts.a2a.push.telling import SubscriptionDeps, Telling

ACTIVE_MAX = 4096
"""Most active configs, over all tasks."""

TASK_MAX = 16
"""Most configs of one task."""

log = structlog.stdlib.get_logger("synapsed.push")

type _Key = tuple[str, str]


class PushSender:
    """Sender of all notifications. Life: `start`, …, `close`. Methods raise StoreError if the database refuses."""

    def __init__(self, means: SubscriptionDeps) -> None:
        self._means = means
        self._book = means.book
        self._running: dict[_Key, asyncio.Task[None]] = {}
        self._changing = asyncio.Lock()
        self._closed = False

    async def start(self) -> None:
        """Continues where the last daemon ended."""
        for record in await self._book.active():
            self._run(record)

    async def close(self) -> None:
        """Ends the loops; the next daemon repeats notifications on their way. May be called again."""
        self._closed = True
        await cancel_all(self._running.values())
        await self._means.poster.close()

    async def check(self, url: str) -> None:
        """Raises InvalidRequest for a receiver that may not be notified, QueueFull if there are too many."""
        if len(self._running) >= ACTIVE_MAX:
            raise QueueFull(f"{ACTIVE_MAX} push notification configs are active: delete some", limit=ACTIVE_MAX)
        await self._means.poster.check(url)

    async def put(self, record: PushRecord) -> PushRecord:
        """Starts notifications of events after `record.cursor`; durable when this returns. A config with the same id is
        replaced; the new receiver gets the events that the old one has not had. If the database refuses, the old one
        goes on. Raises QueueFull."""
        return await whole(self._put(record))

    async def _put(self, record: PushRecord) -> PushRecord:
        key = (record.task_id, record.id)
        async with self._changing:
            others = {other.id: other for other in await self._book.of_task(record.task_id)}
            after = old = others.get(record.id)
            if old is None and len(others) >= TASK_MAX:
                raise QueueFull(f"a task may have {TASK_MAX} push notification configs: delete some", limit=TASK_MAX)
            await self._end(key)
            try:
                if old is not None:
                    after = old = await self.get(*key)  # where its last notification has led it
                if old is not None and old.state == "active":
                    record = record.model_copy(update={"cursor": min(old.cursor, record.cursor)})
                await self._book.put(record)
                after = record
            finally:
                self._run(after)
        return record

    async def get(self, task_id: str, push_id: str) -> PushRecord | None:
        return next((record for record in await self._book.of_task(task_id) if record.id == push_id), None)

    async def of_task(self, task_id: str) -> list[PushRecord]:
        """Returns the configs of a task in order of creation."""
        return await self._book.of_task(task_id)

    async def delete(self, task_id: str, push_id: str) -> None:
        """Stops the notifications of a config. Does nothing if there is no such config; if the database refuses, it
        goes on."""
        await whole(self._delete(task_id, push_id))

    async def _delete(self, task_id: str, push_id: str) -> None:
        async with self._changing:
            after = await self.get(task_id, push_id)
            await self._end((task_id, push_id))
            try:
                await self._book.delete(task_id, push_id)
                after = None
            finally:
                self._run(after)

    async def _end(self, key: _Key) -> None:
        if (running := self._running.get(key)) is not None:
            await cancel_all([running])

    def _run(self, record: PushRecord | None) -> None:
        if record is None or self._closed:
            return
        key = (record.task_id, record.id)
        telling = asyncio.get_running_loop().create_task(Telling(record, self._means).run())
        self._running[key] = telling
        telling.add_done_callback(lambda done: self._done(key, done))

    def _done(self, key: _Key, done: asyncio.Task[None]) -> None:
        if self._running.get(key) is done:
            del self._running[key]
        if not done.cancelled() and (error := done.exception()) is not None:
            log.error("a receiver is not told more before the daemon is restarted", task=key[0], exc_info=error)


def push_sender(kernel: Kernel) -> PushSender:
    outgoing = kernel.outgoing
    return PushSender(
        SubscriptionDeps(
            book=PushTable(kernel.store),
            store=kernel.store,
            poster=outgoing.poster(),
            policy=outgoing.policy,
            lanes=Lanes(),
            clock=kernel.clock,
            timers=kernel.timers,
            rng=outgoing.rng,
            user_agent=outgoing.user_agent,
            texts=kernel.texts,
        )
    )
