"""Notifications to one receiver about its task: a view of the event log, with a cursor that is durable.

The loop takes the next event of the task, posts it until the receiver has taken it, makes the cursor durable, and goes
on. So notifications arrive in order, one is on its way at a time, and a daemon that is killed anywhere in between sends
at most the last one twice (with the same `metadata.synapsed.eventId`). A failure is made durable too, so that a restart
does not shorten a pause; in a pause no notification is kept in memory. With the task's end the config is done.

A large document is read and sent when there is room for it among all that is on its way to clients
(`documents.budget`).

Changes of status and whole artifacts are sent; unfinished text is for streams. A receiver that came when the task was
over gets the task, once. One that asked in A2A 0.3 gets the task as 0.3 has it, at the same moments.
"""

import asyncio
import importlib
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import structlog

from synapsed.aio import Timers, pause
from synapsed.clock import Clock
from synapsed.documents.budget import Lease
from synapsed.documents.writing import Texts
from synapsed.errors import InvalidRequest, StoreError
from synapsed.interfaces import STORE_RETRY_S, NewEvent, Store
from synapsed.model.events import AgentAlert, Event, TaskStatusChanged
from synapsed.model.task import TERMINAL_STATES, Task
from synapsed.outgoing import PushPolicy, retrying
from synapsed.outgoing.poster import Poster, Receipt
from synapsed.outgoing.screening import checked_url, origin_of
from synapsed.parts.a2a.push.lanes import Lanes
from synapsed.parts.a2a.push.push_record import PushRecord
from synapsed.parts.a2a.push.push_table import PushTable

GIVEN_UP: Final = "PUSH_GIVEN_UP"
"""Code of the alert."""

_MEDIA_TYPES: Final = {"1.0": "application/a2a+json", "0.3": "application/json"}

log = structlog.stdlib.get_logger("synapsed.push")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionDeps:
    """Dependencies of all receivers. `rng` gives numbers in [0, 1)."""

    book: PushTable
    store: Store
    poster: Poster
    policy: PushPolicy
    lanes: Lanes
    clock: Clock
    timers: Timers
    rng: Callable[[], float]
    user_agent: str
    texts: Texts
    """The large texts that are being written, to all receivers and clients."""


