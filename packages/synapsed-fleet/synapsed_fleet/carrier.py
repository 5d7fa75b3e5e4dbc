"""The fleet as a carrier of tasks: `agent@host` for its members, and `any:CLASS` (`interfaces.Carrier`).

A message becomes a task on this host, as one for any agent elsewhere does, and in the same commit the row of the outbox
that sends it. No asyncio task follows it: reports about it come by mail (`incoming`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from synapsed.clock import Clock, iso
from synapsed.errors import (
    InvalidRequest,
    NotKnownYet,
    NotWaiting,
    PromptChanged,
    QueueFull,
    RemoteRefused,
    TaskNotCancelable,
    UnknownAgent,
)
from synapsed.interfaces import ADDRESS_MAX, PERSON, OutboundQuestion, ReplyRecord, SendRequest, Store
from synapsed.model.events import Origin
from synapsed.model.external import KEY as EXTERNAL
from synapsed.model.external import host_of, is_any
from synapsed.model.task import INTERRUPTED_STATES, Message, Part, Task, new_id, open_metadata
from synapsed.store.idempotency import Idempotency
from synapsed.tasks import transitions
from synapsed_fleet import receipts
from synapsed_fleet.a2a_types import Shapes
from synapsed_fleet.envelope import encoded
from synapsed_fleet.fleet_rows import VIA, FleetChange, OutRow, carried_by_fleet
from synapsed_fleet.fleet_table import FleetTable
from synapsed_fleet.incoming import Incoming
from synapsed_fleet.names import ANY
from synapsed_fleet.outbox import OPEN_MAX
from synapsed_fleet.outgoing import Speaker, work_class
from synapsed_fleet.peer_certificates import Peers

COUNTED_S: Final = 1.0
"""Seconds for which the count of the messages under way is used before they are counted again."""
HEARD_S: Final = 3.0
"""Seconds that a cancel, or an answer, waits for the other host's reaction; it is sent to that host in any case."""


def _asked_by_nobody(task: Task, *, wait: bool) -> AbstractContextManager[ReplyRecord | None]:
    return nullcontext()


async def _not_known() -> frozenset[str] | None:
    return None


