"""Manages the replies that agents wait for: performs the changes that `tasks.replies` decides.

The agent that asks has a task of its own, which the reply completes, and a record of its wait; the request is the task
of the agent that is asked. Only this module changes such tasks and records. A kill -9 neither loses a reply nor doubles
one:

1. the asking agent's task and its record are one commit, before the question is sent;
2. the request is durable in one commit with the record about it;
3. the end of the request is durable in the commit of the agent that was asked; the reply follows. A daemon that finds
   an ended request whose reply is still awaited (`reconcile`) makes the reply then;
4. the reply and the message that notifies the asking agent are one commit, which removes the record.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import structlog

from synapsed.agents.live_agent import Agent
from synapsed.aio import TaskSet
from synapsed.clock import Clock
from synapsed.errors import AmbiguousAddress, Forbidden, InvalidRequest, NotWaiting, QueueFull, StoreError, TaskNotFound
from synapsed.interfaces import Store, TaskFilter
from synapsed.model.external import alias_of
from synapsed.model.records import ReplyRecord
from synapsed.model.sender import PERSON, SENDER_TASK, Sender, Tier, sender_of
from synapsed.model.task import Message, Task, TaskState
from synapsed.store.lookup import TASK_PREFIX_MIN
from synapsed.supervisor.launch_planner import Planner
from synapsed.tasks import replies
from synapsed.tasks.replies import Settlement, check_wait

AWAITED_MAX = 100
"""Replies that one agent may wait for at once."""

RECENT = 50
"""Number of an agent's tasks that are searched for its last question."""

log = structlog.stdlib.get_logger("synapsed.replies")


