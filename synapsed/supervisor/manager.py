"""All agents of one daemon: `Control` for the API, and the life of the agents from one daemon to the next.

What concerns one agent is done in that agent's actor; here is only what concerns more than one: addresses, tokens,
the registry, and starting and ending the whole.
"""

import asyncio
import contextlib
import hmac
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import structlog

from synapsed.agents import views
from synapsed.agents.agent import Agent
from synapsed.agents.conversations import taken
from synapsed.agents.lifecycle import LIVE_STATES
from synapsed.agents.parking import Memory, machine_memory
from synapsed.agents.restart_policy import RestartState
from synapsed.aio import Timer, Timers
from synapsed.channels.past import find_conversations
from synapsed.clock import Clock
from synapsed.config import check_parking, load_config, save_agent
from synapsed.documents.budget import Large
from synapsed.errors import ConversationTaken, InvalidRequest, NotReady, StoreError, SynapsedError
from synapsed.interfaces import (
    PERSON,
    Attachment,
    ConfigChange,
    Control,
    EventLog,
    NewEvent,
    OutputPiece,
    SendRequest,
    StartRequest,
    Store,
    TaskFilter,
)
from synapsed.keepers.process_owner import Root, owner_of
from synapsed.launch_plan import LinkFactory
from synapsed.library import ProfileLibrary
from synapsed.model.agent import AgentDetail, AgentView, Testimony, resolve
from synapsed.model.events import REMOVED, EventData, Origin, StateChanged
from synapsed.model.external import alias_of, unknown
from synapsed.model.picture import ScreenForm, Shown
from synapsed.model.records import AgentRecord, ReplyRecord, TurnRecord
from synapsed.model.task import Artifact, Task
from synapsed.profiles import Profile
from synapsed.supervisor import environment
from synapsed.supervisor.clipboard import with_clipboard
from synapsed.supervisor.dispatcher import Dispatcher
from synapsed.supervisor.launch_planner import ManagerSettings, Planner
from synapsed.supervisor.memory_pressure import MemoryWatch
from synapsed.supervisor.mentions import ControlDirectory, MentioningAttachment
from synapsed.supervisor.ports import announceable
from synapsed.supervisor.registry import REGISTRY_SWEEP_S, Registry
from synapsed.supervisor.reload import differences
from synapsed.supervisor.reply_broker import ReplyBroker
from synapsed.supervisor.roster import Roster, saved_as
from synapsed.supervisor.startup_order import StartOrder, each
from synapsed.tasks import prompt_text, transitions

__all__ = ["Manager", "ManagerSettings", "PortServer"]

SWEEP_S = 1.0
"""How often mailboxes are swept, besides when something happened."""

LINUX = sys.platform == "linux"

VERSION_S = 8.0
"""How long a start's answer may wait for the program's version, the first time that the program is run."""

log = structlog.stdlib.get_logger("synapsed.manager")


class PortServer(Protocol):
    """Who serves the agents' own ports."""

    async def open_agent_port(self, sock: socket.socket) -> int: ...

    async def close_agent_port(self, port: int) -> None: ...