class Telling:
    """Notifications to one receiver. `run` returns when there is nothing more to send to it; cancel it to end it
    earlier."""

    def __init__(self, record: PushRecord, means: SubscriptionDeps) -> None:
        self._record = record
        self._means = means
        self._origin = _origin(record)

    async def run(self) -> None:
        while self._record.state == "active":
            try:
                wait = retrying.waiting(self._record, self._means.policy, now=self._means.clock.wall())
                await pause(self._means.timers, wait)
                if not await self._tell():
                    return
            except StoreError as error:
                if error.details.get("reason") == "closed":
                    return
                log.warning("the store refused", task=self._record.task_id, error=error.message)
                await pause(self._means.timers, STORE_RETRY_S)

    async def _tell(self) -> bool:
        """Sends the present and coming events, until that fails; returns True if there is more to send."""
        # The documents need the SDK, which is loaded in a thread, and only when there is something to send.
        await asyncio.to_thread(importlib.import_module, "synapsed.parts.a2a.push.payload")
        from synapsed.parts.a2a.push import payload as documents

        record = self._record
        async with self._task() as task:
            if task is None:
                return False
            context_id, over = task.context_id, task.terminal
            del task  # it may be large, and the next event long in coming
        if over and not await self._has_news():
            async with self._task() as task:
                return task is not None and await self._deliver(
                    record.cursor, documents.whole(task, record.dialect), last=True
                )
        while await self._tell_some(documents, context_id):
            if self._record.attempt:
                return True
        return False

    async def _tell_some(self, documents: ModuleType, context_id: str) -> bool:
        """Sends coming events, up to the first in whose place the task is sent; returns True if there is more to
        send."""
        record = self._record
        following = self._means.store.events.follow(record.cursor, task_id=record.task_id, reserved=True)
        async with aclosing(following) as events:
            async for event in events:
                if not documents.is_told(event):
                    continue
                if documents.of_task(event, record.dialect):
                    by_task = event
                    break  # its room is released first: a holder of room must not wait for more
                document = documents.notification(event, context_id)
                more = await self._deliver(event.id, document, last=_is_end(event))
                if not more or self._record.attempt:
                    return more
                del event, document  # they may be large, and the next event long in coming
            else:
                return False
        async with self._task() as task:
            if task is None:
                return False
            document = documents.notification_of(by_task, task, record.dialect)
            return await self._deliver(by_task.id, document, last=_is_end(by_task))

    @asynccontextmanager
    async def _task(self) -> AsyncGenerator[Task | None]:
        """Yields the task as it is, once there is room for it, which is held within the context."""
        store, task_id = self._means.store, self._record.task_id
        leases: list[Lease] = []
        try:
            for one in await store.weigh(task_id):
                leases.append(await store.events.room.take((one.id, one.version), one.size))  # noqa: PERF401
            yield await store.task(task_id)
        finally:
            for lease in leases:
                lease.release()

    async def _has_news(self) -> bool:
        """Returns True if there is an event after the last that was sent."""
        log, record = self._means.store.events, self._record
        following = log.follow(record.cursor, task_id=record.task_id, upto=log.last_id, reserved=True)
        async with aclosing(following) as events:
            return await anext(events, None) is not None

    async def _deliver(self, cursor: int, document: dict[str, Any], *, last: bool) -> bool:
        """Makes one attempt and records its result; returns True if there is more to send."""
        means, record = self._means, self._record
        async with means.lanes.place(self._origin, retry=record.attempt > 0):
            receipt = await means.poster.post(record.url, means.texts.encode(document), self._headers())
        if receipt.accepted:
            return await self._keep(retrying.accepted(record, cursor, last=last)) and not last
        now = means.clock.wall()
        asked = retrying.retry_after(receipt.retry_after, now=now)
        after = retrying.failed(record, means.policy, now=now, asked=asked, roll=means.rng())
        if receipt.gone:
            after = after.model_copy(update={"state": "given_up"})
        log.info(
            "notification failed", task=record.task_id, to=self._origin, attempt=after.attempt, why=receipt.problem
        )
        if not await self._keep(after):
            return False
        if after.state == "given_up":
            await self._give_up(after, receipt)
        return after.state == "active"

    async def _keep(self, record: PushRecord) -> bool:
        """Makes the record durable, however long that takes: otherwise a receiver would get the same notification again
        and again. Returns False if the config is gone."""
        self._record = record
        while True:
            try:
                return await self._means.book.update(record)
            except StoreError as error:
                if error.details.get("reason") == "closed":
                    raise
            await pause(self._means.timers, STORE_RETRY_S)

    async def _give_up(self, record: PushRecord, receipt: Receipt) -> None:
        message = f"{self._origin} is not notified of task {record.task_id} any more: {receipt.problem}"
        log.warning("receiver given up", task=record.task_id, to=self._origin, attempts=record.attempt)
        details = {"state": "happened", "task_id": record.task_id, "config": record.id, "attempts": record.attempt}
        alert = AgentAlert(code=GIVEN_UP, message=message, details=details)
        await self._means.store.commit(events=[NewEvent(record.agent_id, alert)])

    def _headers(self) -> dict[str, str]:
        record = self._record
        headers = {
            "Content-Type": _MEDIA_TYPES[record.dialect],
            "A2A-Version": record.dialect,
            "User-Agent": self._means.user_agent,
        }
        if record.scheme and record.credentials:
            headers["Authorization"] = f"{record.scheme} {record.credentials}"
        if record.token:
            headers["X-A2A-Notification-Token"] = record.token
        return headers


def _is_end(event: Event) -> bool:
    return isinstance(event.data, TaskStatusChanged) and event.data.state in TERMINAL_STATES


def _origin(record: PushRecord) -> str:
    try:
        return origin_of(checked_url(record.url))
    except InvalidRequest:  # an older daemon took it; each attempt will say so
        return "an address that is not allowed"
