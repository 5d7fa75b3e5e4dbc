"""External agents as the API sees them: the address book, and a courier for every task that was sent to one.

Such a task is a task like any other, in the same store and log; `agent_id` is `external:<alias>`, and
`metadata.external` says how far the courier has come. Each step is durable before the next one, so that the next daemon
continues after a kill:

::

    nothing            it was never sent: it is sent now
    sending            it may have arrived: it is searched there; if the search is not conclusive, the task fails,
                       since nothing is ever sent twice
    task_id            it is followed

The SDK is loaded, in a thread, when the first agent is spoken to. All connections run in one of their own.
"""

import asyncio
import importlib
import re
from collections.abc import Container
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from types import ModuleType
from typing import TYPE_CHECKING, Any

import structlog

from synapsed.aio import cancel_all
from synapsed.clock import Clock, iso
from synapsed.errors import InvalidRequest, NameTaken, QueueFull, StoreError, TaskNotFound, UnknownAgent
from synapsed.interfaces import ADDRESS_MAX, PERSON, OutboundQuestion, Sampling, SendRequest, Store, validate_name
from synapsed.model.events import Origin
from synapsed.model.external import KEY, alias_of, external_id, host_of, part_of_task
from synapsed.model.task import Message, Task, new_id, open_metadata
from synapsed.outgoing import DIRECTLY, OutgoingConfig
from synapsed.parts.elsewhere.addressbook import AddressBook
from synapsed.parts.elsewhere.credentials import NONE, Credentials
from synapsed.parts.elsewhere.external_agent import FIRST, SEEDS, ExternalAgent
from synapsed.parts.elsewhere.face import FACE
from synapsed.parts.elsewhere.hosts.host import Host
from synapsed.parts.elsewhere.hosts.hosts import Hosts
from synapsed.parts.elsewhere.loop_thread import LoopThread
from synapsed.store.idempotency import Idempotency
from synapsed.tasks import transitions

if TYPE_CHECKING:
    from synapsed.parts.elsewhere.courier import Courier
    from synapsed.parts.elsewhere.hosts.tunnel import Tunnel
    from synapsed.parts.elsewhere.remote_protocol import AgentConnection

AGENTS_MAX = 200
OPEN_MAX = 100
"""Most tasks that may be under way to one agent."""
CARD_FRESH_S = 60.0
"""Seconds for which a card that was looked at is believed."""

log = structlog.stdlib.get_logger("synapsed.external")


def _asked_by_nobody(task: Task, *, wait: bool) -> AbstractContextManager[None]:
    return nullcontext()