class Manager:
    """Implements `interfaces.Control`. Life: `restore`, `serve_ports`, `adopt`, `autostart`, …, `close`."""

    def __init__(
        self,
        settings: ManagerSettings,
        *,
        store: Store,
        profiles: ProfileLibrary,
        factory: LinkFactory,
        registry: Registry,
        clock: Clock,
        timers: Timers,
        rng: Callable[[], float],
        on_shutdown: Callable[[bool], None],
        memory: Callable[[], Memory] = machine_memory,
    ) -> None:
        self._settings = settings
        self.everyone: Control = self
        """More than ours, where there are others: whom `@agent` in a terminal means, whose request is canceled."""
        self._store = store
        self._library = profiles
        self._factory = factory
        self._registry = registry
        self._clock = clock
        self._timers = timers
        self._rng = rng
        self._on_shutdown = on_shutdown
        self._roster = Roster(settings.config, profiles, clock, settings.on_config)
        self._server: PortServer | None = None
        self._agents: dict[str, Agent] = {}
        self._planner = Planner(settings, self._roster, self._reachable)
        self._reply_broker = ReplyBroker(store=store, clock=clock, agents=self._agents, endpoint=self._planner.endpoint)
        self._dispatcher = Dispatcher(
            store=store,
            clock=clock,
            agents=self._agents,
            reply_broker=self._reply_broker,
            cancel=lambda task_id: self.everyone.cancel(task_id),  # noqa: PLW0108 - it becomes another one later
        )
        self._tokens: dict[str, str] = {}
        self._sweeper: Timer | None = None
        self._tidier: Timer | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._closed = False
        self._reloading = asyncio.Lock()
        self._order = StartOrder(clock=clock, timers=timers)
        self._registry_due = clock.monotonic()
        self._memory = MemoryWatch(agents=self._agents.values, memory=memory, clock=clock, spawn=self._spawn)

    # --- from one daemon to the next ---

    async def restore(self) -> None:
        """Make the agents that the store and the configuration know. Nothing is started or adopted yet."""
        known = await self._store.agents()
        strays = await self._factory.strays({record.id for record in known})
        records = self._roster.restore(known + strays)
        self._reply_broker.restore(await self._store.replies())
        tasks = await self._open_tasks()
        turn_records = await self._store.turns()
        for record in records:
            await self._restore(self._add(record, self._library.get_or_bare(record.profile)), tasks, turn_records)
        await self._store.commit(agents=records, events=[views.taken_up(stray) for stray in strays])
        for task in tasks:
            if task.agent_id not in self._agents and alias_of(task) is None:
                await self._end(transitions.canceled(task, reason="removed", now=self._clock.wall()))
        self._sweep_again()

    async def _restore(self, agent: Agent, tasks: list[Task], turn_records: list[TurnRecord]) -> None:
        """Give `agent` what is its own, and start its actor."""
        own = [task for task in tasks if task.agent_id == agent.id]
        ids = {task.id for task in own}
        for stray in agent.restore(own, [turn for turn in turn_records if turn.task_id in ids]):
            message = "it was being worked on, but there is no record of how far"
            await self._end(transitions.failed(stray, code="INTERRUPTED", message=message, now=self._clock.wall()))
        agent.start_shell()

    async def serve_ports(self, server: PortServer, *, listen: str) -> None:
        """Announce the agents' ports on `server`, now and from now on. `listen` is where the main listener really is:
        the configuration may have asked for any free port."""
        self._server = server
        self._planner.listen = listen
        for agent in self._agents.values():
            await self._announce(agent.record.port)

    async def adopt(self) -> None:
        """Take up every program that lives; apply the restart policy to those that ended meanwhile."""
        # All at once: whoever has much output to be read holds up nobody.
        await each(lambda agent: agent.adopt(), self._agents.values(), parallel=None)
        await self._reply_broker.reconcile()
        await self._sweep_registry()
        self._tidy_again()

    async def autostart(self) -> None:
        """Start the agents that ran when the last daemon ended, and those configured to; failures are retried."""
        wanted = [
            agent
            for agent in self._agents.values()
            if agent.process.wanted
            or (not views.is_reachable(agent) and self._roster.config_of(agent.record).autostart)
        ]
        await self._order.start(wanted, self._roster.config, self._agents.values)

    async def reload(self, *, dry_run: bool = False) -> list[ConfigChange]:
        async with self._reloading:
            self._check_open()
            config = await asyncio.to_thread(load_config, self._settings.paths)
            library = await asyncio.to_thread(self._library.again)
            _ = [library.get(agent.profile or name) for name, agent in config.agents.items()]
            check_parking(config, library, self._settings.paths)
            changes = differences(
                [(agent.record, views.is_reachable(agent)) for agent in self._agents.values()],
                self._roster.config,
                config,
                self._library.find,
                library.find,
            )
            if not dry_run:
                self._library.become(library)
                self._roster.become(config)
                await self._perform(changes)
            return changes

    async def _perform(self, changes: list[ConfigChange]) -> None:
        starting = []
        for change in changes:
            if self._closed:
                return
            log.info("configuration", agent=change.agent, action=change.action, reason=change.reason)
            if change.agent is None or change.action == "refused":
                continue
            try:
                agent = await self._take_over(change.agent)
                if change.action == "stop":
                    await agent.stop()
                elif change.action == "restart":
                    await agent.restart(when_idle=True)
                elif change.action == "start":
                    starting.append(agent)
            except SynapsedError as error:
                log.error("a change of the configuration failed", agent=change.agent, why=error.message)  # noqa: TRY400
        await self._order.start(starting, self._roster.config, self._agents.values)

    async def _take_over(self, name: str) -> Agent:
        """The agent as it is configured now: made, or let go of and taken up again, as by a new daemon."""
        old = next((agent for agent in self._agents.values() if agent.record.name == name), None)
        if old is not None:
            await old.adopt()
            await old.close()
        record = old.record if old is not None else None
        if name in self._roster.config.agents:
            record = self._roster.configured(name, record)
        assert record is not None
        if name not in self._roster.config.agents:
            record = record.model_copy(update={"from_config": False})
        agent = self._add(record, self._library.get_or_bare(record.profile))
        await self._restore(agent, await self._open_tasks(), await self._store.turns())
        try:
            await self._store.commit(agents=[record])
        finally:  # else no agent would have its program
            if old is None:
                await self._announce(record.port)
            await agent.adopt()
        return agent

    async def close(self, *, keep_agents: bool) -> None:
        """End the agents, or let go of them. May be called again."""
        if self._closed:
            return
        self._closed = True
        for timer in (self._sweeper, self._tidier):
            if timer is not None:
                timer.cancel()
        self._order.end()
        async with self._reloading:  # one that is under way makes agents again: it ends with the one that it is at
            pass
        if not keep_agents:
            await each(lambda agent: agent.suspend(), self._agents.values())
        await each(lambda agent: agent.close(), self._agents.values())
        await self._reply_broker.close()
        for task in list(self._background):
            await asyncio.wait([task])
        await self._registry.flush()
        self._roster.close()

    # --- Control: what there is ---

    @property
    def events(self) -> EventLog:
        return self._store.events

    def agents(self) -> list[AgentView]:
        self._sweep_registry_soon()
        return [views.view_of(agent, self._planner.endpoint(agent.record)) for agent in self._agents.values()]

    def all(self) -> list[Agent]:
        """Every agent there is, to be looked at."""
        return list(self._agents.values())

    def resolve(self, address: str) -> str:
        return resolve(address, (views.ref_of(agent) for agent in self._agents.values())).id

    def teams(self) -> dict[str, list[str]]:
        return {name: list(team.members) for name, team in self._roster.config.teams.items()}

    def agent_on_port(self, port: int) -> str | None:
        return next((agent.id for agent in self._agents.values() if agent.record.port == port), None)

    def view(self, agent_id: str) -> AgentView:
        agent = self._agent(agent_id)
        return views.view_of(agent, self._planner.endpoint(agent.record))

    def detail(self, agent_id: str) -> AgentDetail:
        agent = self._agent(agent_id)
        return views.detail_of(agent, self._planner.endpoint(agent.record))

    def explain(self, agent_id: str) -> list[Testimony]:
        return views.explanation_of(self._agent(agent_id))

    async def screen(self, agent_id: str, fmt: ScreenForm) -> Shown:
        return await self._agent(agent_id).screen(fmt)

    def context(self, agent_id: str, limit: int = 2000) -> str:
        return self._agent(agent_id).screen_text(limit)

    async def output(self, agent_id: str, start: int | None, limit: int) -> OutputPiece:
        return await self._agent(agent_id).output(start, limit)

    async def recording(self, agent_id: str, limit: int) -> str:
        return await self._agent(agent_id).recording(limit)

    def profiles(self) -> list[dict[str, Any]]:
        return views.profile_rows(self._library)

    async def conversations(self, home: str | None, *, profile: str | None, cwd: str | None) -> list[dict[str, Any]]:
        names = [profile] if profile is not None else self._library.names()
        where = Path(home or self._settings.environ.get("HOME") or Path.home())
        found = await asyncio.to_thread(find_conversations, [self._library.get(name) for name in names], where, cwd)
        return views.conversation_rows(found, self._names_in_conversations())

    async def process_of(self, pid: int) -> str | None:
        roots = [
            Root(agent.id, agent.record.launch)
            for agent in self._agents.values()
            if agent.record.launch is not None and views.is_live(agent)
        ]
        if LINUX:
            return owner_of(pid, roots, self._tokens)
        return await asyncio.to_thread(owner_of, pid, roots) if roots else None

    def granted(self, agent_id: str) -> frozenset[str]:
        return frozenset(agent.profile.rights) if (agent := self._agents.get(agent_id)) is not None else frozenset()

    async def report(self, agent_id: str, told: EventData, task: Task | None = None) -> None:
        await self._dispatcher.report(agent_id, told, task)

    def token_owner(self, token: str) -> str | None:
        given = token.encode()
        owners = (owner for known, owner in self._tokens.items() if hmac.compare_digest(known.encode(), given))
        return next(owners, None)

    # --- Control: processes ---

    async def start(self, request: StartRequest) -> AgentView:
        await self._order.turn()
        self._check_open()
        profile = self._library.get(request.profile)
        if request.conversation is not None:
            self._check_free(request.conversation, profile)
        record = self._roster.enter(request, profile)
        try:
            self._planner.plan(record, profile)  # the program must exist before the agent does
        except BaseException:
            self._roster.leave(record)
            raise
        agent = self._add(record, profile)
        try:
            agent.start_shell()
            await self._announce(record.port)
            await agent.start()
            await agent.process.version_known(VERSION_S)
        except BaseException:
            await asyncio.shield(self._forget(record))
            raise
        if request.save:
            await self._save(record, request)
        log.info("agent started", agent=record.name, profile=profile.name, port=record.port)
        return self.view(record.id)

    async def _save(self, record: AgentRecord, request: StartRequest) -> None:
        try:
            path = await asyncio.to_thread(save_agent, self._settings.paths, record.name, saved_as(record, request))
        except StoreError as error:
            raise StoreError(
                f"agent {record.name!r} runs but is not saved: {error.message}", **error.details
            ) from error
        log.info("agent saved", agent=record.name, file=str(path))

    def _check_free(self, conversation: str, profile: Profile) -> None:
        """Two programs in one conversation would write over each other."""
        if not environment.names_conversation(profile.resume.args):
            raise InvalidRequest(f"profile {profile.name!r} cannot go on with a conversation by its id")
        if (name := self._names_in_conversations().get((profile.name, conversation))) is not None:
            raise ConversationTaken(f"agent {name!r} is in that conversation", agent=name)

    def _names_in_conversations(self) -> dict[tuple[str, str], str]:
        return taken(agent.record for agent in self._agents.values())

    async def stop(self, agent_id: str, *, remove: bool = False) -> AgentView:
        agent = self._agent(agent_id)
        await agent.stop()
        view = self.view(agent_id)
        if remove:
            await agent.cancel_waiting("removed")
            await self._reply_broker.forget(agent_id)
            await self._forget(agent.record)
        return view

    async def restart(self, agent_id: str, *, when_idle: bool = False) -> AgentView:
        await self._agent(agent_id).restart(when_idle=when_idle)
        return self.view(agent_id)

    async def park(self, agent_id: str) -> AgentView:
        await self._agent(agent_id).park("as asked")
        return self.view(agent_id)

    async def kill(self, agent_id: str) -> AgentView:
        await self._agent(agent_id).signal(signal.SIGKILL)
        return self.view(agent_id)

    async def attach(self, agent_id: str, *, cols: int, rows: int, read_only: bool) -> Attachment:
        agent, wanted = self._agent(agent_id), self._roster.config.attach
        attachment = await agent.attach(cols=cols, rows=rows, read_only=read_only)
        attachment = with_clipboard(attachment, agent.record.name, wanted.clipboard)
        if read_only or not wanted.mentions:
            return attachment
        return MentioningAttachment(attachment, agent_id, ControlDirectory(self.everyone))

    async def shutdown(self, *, keep_agents: bool) -> None:
        self._on_shutdown(keep_agents)

    def knows(self, agent_id: str) -> bool:
        """Whether there is such an agent."""
        return agent_id in self._agents

    async def poke(self, agent_id: str) -> None:
        """A hook of that agent has reported; nothing happens for an unknown one."""
        if (agent := self._agents.get(agent_id)) is not None:
            await agent.poke()

    async def decide(self, agent_id: str, event: str, told: dict[str, Any]) -> dict[str, Any] | None:
        return await self._agent(agent_id).decide(event, told)

    # --- Control: tasks ---

    async def send(self, agent_id: str, request: SendRequest) -> Task:
        self._sweep_registry_soon()
        return await self._dispatcher.send(agent_id, request)

    async def expect_reply(self, agent_id: str, request: SendRequest, limit: float | None) -> Task:
        return await self._dispatcher.expect_reply(agent_id, request, limit)

    async def reply(self, agent_id: str, request: SendRequest) -> Task:
        return await self._dispatcher.reply(agent_id, request)

    def asking(self, task: Task, *, wait: bool) -> contextlib.AbstractContextManager[ReplyRecord | None]:
        return self._dispatcher.asking(task, wait=wait)

    async def collected(self, task_id: str) -> None:
        await self._dispatcher.collected(task_id)

    def waiting(self, waiter: str | None, task: Task) -> contextlib.AbstractContextManager[None]:
        return self._dispatcher.waiting(waiter, task)

    async def interrupt(self, agent_id: str) -> bool:
        return await self._agent(agent_id).interrupt()

    async def task(self, task_id: str, agent_id: str | None = None) -> Task:
        return views.queued(await self._dispatcher.find(task_id, agent_id), self._agents)

    async def tasks(self, which: TaskFilter) -> tuple[list[Task], int]:
        tasks, count = await self._store.tasks(which)
        return [views.queued(task, self._agents) for task in tasks], count

    async def weigh(self, which: str | TaskFilter) -> list[Large]:
        return await self._store.weigh(which)

    async def has_tasks(self, which: TaskFilter) -> bool:
        return await self._store.has_tasks(which)

    async def cancel(self, task_id: str) -> Task:
        return await self._dispatcher.cancel(task_id)

    async def provide_input(
        self, task_id: str, text: str, prompt_id: str | None = None, origin: Origin = PERSON
    ) -> Task:
        return await self._dispatcher.provide_input(task_id, text, prompt_id, origin)

    async def hand_over(self, task_id: str, artifact: Artifact, *, append: bool, last_chunk: bool) -> Task:
        return await self._dispatcher.hand_over(task_id, artifact, append=append, last_chunk=last_chunk)

    async def answer_agent(
        self, agent_id: str, text: str, prompt_id: str | None = None, origin: Origin = PERSON
    ) -> None:
        await self._agent(agent_id).answer(text, prompt_id, origin)

    async def press(self, agent_id: str, keys: Sequence[str]) -> None:
        await self._agent(agent_id).press(keys)

    # --- inside ---

    def _check_open(self) -> None:
        """An agent that is made now would be left behind."""
        if self._closed:
            raise NotReady("the daemon is shutting down")

    async def _end(self, commit: transitions.Commit) -> None:
        """End a task that belongs to no agent."""
        await self._store.commit(events=commit.events, tasks=[commit.task], turn_ended=commit.turn_ended)
        self._dispatcher.ended(commit.task)

    async def _open_tasks(self) -> list[Task]:
        """Those that agents work on: not those that replies complete."""
        return [task for task in await self._store.open_tasks() if not self._reply_broker.owns(task.id)]

    def _agent(self, agent_id: str) -> Agent:
        if (agent := self._agents.get(agent_id)) is None:
            raise unknown(agent_id)
        return agent

    def _add(self, record: AgentRecord, profile: Profile) -> Agent:
        policy = self._roster.config_of(record).restart
        fine = policy.fine_codes if policy.fine_codes is not None else profile.exit.codes
        agent = Agent(
            record,
            profile,
            planner=self._planner,
            factory=self._factory,
            restart=RestartState(policy, fine_codes=frozenset(fine), rng=self._rng),
            store=self._store,
            clock=self._clock,
            timers=self._timers,
            spool=self._settings.paths.agent(record.id) / "spool",
            inbox=self._settings.paths.inbox(record.id),
            policy=lambda: self._roster.config_of(agent.record).approval.policy,
            limits=lambda: self._roster.config_of(agent.record).usage_limit,
            parking=lambda: self._roster.config_of(agent.record).park,
            question_timeout=lambda: self._roster.config_of(agent.record).question_timeout,
            changed=self._publish,
            ended=self._dispatcher.ended,
        )
        self._agents[record.id] = agent
        self._tokens[environment.agent_token(self._settings.control_token, record.id)] = record.id
        return agent

    async def _forget(self, record: AgentRecord) -> None:
        """Nothing of the agent stays but its tasks."""
        if (agent := self._agents.get(record.id)) is not None:
            if agent.state in LIVE_STATES:
                await agent.stop()
            await agent.close()
        if self._server is not None and record.port is not None:
            await self._server.close_agent_port(record.port)
        with contextlib.suppress(SynapsedError):
            await self._store.delete_agent(record.id, [NewEvent(record.id, StateChanged(state=REMOVED))])
        await asyncio.to_thread(shutil.rmtree, self._settings.paths.agent(record.id), ignore_errors=True)
        self._agents.pop(record.id, None)
        self._tokens.pop(environment.agent_token(self._settings.control_token, record.id), None)
        self._registry.withdraw(record.id)
        self._roster.leave(record)

    async def _announce(self, port: int | None) -> None:
        if self._server is not None and port is not None and (sock := self._roster.take_socket(port)) is not None:
            await self._server.open_agent_port(announceable(sock))

    def _publish(self, agent: Agent) -> None:
        self._order.changed()
        if views.is_reachable(agent):
            self._registry.publish(views.entry_of(agent, self._planner.endpoint(agent.record)))
        else:
            self._registry.withdraw(agent.id)

    def _reachable(self) -> list[AgentRecord]:
        return [agent.record for agent in self._agents.values() if views.is_reachable(agent)]

    def _sweep_registry_soon(self) -> None:
        """On list and on send (S9), but not for each of many."""
        if (now := self._clock.monotonic()) >= self._registry_due:
            self._registry_due = now + REGISTRY_SWEEP_S
            self._spawn(self._sweep_registry())

    async def _sweep_registry(self) -> None:
        await self._registry.sweep(frozenset(record.id for record in self._reachable()), frozenset(self._agents))

    def _sweep_again(self) -> None:
        self._sweeper = self._timers.call_later(SWEEP_S, self._sweep_again)  # first: one that fails is not the last
        for agent in self._agents.values():
            agent.sweep()
        self._reply_broker.sweep()
        self._memory.look()
        self._registry.look()

    def _tidy_again(self) -> None:
        self._spawn(each(lambda agent: agent.tidy(), self._agents.values()))
        self._tidier = self._timers.call_later(prompt_text.TIDY_EVERY_S, self._tidy_again)

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