class FleetCarrier:
    """Sends tasks to hosts of the fleet, and cancels and answers them.

    `due` is called when a row waits to be published; `classes` before the first work of a class is sent. `files` raises
    InvalidRequest unless this host was given the files that the parts name. `taken` returns the classes of work that
    some host takes, None if that is not known.
    """

    hint = "whom this host knows of its fleet: 'synapsectl fleet hosts'"

    def __init__(
        self,
        *,
        me: Speaker,
        store: Store,
        table: FleetTable,
        peers: Peers,
        incoming: Incoming,
        shapes: Shapes,
        clock: Clock,
        due: Callable[[], None],
        classes: Callable[[str], None],
        files: Callable[[Sequence[Part]], None],
        taken: Callable[[], Awaitable[frozenset[str] | None]] = _not_known,
        met: Callable[[], bool] = lambda: True,
    ) -> None:
        """Makes the carrier. `met` returns True once every host of the fleet was met since this daemon began."""
        self._me = me
        self._store = store
        self._table = table
        self._peers = peers
        self._incoming = incoming
        self._shapes = shapes
        self._clock = clock
        self._due = due
        self._classes = classes
        self._taken = taken
        self._met = met
        self._files = files
        self._idempotency = Idempotency(store)
        self._counted: dict[str, int] = {}
        self._counted_at = -COUNTED_S

    async def restore(self) -> None:
        """Closes the rows of tasks that ended while the part was disabled; notifies the hosts that may have those
        tasks."""
        for row in await self._table.over():
            told = row.kind == "msg" and row.attempt > 0
            body = encoded(receipts.cancel_body(row.task_id)).decode()
            stop = (OutRow(id=new_id(), dst=row.dst, kind="ctl", task_id=row.task_id, body=body),) if told else ()
            await self._table.change(FleetChange(put=stop, closed=((row.id, row.n, row.dst),)))

    def find(self, address: str) -> str | None:
        """Returns the id that `address` means: that of an agent of a member, or of any agent of a class; None for any
        other. Raises NotKnownYet for a host that may have joined while no daemon ran on this host."""
        address = address.removeprefix("@")[:ADDRESS_MAX]
        if is_any(address):
            work_class(address, 1)
            return address
        there = host_of(address)
        if there is not None and self._peers.knows(there[1]):
            return address
        if there is not None and not self._met() and there[1] not in self._peers.gone:
            raise NotKnownYet(
                f"no host {there[1]!r} is known here; which hosts the fleet has is read once its broker is reached",
                host=there[1],
            )
        return None

    def carries(self, task: Task) -> bool:
        return carried_by_fleet(task)

    async def send(
        self,
        alias: str,
        request: SendRequest,
        asking: OutboundQuestion = _asked_by_nobody,
        *,
        sender: str | None = None,
    ) -> Task:
        """Makes a task, and the row that sends it; with `task_id` the message is an answer. Raises QueueFull, TooLarge,
        InvalidRequest."""
        if request.task_id is not None:
            task = await self._store.task(request.task_id)
            if task is None or task.agent_id != alias:
                raise InvalidRequest("task_id: it is no task of that agent", field="task_id")
            return await self.answer(task, request.message, request.prompt_id)
        if request.command:
            raise InvalidRequest("command: an agent elsewhere has no commands here", field="command")
        there = host_of(alias)
        dst = work_class(alias, request.priority) if there is None else there[1]
        async with self._idempotency.once(request, alias) as (task_id, known):
            if known is not None:
                return known
            if await self._under_way(dst) >= OPEN_MAX:
                waiting = f"{OPEN_MAX} messages are under way to {dst}, which has not said to have them"
                raise QueueFull(waiting, host=dst)
            if there is None:
                await self._check_class(alias.removeprefix(ANY))
                self._classes(dst.removeprefix(ANY))
            task = self._task_of(alias, request, task_id, None if there is None else there[1], sender)
            self._files(task.message.parts)
            await self._check_size(task)
            row = OutRow(id=task.id, dst=dst, kind="work" if there is None else "msg", task_id=task.id)
            with asking(task, wait=request.wait) as reply:
                commit = transitions.accepted(task)
                await self._table.commit(task, FleetChange(put=(row,)), events=commit.events, reply=reply)
        self._due()
        return task

    async def _check_size(self, task: Task) -> None:
        """Raises TooLarge before the task is accepted, instead of when it is published."""
        await self._shapes.ready()
        from synapsed_fleet import messages

        await asyncio.to_thread(messages.message_body, task, own_name=self._me.name)

    async def _check_class(self, cls: str) -> None:
        """Raises UnknownAgent if no host takes such work: the task would wait without end."""
        taken = await self._taken()
        if taken is None or cls in taken:
            return
        there = f"what is taken: {', '.join(sorted(taken)[:20])}" if taken else "none takes any"
        raise UnknownAgent(
            f"no host of the fleet takes work for any:{cls} ('classes' under [fleet.work] of a host says what it "
            f"takes); {there}",
            address=f"{ANY}{cls}",
        )

    async def _under_way(self, dst: str) -> int:
        """Returns the number of rows to `dst`, this one included. They are counted once a second at most, and in
        between as if none was closed: a count reads all rows, and made each send slower the more were under way."""
        now = self._clock.monotonic()
        if now - self._counted_at >= COUNTED_S:
            self._counted_at = now
            counts = await self._table.counts()
            self._counted = {to: sum(states.values()) for to, states in counts.items()}
        found = self._counted.get(dst, 0)
        self._counted[dst] = found + 1
        return found

    def _task_of(self, alias: str, request: SendRequest, task_id: str, host: str | None, sender: str | None) -> Task:
        now = iso(self._clock.wall())
        metadata = {**open_metadata(request.metadata, (EXTERNAL,)), **request.marks}
        told: dict[str, Any] = {"via": VIA}
        told |= {"host": host} if host is not None else {}
        told |= {"from": sender} if sender is not None else {}
        return Task(
            id=task_id,
            agent_id=alias,
            context_id=request.context_id or new_id(),
            message=request.message,
            metadata=metadata | {EXTERNAL: told},
            priority=request.priority,
            created_at=now,
            updated_at=now,
        )

    # --- asked for by a caller ---

    async def cancel(self, task: Task) -> Task:
        """Cancels a task that no host has at once; otherwise asks its host to cancel. If that host does not answer, the
        task is canceled here all the same, and that host cancels it when it gets the message."""
        async with self._incoming.lock(task.id):
            now = await self._fresh(task)
            if now.terminal:
                raise TaskNotCancelable(f"task {now.id} is {now.status.value} already", task=now.id)
            open_row = await self._table.row(now.id)
            host = (now.metadata.get(EXTERNAL) or {}).get("host")
            asked = self._control(now, host, receipts.cancel_body(now.id)) if host is not None else None
            if open_row is not None and (host is not None or open_row.attempt == 0):
                return await self._canceled(now, open_row, asked)
            if asked is not None:
                await self._table.change(FleetChange(put=(asked,)))
        self._due()
        return await self._heard_of(task)

    async def _canceled(self, task: Task, open_row: OutRow | None, asked: OutRow | None) -> Task:
        commit = transitions.canceled(task, reason="canceled", now=self._clock.wall())
        closed = () if open_row is None else ((open_row.id, open_row.n, open_row.dst),)
        change = FleetChange(put=() if asked is None else (asked,), closed=closed)
        await self._table.commit(commit.task, change, events=commit.events, turn_ended=commit.turn_ended)
        self._due()
        return commit.task

    async def _heard_of(self, task: Task) -> Task:
        """Returns the task once its host has ended it; cancels it here if the host does not react."""
        cursor = self._store.events.last_id
        try:
            async with asyncio.timeout(HEARD_S):
                async for _ in self._store.events.follow(cursor, task_id=task.id):
                    if (now := await self._fresh(task)).terminal:
                        return now
        except TimeoutError:
            pass
        async with self._incoming.lock(task.id):
            now = await self._fresh(task)
            return now if now.terminal else await self._canceled(now, await self._table.row(now.id), None)

    async def answer(self, task: Task, message: Message, prompt_id: str | None = None, origin: Origin = PERSON) -> Task:
        """Sends an answer to the task's question to its host. Raises NotWaiting, PromptChanged, and RemoteRefused if
        the host has refused it by then."""
        async with self._incoming.lock(task.id):
            now = await self._fresh(task)
            host = (now.metadata.get(EXTERNAL) or {}).get("host")
            if now.status not in INTERRUPTED_STATES or host is None or now.prompt is None:
                raise NotWaiting(f"task {now.id} is {now.status.value}, it does not wait for input", task=now.id)
            if prompt_id is not None and prompt_id != now.prompt.prompt_id:
                raise PromptChanged("it asks something else now", prompt_id=now.prompt.prompt_id)
            if now.prompt.type == "password":
                raise InvalidRequest(
                    f"a password is not kept, and so not sent by the fleet: answer at {host} itself", host=host
                )
            row = self._control(now, host, receipts.answer_body(now.id, message, now.prompt.prompt_id))
            heard = self._incoming.answers.expect(row.id)
            await self._table.change(FleetChange(put=(row,)))
        self._due()
        try:
            async with asyncio.timeout(HEARD_S):
                refused = await heard
        except TimeoutError:
            return await self._fresh(task)
        if refused is not None:
            raise RemoteRefused(f"{host} refused the answer: {refused[1]}", remote=refused[0])
        return await self._fresh(task)

    def _control(self, task: Task, host: str, document: dict[str, Any]) -> OutRow:
        return OutRow(id=new_id(), dst=host, kind="ctl", task_id=task.id, body=encoded(document).decode())

    async def _fresh(self, task: Task) -> Task:
        return await self._store.task(task.id) or task
