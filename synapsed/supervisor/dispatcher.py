"""Turns each message to an agent into tasks: one in the agent's mailbox, or those of a reply.

All messages come through this module, from the HTTP API and from everything else. Their sender was determined before
(`metadata.sender`, by `sender_verdict.settle_sender`).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import structlog

from synapsed.agents import views
from synapsed.agents.live_agent import Agent, agent_of
from synapsed.clock import Clock, iso
from synapsed.documents.budget import Large
from synapsed.errors import (
    Forbidden,
    HopLimit,
    InvalidRequest,
    NotReady,
    NotWaiting,
    SynapsedError,
    TaskNotCancelable,
    UnknownAgent,
)
from synapsed.interfaces import ADDRESS_MAX, PERSON, NewEvent, SendRequest, Store, TaskFilter
from synapsed.model.agent import ProcessState
from synapsed.model.events import EventData, Origin
from synapsed.model.external import alias_of, external_id, host_of, is_any
from synapsed.model.records import AgentRecord, ReplyRecord
from synapsed.model.sender import SENDER_TASK, Sender, Tier
from synapsed.model.task import NEW_CONVERSATION, Artifact, Message, Task, WaitsBehind, new_id, open_metadata
from synapsed.store.idempotency import Idempotency
from synapsed.store.lookup import find_id, find_task
from synapsed.supervisor.carriers import Carriers
from synapsed.supervisor.reply_broker import ReplyBroker
from synapsed.tasks import transitions
from synapsed.tasks.prompt_text import REPLY_TO, RESPONSE_EXPECTED
from synapsed.tasks.replies import DIRECTION, HOPS, IN_REPLY_TO, REPLY, awaits

GONE = (ProcessState.STOPPED, ProcessState.STOPPING, ProcessState.EXITED)
"""States in which an agent takes no messages, unless it comes up by itself."""

HOPS_MAX = 8
"""Number of agents through which a message may go: a loop between agents ends there."""

OURS = frozenset({DIRECTION, REPLY_TO, REPLY, IN_REPLY_TO, transitions.IN_BACKGROUND})
"""Keys of metadata that only synapsed itself may set."""


log = structlog.stdlib.get_logger("synapsed.post")


class Dispatcher:
    """Implements `interfaces.Tasks`. `agents` are all agents of this daemon, by id; `carriers` bring messages to agents
    elsewhere."""

    def __init__(
        self, *, store: Store, clock: Clock, agents: Mapping[str, Agent], reply_broker: ReplyBroker, carriers: Carriers
    ) -> None:
        self._store = store
        self._clock = clock
        self._agents = agents
        self._reply_broker = reply_broker
        self._carriers = carriers
        self._idempotency = Idempotency(store)
        self._blocked: dict[str, tuple[str, str]] = {}
        """Agents that are blocked in a wait: the id of the awaited task → (waiting agent, awaited agent). Used to find
        deadlocks."""

    # --- messages ---

    async def send(self, agent_id: str, request: SendRequest) -> Task:
        if (alias := alias_of(agent_id)) is not None:
            own = host_of(alias) is not None or is_any(alias)
            sender = self._name_of(Sender.of(request.metadata)) if own else None
            return await self._carriers.send(alias, request, self.asking, sender=sender)
        agent = agent_of(self._agents, agent_id)
        if request.task_id is not None:
            task = await self._find(request.task_id, agent.id)  # the message is the answer to its prompt
            if request.named and transitions.has_answer(task, request.message):
                return task
            worker = self._worker(task)
            text = transitions.text_of(request.message)
            return await worker.provide_input(task.id, request.message, text, request.prompt_id, request.origin)
        if (named := request.metadata.get(IN_REPLY_TO)) is not None:
            return await self._complete(agent_id, named, request)
        async with self._idempotency.once(request, agent_id) as (task_id, known):
            return known or await self._send_new(agent, request, task_id)

    async def sent_before(self, address: str, request: SendRequest) -> Task | None:
        address = address.removeprefix("@")[:ADDRESS_MAX]
        return await self._idempotency.sent(request, {address, external_id(address)})

    def _name_of(self, sender: Sender | None) -> str | None:
        """Returns the sender's name on this daemon; None for a person, and for a part that sends for a person."""
        if sender is None or sender.tier is Tier.PERSON:
            return None
        try:
            return agent_of(self._agents, sender.id).record.name
        except UnknownAgent:
            return sender.id

    async def _send_new(self, agent: Agent, request: SendRequest, task_id: str) -> Task:
        state, record = agent.process.state, agent.process.record
        name = record.name
        if state in GONE and not (agent.parking.away or agent.comes_up):
            raise NotReady(f"{name} is {state.value}: 'synapsectl restart {name}' starts it", agent=name)
        if request.of_agent and not agent.takes_agents:
            raise Forbidden(
                f"no model reads what is typed to {name} ({agent.profile.name}): what an agent writes would be run "
                "there as a command. A person can allow it: 'accept_agents = true' under "
                f"[agents.{name}] of config.toml, or 'synapsectl start … --allow-agents'",
                agent=name,
                profile=agent.profile.name,
            )
        if not 1 <= request.priority <= 5:
            raise InvalidRequest(f"priority must be 1 to 5, not {request.priority}", priority=request.priority)
        task = self._task_of(record, request, task_id)
        with self.asking(task, wait=request.wait) as reply:
            return await agent.send(task, reply)

    @contextmanager
    def asking(self, task: Task, *, wait: bool) -> Iterator[ReplyRecord | None]:
        """Implements `interfaces.OutboundQuestion`."""
        hops = self._hops(task.metadata)
        sender = Sender.of(task.metadata)
        named = task.metadata.get(SENDER_TASK)
        record = self._reply_broker.asked(named, task) if isinstance(named, str) else None
        try:
            if hops > 0:
                task.metadata[HOPS] = hops
            if record is not None:
                record.hops = hops
                task.metadata[RESPONSE_EXPECTED] = True
                self._check_wait(record.asker, task.agent_id)
            elif wait and sender is not None and task.agent_id in self._agents:
                self._check_wait(sender.id, task.agent_id)
                self._blocked[task.id] = sender.id, task.agent_id
            yield record
        except BaseException:
            self._blocked.pop(task.id, None)
            if record is not None:
                self._reply_broker.not_asked(record)
            raise

    def _task_of(self, agent: AgentRecord, request: SendRequest, task_id: str) -> Task:
        now = iso(self._clock.wall())
        metadata = {**open_metadata(request.metadata, OURS), **request.marks}
        metadata |= {transitions.COMMAND: True} if request.command else {}
        current = None if metadata.get(NEW_CONVERSATION) is True else agent.context_id
        return Task(
            id=task_id,
            agent_id=agent.id,
            context_id=request.context_id or current or new_id(),
            message=request.message,
            metadata=metadata,
            created_at=now,
            updated_at=now,
            priority=request.priority,
        )

    def _hops(self, metadata: Mapping[str, Any]) -> int:
        """Returns the number of agents that the message has gone through: one more than that of its sender's present
        task. Raises HopLimit."""
        given = metadata.get(HOPS, 0)
        if not isinstance(given, int) or isinstance(given, bool) or given < 0:
            raise InvalidRequest(f"metadata.{HOPS}: must be a whole number from 0", field=f"metadata.{HOPS}")
        sender = Sender.of(metadata)
        agent = self._agents.get(sender.id) if sender is not None else None
        worked_on = agent.turns.current if agent is not None else None
        before = worked_on.metadata.get(HOPS, 0) if worked_on is not None else 0
        hops = max(given, before + 1 if agent is not None else 0)
        if hops > HOPS_MAX:
            raise HopLimit(
                f"this message would be the {hops}th from agent to agent without a person in between, {HOPS_MAX} are "
                "allowed: say what you have to say in your answer",
                hops=hops,
                limit=HOPS_MAX,
            )
        return hops

    # --- replies ---

    async def expect_reply(self, agent_id: str, request: SendRequest, limit: float | None) -> Task:
        task = self._task_of(agent_of(self._agents, agent_id).record, request, new_id())
        return await self._reply_broker.expect(task, wait=request.wait, limit=limit)

    async def reply(self, agent_id: str, request: SendRequest) -> Task:
        agent_of(self._agents, agent_id)
        named = request.metadata.get(IN_REPLY_TO)
        sender, scope = _sender_and_scope(request)
        return await self._reply_broker.reply(_name(named), request.message, sender, by=agent_id, visible_to=scope)

    async def _complete(self, agent_id: str, named: Any, request: SendRequest) -> Task:
        """Handles `tasks/send` with `in_reply_to`: the task must be the agent's own."""
        sender, scope = _sender_and_scope(request)
        return await self._reply_broker.reply(
            _name(named), request.message, sender, by=None, owner=agent_id, visible_to=scope
        )

    async def collected(self, task_id: str) -> None:
        await self._reply_broker.collected(task_id)

    # --- waits ---

    @contextmanager
    def waiting(self, waiter: str | None, task: Task) -> Iterator[None]:
        if self._reply_broker.owns(task.id):
            with self._reply_broker.caller(task.id):
                yield
            return
        if waiter is None or task.terminal:
            yield
            return
        known = task.id in self._blocked
        if not known:
            self._check_wait(waiter, task.agent_id)
            self._blocked[task.id] = waiter, task.agent_id
        try:
            yield
        finally:
            self._blocked.pop(task.id, None)

    def _check_wait(self, waiter: str, waited: str) -> None:
        self._reply_broker.check(waiter, waited, self._blocked.values())

    def ended(self, task: Task) -> None:
        self._blocked.pop(task.id, None)
        self._reply_broker.ended(task)

    # --- tasks ---

    async def find(self, task_id: str, agent_id: str | None = None, visible_to: str | None = None) -> Task:
        task = await find_task(self._store, task_id, agent_id, visible_to)
        if task.terminal and visible_to is None:
            self._store.events.heard.add(task.id)
        return self._shown(task)

    async def find_id(self, named: str, agent_id: str | None = None, visible_to: str | None = None) -> str:
        return await find_id(self._store, named, agent_id, visible_to)

    async def page(self, which: TaskFilter) -> tuple[list[Task], int]:
        tasks, count = await self._store.tasks(which)
        return [self._shown(task) for task in tasks], count

    def _shown(self, task: Task) -> Task:
        if alias_of(task) is None:
            return views.queued(task, self._agents)
        held = self._carriers.held(task)
        return task if held is None else task.model_copy(update={"waits_behind": WaitsBehind(held=held)})

    async def weigh(self, which: str | TaskFilter) -> list[Large]:
        return await self._store.weigh(which)

    async def has_any(self, which: TaskFilter) -> bool:
        return await self._store.has_tasks(which)

    async def cancel(self, task_id: str) -> Task:
        """Implements `Tasks.cancel`. A request whose reply was to complete the task is canceled with it."""
        task = await self._find(task_id)
        if alias_of(task) is not None:
            return await self._carriers.cancel(task)
        agent = self._agents.get(task.agent_id)
        if task.terminal or agent is None:
            raise TaskNotCancelable(f"task {task.id} is {task.status.value} already", task=task.id)
        if not awaits(task):
            return await agent.stops.cancel(task.id)
        request = self._reply_broker.request_of(task.id)
        canceled = await self._reply_broker.cancel(task.id)
        if canceled is None:
            raise TaskNotCancelable(f"task {task.id} is over already", task=task.id)
        if request is not None:
            await self._cancel_request(request)
        return canceled

    async def _cancel_request(self, request: str) -> None:
        try:
            await self.cancel(request)
        except SynapsedError as error:
            log.info("the request goes on although nobody wants its reply", task=request, why=error.message)

    async def provide_input(
        self, task_id: str, text: str, prompt_id: str | None = None, origin: Origin = PERSON
    ) -> Task:
        task = await self._find(task_id)
        if alias_of(task) is not None:
            return await self._carriers.answer(task, Message.of(text), prompt_id, origin)
        return await self._worker(task).provide_input(task.id, Message.of(text), text, prompt_id, origin)

    async def report(self, agent_id: str, told: EventData, task: Task | None = None) -> None:
        event = NewEvent(agent_of(self._agents, agent_id).id, told) if task is None else NewEvent.of(task, told)
        await self._store.commit(events=[event])

    async def hand_over(self, task_id: str, artifact: Artifact, *, append: bool, last_chunk: bool) -> Task:
        task = await self._find(task_id)
        return await self._worker(task).hand_over(task.id, artifact, append=append, last_chunk=last_chunk)

    def _worker(self, task: Task) -> Agent:
        """Returns the agent that works on the task, or may. Raises NotWaiting."""
        agent = self._agents.get(task.agent_id)
        if task.terminal or agent is None or awaits(task):
            raise NotWaiting(f"task {task.id} is {task.status.value}: send without a task id", task=task.id)
        return agent

    async def _find(self, task_id: str, agent_id: str | None = None) -> Task:
        return await find_task(self._store, task_id, agent_id)


def _sender_and_scope(request: SendRequest) -> tuple[Sender | None, str | None]:
    """Returns the sender of the reply, and the agent whose requests may be named by the beginning of their ids; None
    for a person, who may name all requests so."""
    sender = Sender.of(request.metadata)
    if not request.of_agent:
        return sender, None
    return sender, "" if sender is None else sender.id


def _name(named: Any) -> str | None:
    if named is None:
        return None
    if not isinstance(named, str) or not named:
        raise InvalidRequest(f"metadata.{IN_REPLY_TO}: must be a task's id", field=f"metadata.{IN_REPLY_TO}")
    return named