class Externals:
    """All external agents, and the tasks under way to them. Errors are those of `synapsed.errors`; `restore` it once,
    then `resume`, and `close` it before the store."""

    hint = ""

    def __init__(
        self,
        *,
        store: Store,
        book: AddressBook,
        clock: Clock,
        hosts: Hosts | None = None,
        sampling: Sampling | None = None,
        outgoing: OutgoingConfig = DIRECTLY,
    ) -> None:
        self._outgoing = outgoing
        self.sampling = sampling or Sampling()
        self._store = store
        self._book = book
        self._clock = clock
        self._agents: dict[str, ExternalAgent] = {}
        self._sdk = LoopThread("agents elsewhere")
        self._remotes: dict[str, AgentConnection] = {}
        self._checked: dict[str, float] = {}
        self._couriers: dict[str, Courier] = {}
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._changing = asyncio.Lock()
        self._saving = asyncio.Lock()
        """Lock that is held from an agent's new credentials to its new address: no connection may have only one."""
        self._left: set[str] = set()
        """Tasks that were under way when the previous daemon ended, until they are continued."""
        self._idempotency = Idempotency(store)
        self._hosts = hosts
        if hosts is not None:
            hosts.on_up = self._host_is_up

    # --- from one daemon to the next ---

    async def restore(self) -> None:
        """Reads the address book and the tasks that were under way. Messages are taken from then on."""
        self._agents = {agent.alias: agent for agent in await asyncio.to_thread(self._book.load)}
        self._left = {task.id for task in await self._store.open_tasks()}

    async def resume(self) -> None:
        """Continues the tasks of the previous daemon; tasks that were sent since have their couriers already."""
        for task in await self._store.open_tasks():
            if task.id not in self._left or (alias := alias_of(task)) is None or not self.carries(task):
                continue
            if self.knows(alias):
                await self._carry(task)
            else:
                await self._end(transitions.canceled(task, reason="removed", now=self._clock.wall()))
        for task_id in self._left - self._under_way.keys():  # these tasks ended while agents were adopted
            self._couriers.pop(task_id, None)
        self._left.clear()

    async def close(self) -> None:
        """Stops all couriers without an end of their tasks: the next daemon continues them."""
        await cancel_all(self._under_way.values())
        for remote in self._remotes.values():
            await remote.close()
        self._remotes.clear()
        await self._sdk.close()

    # --- the address book ---

    def agents(self) -> list[ExternalAgent]:
        return [self._agents[alias] for alias in sorted(self._agents)]

    def knows(self, alias: str) -> bool:
        if (there := host_of(alias)) is not None:
            return self._hosts is not None and self._hosts.knows(there[1])
        return alias in self._agents

    def find(self, address: str) -> str | None:
        """Returns the id of the external agent that `address` means: its alias, `name@host`, or the id itself; a
        leading `@` is allowed. Raises UnknownAgent for an unknown host."""
        address = address.removeprefix("@")[:ADDRESS_MAX]
        alias = alias_of(address) or address
        if self._hosts is not None and (there := host_of(alias)) is not None:
            self._hosts.tunnel(there[1])
        return external_id(alias) if self.knows(alias) else None

    def view(self, alias: str) -> ExternalAgent:
        if self._hosts is not None and host_of(alias) is not None:
            return self._hosts.agent(alias)
        if (agent := self._agents.get(alias.removeprefix("@"))) is None:
            known = ", ".join(sorted(self._agents)) or "none; 'synapsectl external add URL --as NAME' adds one"
            raise UnknownAgent(f"no external agent {alias[:64]!r}: there are {known}", alias=alias[:64])
        return agent

    async def discover(
        self,
        url: str,
        alias: str | None = None,
        *,
        headers: dict[str, str] | None,
        query: dict[str, str] | None = None,
        key: str | None = None,
        other_host: bool = False,
        in_the_clear: bool = False,
        taken: Container[str] = (),
    ) -> ExternalAgent:
        """Looks at the agent, tries it and saves it, under a name that is not `taken`: without `alias` the name in its
        card. A known agent is looked at again: without `key` (of its card's signer) it keeps the present key, and
        without `headers` and `query` its credentials, unless its address is another."""
        if alias is not None:
            _check_alias(alias, taken)
        async with self._changing:
            before = self._known(alias, url)
            if before is None and len(self._agents) >= AGENTS_MAX:
                raise QueueFull(f"there are {AGENTS_MAX} external agents; remove some", limit=AGENTS_MAX)
            if before is not None and before.url != url and self._open(before.alias):
                raise NameTaken(f"{alias} is {before.url}, and tasks are under way to it", name=before.alias)
            same = before if before is not None and before.url == url else None
            credentials = Credentials(headers or {}, query or {})
            if same is not None and headers is None and query is None:
                credentials = await asyncio.to_thread(self._book.secret, same.alias)
            module = await _load("synapsed.parts.elsewhere.discovery")
            key = module.checked_key(key) if key is not None or before is None else before.key
            terms = module.Terms(credentials, other_host, in_the_clear, key)
            found = await self._sdk.run(module.look_up(url, terms, self._outgoing))
            alias = alias or (before.alias if before is not None else self._named_after(found.name, taken))
            now = iso(self._clock.wall())
            agent = ExternalAgent(
                **asdict(found),
                alias=alias,
                url=url,
                key=key,
                authenticated=bool(credentials),
                other_host=other_host,
                in_the_clear=in_the_clear,
                added_at=before.added_at if before else now,
                last_seen=now,
            )
            agent = await self._tried(agent, credentials)
            async with self._saving:
                await asyncio.to_thread(self._book.save_secret, alias, credentials)
                await asyncio.to_thread(self._book.save, agent)
                self._agents[alias] = agent
                await self._disconnect(alias)
            log.info("external agent added", alias=alias, url=url, endpoint=agent.endpoint)
            return agent

    async def _tried(self, agent: ExternalAgent, credentials: Credentials) -> ExternalAgent:
        if agent.binding == SEEDS:
            return agent  # it was asked already
        remote = await self._connected(agent, credentials)
        try:
            tried: ExternalAgent = await (await _load("synapsed.parts.elsewhere.trying")).tried(agent, remote)
        finally:
            await remote.close()
        return tried

    def _known(self, alias: str | None, url: str) -> ExternalAgent | None:
        """Returns the known agent of this alias; without an alias, of this address."""
        if alias is not None:
            return self._agents.get(alias)
        return next((agent for agent in self._agents.values() if agent.url == url), None)

    def _named_after(self, name: str, taken: Container[str]) -> str:
        """Returns the alias that a card's name makes. Raises NameTaken, InvalidRequest."""
        alias = re.sub(r"[^a-z0-9.]+", "-", name.strip().lower())
        _check_alias(alias, taken)
        if alias in self._agents:
            raise NameTaken(f"{alias} is {self._agents[alias].url} already; give this one another alias", name=alias)
        return alias

    async def remove(self, alias: str) -> ExternalAgent:
        """Forgets the agent; tasks under way to it end `canceled` here, and may continue there."""
        async with self._changing:
            agent = self.view(alias)
            del self._agents[agent.alias]
            await self._call_back(self._open(agent.alias))
            await asyncio.to_thread(self._book.remove, agent.alias)
            await self._disconnect(agent.alias)
            return agent

    async def remove_host(self, name: str) -> Host:
        """Forgets a host, and ends the tasks under way to it as `remove` does. Raises UnknownAgent."""
        assert self._hosts is not None
        async with self._changing:
            host = await self._hosts.remove(name)
            await self._call_back(self.open_to_host(name))
            for alias in [alias for alias in self._remotes if (host_of(alias) or ("", ""))[1] == name]:
                await self._disconnect(alias)
            return host

    async def _call_back(self, task_ids: list[str]) -> None:
        await cancel_all([self._under_way[task_id] for task_id in task_ids if task_id in self._under_way])
        for task_id in task_ids:
            task = await self._store.task(task_id)
            if task is not None and not task.terminal:
                await self._end(transitions.canceled(task, reason="removed", now=self._clock.wall()))

    def _host_is_up(self, name: str) -> None:
        for task_id in self.open_to_host(name):
            self._couriers[task_id].wake()

    async def seen(self, alias: str) -> None:
        """Notes that the agent has answered."""
        agent = self._agents.get(alias)
        now = self._clock.monotonic()
        if agent is None or now - self._checked.get(alias, -CARD_FRESH_S) < CARD_FRESH_S:
            return
        self._checked[alias] = now
        agent = agent.model_copy(update={"last_seen": iso(self._clock.wall())})
        self._agents[alias] = agent
        try:
            await asyncio.to_thread(self._book.renew, agent)
        except StoreError as error:
            log.warning("an external agent's file is out of date", alias=alias, error=error.message)

    # --- messages ---

    def carries(self, task: Task) -> bool:
        return part_of_task(task) == FACE.name

    async def send(
        self,
        alias: str,
        request: SendRequest,
        asking: OutboundQuestion = _asked_by_nobody,
        *,
        sender: str | None = None,
    ) -> Task:
        """Makes a new task that is under way to the agent; with `task_id` the message answers the question of that
        task. `sender` is the local name of the agent that sends to another host of the user's, None for the user.
        Raises Unreachable, CardChanged and CardInvalid before there is a task."""
        agent = self.view(alias)
        if request.task_id is not None:
            task = await self.task(agent.alias, request.task_id)
            return await self.answer(task, request.message, request.prompt_id, request.origin)
        if request.command:
            raise InvalidRequest("command: an agent elsewhere has no commands here", field="command")
        async with self._idempotency.once(request, external_id(agent.alias)) as (task_id, known):
            if known is not None:
                return known
            await self._check_way(agent.alias)
            return await self._send_new(agent, request, asking, task_id, sender)

    async def _check_way(self, alias: str) -> None:
        """Checks that a task can be sent to the agent. Raises QueueFull, Unreachable, CardChanged, CardInvalid."""
        host = host_of(alias)
        if len(self._open(alias) if host is None else self.open_to_host(host[1])) >= OPEN_MAX:
            where = alias if host is None else host[1]
            raise QueueFull(f"{OPEN_MAX} tasks are under way to {where}", limit=OPEN_MAX)
        if host is None:
            await self._check(alias)

    async def _send_new(
        self, agent: ExternalAgent, request: SendRequest, asking: OutboundQuestion, task_id: str, sender: str | None
    ) -> Task:
        now = iso(self._clock.wall())
        task = Task(
            id=task_id,
            agent_id=external_id(agent.alias),
            context_id=request.context_id or new_id(),
            message=request.message,
            metadata=self._metadata_of(request, sender),
            priority=request.priority,
            created_at=now,
            updated_at=now,
        )
        with asking(task, wait=request.wait) as reply:
            commit = transitions.accepted(task)
            await self._store.commit(events=commit.events, tasks=[task], reply=reply)
        await self._carry(task)
        return task

    def _metadata_of(self, request: SendRequest, sender: str | None) -> dict[str, Any]:
        told = {} if sender is None else {KEY: {"from": f"{sender}@{self._own_name}"}}
        return {**open_metadata(request.metadata, (KEY,)), **request.marks, **told}

    async def task(self, alias: str, task_id: str) -> Task:
        """Returns a task by its whole id, or the beginning of it."""
        whole = len(task_id) >= 36
        found = [task_id] if whole else await self._store.find_tasks(task_id, 2, agent_id=external_id(alias))
        task = await self._store.task(found[0]) if len(found) == 1 and len(task_id) >= 8 else None
        if task is None or alias_of(task) != alias.removeprefix("@"):
            raise TaskNotFound(f"{alias} has no task {task_id[:64]!r}", task_id=task_id[:64])
        return task

    async def cancel(self, task: Task) -> Task:
        """Cancels the task here and there. Raises TaskNotCancelable, Unreachable, RemoteRefused."""
        return await (await self._courier(task)).cancel()

    async def answer(self, task: Task, message: Message, prompt_id: str | None = None, origin: Origin = PERSON) -> Task:
        """Answers the question of a task. Raises NotWaiting, PromptChanged, Unreachable, RemoteRefused."""
        return await (await self._courier(task)).answer(message, prompt_id, origin)

    async def remote(self, alias: str) -> "AgentConnection":
        """Returns the connection to the agent."""
        while True:
            async with self._saving:
                agent = self.view(alias)
            if (known := self._remotes.get(alias)) is not None:
                return known
            there = host_of(alias)
            tunnel = None if there is None or self._hosts is None else self._hosts.tunnel(there[1])
            credentials = NONE if tunnel is not None else await asyncio.to_thread(self._book.secret, alias)
            made = await self._connected(agent, credentials, tunnel)
            stands = tunnel is not None or (self._agents.get(agent.alias) is agent and not self._saving.locked())
            if stands and self._remotes.setdefault(alias, made) is made:
                return made
            await made.close()  # another caller was faster, or the agent is another by now

    async def _connected(
        self, agent: ExternalAgent, credentials: Credentials, tunnel: "Tunnel | None" = None
    ) -> "AgentConnection":
        """Returns a connection to the agent, in its dialect."""
        made: AgentConnection
        if agent.binding == SEEDS:
            module = await _load("synapsed.parts.elsewhere.synapse_a2a")
            made = await asyncio.to_thread(module.SynapseA2aConnection, agent, credentials, self._outgoing, self._sdk)
        elif agent.protocol_version == FIRST:
            module = await _load("synapsed.parts.elsewhere.first_a2a")
            made = await asyncio.to_thread(module.FirstRemote, agent, credentials, self._outgoing, self._sdk)
        else:
            module = await _load("synapsed.parts.elsewhere.remote")
            made = await asyncio.to_thread(module.Remote, agent, credentials, self._outgoing, self._sdk, tunnel)
        return made

    async def _check(self, alias: str) -> None:
        """Raises CardChanged if another agent is there now. An agent that only speaks another dialect since the last
        look is the same agent."""
        if self._clock.monotonic() - self._checked.get(alias, -CARD_FRESH_S) < CARD_FRESH_S:
            return
        found = await (await self.remote(alias)).look()
        agent = self.view(alias)
        if not found.same_as(agent):
            if not found.same_but_for_the_dialect(agent) or self._open(alias):
                raise (await _load("synapsed.parts.elsewhere.discovery")).changed(agent, found)
            self._agents[alias] = agent = agent.model_copy(update={**asdict(found), "extended": False})
            await self._disconnect(alias)
            log.info("an external agent is spoken to otherwise", alias=alias, binding=agent.binding)
        await self.seen(alias)

    async def _courier(self, task: Task) -> "Courier":
        module = await _load("synapsed.parts.elsewhere.courier")
        if (known := self._couriers.get(task.id)) is None:
            task = await self._store.task(task.id) or task  # it may have ended since the caller has read it
            known = self._couriers.get(task.id)
        if known is not None:
            return known
        courier: Courier = module.Courier(task, self, self._store, self._clock)
        if task.id in self._left:  # all callers share one courier, which `resume` continues
            self._couriers[task.id] = courier
        return courier

    async def _carry(self, task: Task) -> None:
        courier = self._couriers[task.id] = await self._courier(task)
        running = self._under_way[task.id] = asyncio.create_task(self._run(courier), name=f"external {task.id}")
        running.add_done_callback(lambda _: self._forget(task.id))

    async def _run(self, courier: "Courier") -> None:
        try:
            await courier.run()
        except Exception:  # a bug in one task's way must not leave it open for ever, nor take the others along
            log.exception("a task to an external agent was lost", task=courier.task.id)
            await self._end(
                transitions.failed(
                    courier.task,
                    code="INTERRUPTED" if courier.delivered else "UNDELIVERED",
                    message="the daemon failed on the way; its log says why",
                    now=self._clock.wall(),
                )
            )

    def _forget(self, task_id: str) -> None:
        self._couriers.pop(task_id, None)
        self._under_way.pop(task_id, None)

    def _open(self, alias: str) -> list[str]:
        return [task_id for task_id, courier in self._couriers.items() if alias_of(courier.task) == alias]

    def open_to_host(self, name: str) -> list[str]:
        """Returns the ids of the tasks that are under way to agents of the host."""
        return [
            task_id
            for task_id, courier in self._couriers.items()
            if (there := host_of(courier.task.agent_id)) is not None and there[1] == name
        ]

    @property
    def _own_name(self) -> str:
        return self._hosts.own_name if self._hosts is not None else ""

    async def _disconnect(self, alias: str) -> None:
        self._checked.pop(alias, None)
        if (remote := self._remotes.pop(alias, None)) is not None:
            await remote.close()

    async def _end(self, commit: transitions.Commit) -> None:
        await self._store.commit(events=commit.events, tasks=[commit.task], turn_ended=commit.turn_ended)


def _check_alias(alias: str, taken: Container[str]) -> None:
    validate_name(alias)
    if alias in taken:
        raise NameTaken(f"an agent here is named {alias}; choose another alias", name=alias)


async def _load(name: str) -> ModuleType:
    return await asyncio.to_thread(importlib.import_module, name)