class ReplyBroker:
    """Keeps the records of all awaited replies. `agents` has all agents, by id."""

    def __init__(self, *, store: Store, clock: Clock, agents: Mapping[str, Agent], planner: Planner) -> None:
        self._store = store
        self._clock = clock
        self._agents = agents
        self._planner = planner
        self._records: dict[str, ReplyRecord] = {}
        self._dues: dict[str, tuple[float, float]] = {}
        """The date at which the record of each task is due, and the same time by the boot clock, which decides."""
        self._requests: dict[str, str] = {}
        """Requests by id, with the tasks that their replies complete."""
        self._ended: dict[str, Task] = {}
        """Ended requests whose replies are still to be completed."""
        self._callers: Counter[str] = Counter()
        """Number of callers that wait for the reply to a task."""
        self._lock = asyncio.Lock()
        self._begun = False
        """True when all agents are made, so that the notice of a reply finds its agent."""
        told = "replies could not be settled; they will be tried again"
        self._work = TaskSet(lambda error: log.error(told, exc_info=error))

    # --- from one daemon to the next ---

    def restore(self, records: Iterable[ReplyRecord]) -> None:
        for record in records:
            due = self._clock.wall() + replies.COLLECT_S if record.state == "over" else record.due
            self._put(record.model_copy(update={"due": due}))

    async def reconcile(self) -> None:
        """Settles requests that ended while there was no daemon; every agent's actor runs."""
        for record in list(self._records.values()):
            own = await self._store.task(record.task_id)
            if own is None or (own.terminal and record.state != "over"):  # a version without replies ran in between
                await self._store.commit(reply_over=record.task_id)
                self._drop(record.task_id)
            elif record.asker not in self._agents:
                await self.cancel(record.task_id, reason="removed")
            elif record.state == "asked":
                await self._look_at(record)
        self._begun = True
        await self._settle_all()

    def sweep(self) -> None:
        """Looks for due records; called at intervals."""
        if self._ended or any(self._is_due(one) or _is_elsewhere(one) for one in self._records.values()):
            self._spawn()

    async def close(self) -> None:
        """Finishes the work that was begun; the next daemon finds the rest."""
        await self._work.finish()

    # --- for the dispatcher ---

    def owns(self, task_id: str) -> bool:
        """Returns True if the task waits for the reply that completes it."""
        return task_id in self._records

    async def expect(self, task: Task, *, wait: bool, limit: float | None) -> Task:
        """Makes `task` durable: the asking agent's own task, which the reply will complete. `limit`: seconds that the
        reply may take. Raises QueueFull, StoreError."""
        if sum(record.asker == task.agent_id for record in self._records.values()) >= AWAITED_MAX:
            raise QueueFull(f"{task.agent_id} waits for {AWAITED_MAX} replies already", agent=task.agent_id)
        settlement = replies.made(task, wait=wait, limit=limit or replies.LIMIT_S, now=self._clock.wall())
        await self._perform(settlement)
        return settlement.task

    def asked(self, named: str, request: Task) -> ReplyRecord | None:
        """Returns the record of the task `named`, to be durable with `request`; None if no agent of this daemon waits
        for its reply. From now on the question counts as asked: call `not_asked` if it was not accepted. Raises
        InvalidRequest, Forbidden."""
        record = self._records.get(named)
        if record is None:
            return None
        if record.state != "open":
            field = "metadata.sender_task_id"
            raise InvalidRequest(
                f"{field}: this task belongs to an earlier question already; make another one", field=field
            )
        sender = sender_of(request)
        if sender is not None and sender.id != record.asker:
            raise Forbidden(f"task {record.task_id[:8]} is of {record.asker}, not of {sender.id}", task=record.task_id)
        after = replies.asked(record, request, now=self._clock.wall())
        self._put(after)
        return after

    def not_asked(self, record: ReplyRecord) -> None:
        """Notes that the request of `record` was not accepted."""
        self._requests.pop(record.request or "", None)
        self._put(record.model_copy(update={"state": "open", "asked": None, "request": None}))

    def ended(self, request: Task) -> None:
        """Notes that a task is at its end, durably: if a reply to it is awaited, the reply is its answer."""
        if (task_id := self._requests.get(request.id)) is not None:
            self._ended[task_id] = request
            self._spawn()

    async def reply(
        self,
        named: str | None,
        message: Message,
        sender: Sender | None,
        *,
        by: str | None,
        owner: str | None = None,
        visible_to: str | None = None,
    ) -> Task:
        """Completes a task by a reply. `named` is the id of the task or of its request, or the beginning of one of
        these; without it, the reply is to the last request to agent `by`. The task must be one of agent `owner`, if
        that is given. The beginning of an id names only requests to agent `visible_to`, if that is given. Raises
        TaskNotFound, AmbiguousAddress, NotWaiting, Forbidden."""
        async with self._lock:
            try:
                task = await (self._named(named, visible_to) if named is not None else self._last(by or ""))
            except (NotWaiting, TaskNotFound):
                self._check_asker_is_here(by)
                raise
            if owner not in (None, task.agent_id):
                raise TaskNotFound(f"task {task.id[:8]} is of {task.agent_id}, not of {owner}", task=task.id)
            record = self._records.get(task.id)
            sender = self._replying(task, self._asked_of(task), sender)
            if task.status is TaskState.COMPLETED and _same_reply(task, message, sender):
                return task  # sent again by a client that did not get the response
            now, parts = self._clock.wall(), message.parts
            if record is None or record.state == "over":
                settlement = replies.corrected(task, parts, sender, told_by=record, now=now)
            else:
                settlement = replies.replied(record, task, parts, sender, now=now)
            await self._perform(settlement)
            return settlement.task

    async def cancel(self, task_id: str, *, reason: str = "canceled") -> Task | None:
        """Cancels the wait for a reply; returns None if it is over. Raises StoreError."""
        async with self._lock:
            record, task = self._records.get(task_id), await self._store.task(task_id)
            if record is None or task is None or record.state == "over":
                return None
            settlement = replies.canceled(record, task, reason=reason, now=self._clock.wall())
            await self._perform(settlement)
            return settlement.task

    async def forget(self, agent_id: str) -> None:
        """Drops the records of an agent that is being removed."""
        for record in [record for record in self._records.values() if record.asker == agent_id]:
            if record.state == "over":
                await self.collected(record.task_id)
            else:
                await self.cancel(record.task_id, reason="removed")

    async def collected(self, task_id: str) -> None:
        """Notes that the waiting caller has the reply, so that the agent needs no notice of it."""
        async with self._lock:
            record, task = self._records.get(task_id), await self._store.task(task_id)
            if record is not None and task is not None and record.state == "over":
                await self._perform(replies.gone(record, task))

    @contextmanager
    def caller(self, task_id: str) -> Iterator[None]:
        """Counts a caller that waits for the reply."""
        self._callers[task_id] += 1
        try:
            yield
        finally:
            self._callers[task_id] -= 1
            if not self._callers[task_id]:
                del self._callers[task_id]

    def waits(self) -> Iterator[tuple[str, str]]:
        """Yields pairs of a waiting and an awaited agent: those where a caller waits, or where the awaited agent works
        on the request."""
        for record in self._records.values():
            if record.state == "asked" and record.asked is not None:
                task = self._current(record.asked)
                if record.wait or (task is not None and task.id == record.request):
                    yield record.asker, record.asked

    def check(self, waiter: str, waited: str, edges: Iterable[tuple[str, str]]) -> None:
        """Raises WouldDeadlock if `waiter` may not wait for `waited`; `edges` are waits for more than replies."""
        check_wait([*edges, *self.waits()], waiter, waited)

    def request_of(self, task_id: str) -> str | None:
        """Returns the request whose reply completes the task."""
        record = self._records.get(task_id)
        return record.request if record is not None else None

    # --- inside ---

    def _put(self, record: ReplyRecord) -> None:
        self._records[record.task_id] = record
        if self._dues.get(record.task_id, (None, 0.0))[0] != record.due:
            left = min(record.due - self._clock.wall(), max(record.limit, replies.UNASKED_S))
            self._dues[record.task_id] = record.due, self._clock.boot() + left
        if record.request is not None:
            self._requests[record.request] = record.task_id

    def _drop(self, task_id: str) -> None:
        record = self._records.pop(task_id, None)
        self._dues.pop(task_id, None)
        if record is not None:
            self._requests.pop(record.request or "", None)
        self._ended.pop(task_id, None)

    async def _perform(self, settlement: Settlement) -> None:
        """Performs one commit; this object changes only when it is durable."""
        task, record, notice = settlement.task, settlement.record, settlement.notice
        if notice is not None and not self._takes(notice):
            notice = None
        events = [event for event in settlement.events if notice is not None or event.task_id == task.id]
        await self._store.commit(
            events=events,
            tasks=[task] if notice is None else [task, notice],
            reply=record,
            reply_over=task.id if record is None else None,
        )
        if record is None:
            self._drop(task.id)
        else:
            self._put(record)
            self._ended.pop(task.id, None)
        if notice is not None:
            self._agents[notice.agent_id].enter(notice)

    def _takes(self, notice: Task) -> bool:
        """Returns True if the agent of the notice still exists, and a reply may be typed to it: if no model reads the
        reply, it would be run as a command. The agent's own task has the reply in any case."""
        agent = self._agents.get(notice.agent_id)
        return agent is not None and agent.takes_agents

    def _is_due(self, record: ReplyRecord) -> bool:
        is_late = self._clock.boot() >= self._dues[record.task_id][1]
        return is_late and not (record.state == "over" and self._callers[record.task_id])

    def _spawn(self) -> None:
        if self._begun and not self._work:
            self._work.spawn(self._settle_all(), name="replies")

    async def _settle_all(self) -> None:
        try:
            for record in [record for record in self._records.values() if _is_elsewhere(record)]:
                await self._look_at(record)
            while self._ended:
                await self._settle_ended()
            for record in [record for record in self._records.values() if self._is_due(record)]:
                await self._settle_due(record.task_id)
        except StoreError as error:
            log.warning("the database refused a reply; it will be tried again", error=error.message)

    async def _look_at(self, record: ReplyRecord) -> None:
        """Looks for the end of a request that was not reported."""
        request = await self._store.task(record.request or "")
        if request is not None and request.terminal:
            self._ended[record.task_id] = request

    async def _settle_ended(self) -> None:
        for task_id, request in list(self._ended.items()):
            async with self._lock:
                record, task = self._records.get(task_id), await self._store.task(task_id)
                if record is None or record.state != "asked" or task is None:
                    self._ended.pop(task_id, None)
                    continue
                sender = self._sender(request.agent_id)
                await self._perform(replies.ended(record, task, request, sender, now=self._clock.wall()))

    async def _settle_due(self, task_id: str) -> None:
        async with self._lock:
            record, task = self._records.get(task_id), await self._store.task(task_id)
            if record is None or task is None or not self._is_due(record):
                return
            now = self._clock.wall()
            sender = _told_sender(task) or self._sender(record.asked or record.asker)
            if record.state == "over":
                await self._perform(replies.told(record, task, sender, now=now))
            else:
                await self._perform(replies.expired(record, task, sender, now=now))

    async def _named(self, named: str, visible_to: str | None) -> Task:
        """Returns the task that a reply to `named` completes; see `reply`."""
        whole = await self._store.task(named) is not None
        ids = [named] if whole else []
        if not whole and len(named) >= TASK_PREFIX_MIN:
            ids = await self._store.find_tasks(named, RECENT)
        found: dict[str, Task] = {}
        for task_id in ids:
            task = await self._store.task(task_id)
            if task is not None and not replies.awaits(task):
                other = task.metadata.get(SENDER_TASK)
                task = await self._store.task(other) if isinstance(other, str) else None
            if task is None or not replies.awaits(task):
                continue
            if whole or visible_to in (None, self._asked_of(task)):
                found[task.id] = task
        if len(found) > 1:
            raise AmbiguousAddress(f"{named!r} could be {', '.join(sorted(found))}", candidates=sorted(found))
        if not found:
            raise TaskNotFound(f"no task {named[:64]!r} waits for a reply", task=named[:64])
        return next(iter(found.values()))

    def _asked_of(self, task: Task) -> str | None:
        """Returns the agent that was asked for the reply that completes the task, or has given it."""
        record = self._records.get(task.id)
        return record.asked if record is not None else _replier(task)

    async def _last(self, agent_id: str) -> Task:
        """Returns the task that a reply to the agent's present request completes, or else a reply to its last one."""
        running = self._current(agent_id)
        recent, _ = await self._store.tasks(TaskFilter(agent_id=agent_id, limit=RECENT))
        for request in [*([running] if running is not None else ()), *recent]:
            named = request.metadata.get(SENDER_TASK)
            if request.status is TaskState.SUBMITTED or not isinstance(named, str):
                continue
            task = await self._store.task(named)
            if task is not None and replies.awaits(task) and (not task.terminal or _is_implicit(task)):
                return task
        raise NotWaiting("nobody waits for a reply of this agent", agent=agent_id)

    def _check_asker_is_here(self, agent_id: str | None) -> None:
        """Raises NotWaiting with advice if the agent works on a request from another host: the asker follows that task,
        and has no task of its own on this host."""
        running = self._current(agent_id) if agent_id is not None else None
        asker = sender_of(running) if running is not None and SENDER_TASK in running.metadata else None
        if asker is not None and asker.tier is Tier.EXTERNAL:
            raise NotWaiting(
                f"{asker.id} is elsewhere, and gets the answer of this turn: write your reply in it", agent=agent_id
            )

    def _replying(self, task: Task, asked: str | None, sender: Sender | None) -> Sender:
        """Returns the replying sender. Raises Forbidden for a sender that was not asked."""
        if sender is None:
            return Sender(id=asked or PERSON, tier=Tier.CLAIMED)
        if asked is not None and sender.id != asked:
            raise Forbidden(f"{asked} was asked, not {sender.id}", task=task.id, asked=asked, sender=sender.id)
        return sender

    def _sender(self, agent_id: str) -> Sender:
        """Returns the agent as a sender: one of this daemon, which vouches for it, or one elsewhere."""
        if (alias := alias_of(agent_id)) is not None:
            return Sender(id=alias, tier=Tier.EXTERNAL)
        if (agent := self._agents.get(agent_id)) is None:
            return Sender(id=agent_id, tier=Tier.AGENT)
        endpoint = self._planner.endpoint(agent.record)
        return Sender(id=agent_id, tier=Tier.AGENT, type=agent.record.profile, endpoint=endpoint)

    def _current(self, agent_id: str) -> Task | None:
        return agent.turns.current if (agent := self._agents.get(agent_id)) is not None else None


def _is_elsewhere(record: ReplyRecord) -> bool:
    """Returns True if the asked agent is elsewhere, so that the end of its request is not reported to this daemon."""
    return record.state == "asked" and record.asked is not None and alias_of(record.asked) is not None


def _told_sender(task: Task) -> Sender | None:
    reply = task.metadata.get(replies.REPLY)
    return Sender.of(reply) if isinstance(reply, dict) else None


def _replier(task: Task) -> str | None:
    sender = _told_sender(task)
    return sender.id if sender is not None else None


def _is_implicit(task: Task) -> bool:
    reply = task.metadata.get(replies.REPLY)
    return task.status is TaskState.COMPLETED and isinstance(reply, dict) and reply.get("implicit") is True


def _same_reply(task: Task, message: Message, sender: Sender) -> bool:
    parts = [part for artifact in task.artifacts for part in artifact.parts]
    return parts == message.parts and _replier(task) == sender.id and not _is_implicit(task) and bool(parts)
