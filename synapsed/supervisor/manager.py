"""All agents of one daemon: `Control` for the API, and the adoption of the agents by the next daemon.

The actor of each agent does that agent's work. `Manager` does the common work: it makes, starts and ends agents, and
implements `interfaces.Processes`; the other parts of `Control` are objects of their own.
"""

import asyncio
import contextlib
import shutil
import signal
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import structlog

from synapsed.agents import message_files, views
from synapsed.agents.lifecycle import LIVE_STATES
from synapsed.agents.live_agent import Agent, agent_of
from synapsed.agents.parking import Memory, check_parking, machine_memory
from synapsed.agents.part_doors import PartDoors
from synapsed.agents.restart_policy import RestartState
from synapsed.aio import Pace, TaskSet, Timer, Timers
from synapsed.clock import Clock
from synapsed.config.config_files import load_config
from synapsed.errors import ConversationTaken, InvalidRequest, NotReady, StoreError, SynapsedError
from synapsed.interfaces import Bringing, ConfigChange, EventLog, NewEvent, Processes, StartRequest, Store
from synapsed.keepers.launch_plan import LinkFactory
from synapsed.model.agent import AgentView, StartedAgent
from synapsed.model.events import REMOVED, StateChanged
from synapsed.model.external import alias_of
from synapsed.model.records import AgentRecord, TurnRecord
from synapsed.model.task import Task
from synapsed.process.inherited import activated
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Profile
from synapsed.supervisor import environment
from synapsed.supervisor.agent_terminals import AgentTerminals
from synapsed.supervisor.carriers import Carriers
from synapsed.supervisor.directory import AgentDirectory
from synapsed.supervisor.dispatcher import Dispatcher
from synapsed.supervisor.environment import gone, renewed
from synapsed.supervisor.launch_planner import ManagerSettings, Planner
from synapsed.supervisor.memory_pressure import MemoryWatch
from synapsed.supervisor.ports import announceable
from synapsed.supervisor.reload import differences
from synapsed.supervisor.reply_broker import ReplyBroker
from synapsed.supervisor.roster import Roster
from synapsed.supervisor.startup_order import AgentNews, StartOrder, each
from synapsed.tasks import transitions

ACTORS_AT_ONCE = 8
"""Largest number of agents that decide something in one turn of the event loop; each takes some 0.3 ms."""

SWEEP_S = 1.0
"""Seconds between two sweeps of mailboxes, besides those after events."""

VERSION_S = 8.0
"""Seconds that a start's answer may wait for the program's version, the first time that the program is run."""

log = structlog.stdlib.get_logger("synapsed.manager")


ADOPTIONS_AT_ONCE = 16
"""Number of programs that are adopted (taken over from the last daemon) at a time: the answers of three hundred
keepers, the processes that hold their terminals, would block the loop for a tenth of a second."""

ADOPTION_S = 0.5
"""Seconds after which a slow adoption (much output to read, or a stopped keeper) no longer delays the others."""


async def _begin_adoption(agent: Agent) -> None:
    """Returns when the agent is adopted, or after `ADOPTION_S`. Errors go to the caller that awaits the adoption."""
    with contextlib.suppress(TimeoutError, SynapsedError):
        await asyncio.wait_for(agent.adopt(), ADOPTION_S)


class PortServer(Protocol):
    """Server of the agents' own ports."""

    async def open_agent_port(self, sock: socket.socket) -> int: ...

    async def close_agent_port(self, port: int) -> None: ...


class Manager:
    """Implements `interfaces.Control`. Its methods are called in this order: `restore`, `serve_ports`, `adopt`,
    `autostart`, …, `close`."""

    def __init__(
        self,
        settings: ManagerSettings,
        *,
        store: Store,
        profiles: ProfileLibrary,
        factory: LinkFactory,
        clock: Clock,
        timers: Timers,
        rng: Callable[[], float],
        on_shutdown: Callable[[bool], None],
        carriers: Carriers | None = None,
        memory: Callable[[], Memory] = machine_memory,
    ) -> None:
        self._settings = settings
        self._store = store
        self._library = profiles
        self._factory = factory
        self._clock = clock
        self._timers = timers
        self._pace = Pace(ACTORS_AT_ONCE)
        self._rng = rng
        self._on_shutdown = on_shutdown
        self.doors = PartDoors()
        self._roster = Roster(settings.config, profiles, clock, settings.on_config)
        self._server: PortServer | None = None
        self._agents: dict[str, Agent] = {}
        carriers = carriers or Carriers(store, clock)
        self._planner = Planner(settings, self._roster, self._agents, self.doors)
        self._order = StartOrder(self._agents, clock=clock, timers=timers)
        self.directory = AgentDirectory(
            self._agents,
            settings=settings,
            library=profiles,
            roster=self._roster,
            planner=self._planner,
            carriers=carriers,
        )
        self._news = AgentNews(store.events, timers, directory=self.directory, order=self._order)
        self._reply_broker = ReplyBroker(store=store, clock=clock, agents=self._agents, planner=self._planner)
        self.tasks = Dispatcher(
            store=store, clock=clock, agents=self._agents, reply_broker=self._reply_broker, carriers=carriers
        )
        self.terminals = AgentTerminals(self._agents, roster=self._roster, doors=self.doors)
        self._sweeper: Timer | None = None
        self._tidier: Timer | None = None
        self._background = TaskSet()
        self._closed = False
        self._lost: list[transitions.Commit] = []
        """Commits that end tasks which no agent has any more."""
        self._reloading = asyncio.Lock()
        self._memory = MemoryWatch(agents=self._agents, memory=memory, clock=clock, background=self._background)

    # --- from one daemon to the next ---

    async def restore(self) -> None:
        """Makes the agents that the store and the configuration know. Nothing is started or adopted yet."""
        known = await self._store.agents()
        strays = await self._factory.strays({record.id for record in known})
        records = self._roster.restore(known + strays)
        self._reply_broker.restore(await self._store.replies())
        tasks = await self._open_tasks()
        turn_records = await self._store.turns()
        self._lost = []
        for record in records:
            agent = self._add(record, self._library.get_or_bare(record.profile))
            self._lost += self._restore(agent, tasks, turn_records)
        await self._store.commit(agents=records, events=[views.taken_up(stray) for stray in strays])
        for agent in self._to_start():
            agent.to_be_started = True
        for task in tasks:
            if task.agent_id not in self._agents and alias_of(task) is None:
                self._lost.append(transitions.canceled(task, reason="removed", now=self._clock.wall()))
        self._news.start()
        self._sweep_again()

    async def parts_opened(self) -> None:
        """Continues when the parts are open: makes all agents known to them before the first one takes a message, and
        ends the tasks that no agent has any more, together with the rows that parts keep about them."""
        for agent in self._agents.values():
            agent.hold.open()
        while self._lost:
            await self._end(self._lost[0])
            del self._lost[0]

    def _restore(self, agent: Agent, tasks: list[Task], turn_records: list[TurnRecord]) -> list[transitions.Commit]:
        """Gives `agent` its tasks, and starts its actor. Returns the commits by which tasks fail whose progress is not
        on record."""
        own = [task for task in tasks if task.agent_id == agent.id]
        ids = {task.id for task in own}
        message = "it was being worked on, but there is no record of how far"
        lost = [
            transitions.failed(stray, code="INTERRUPTED", message=message, now=self._clock.wall())
            for stray in agent.turns.restore(own, [turn for turn in turn_records if turn.task_id in ids])
        ]
        agent.start_shell()
        return lost

    async def serve_ports(self, server: PortServer, *, listen: str) -> None:
        """Announces the agents' ports on `server`, now and from now on. `listen` is the real address of the main
        listener: the configuration may have asked for any free port."""
        self._server = server
        self._planner.listen = listen
        for agent in self._agents.values():
            await self._announce(agent.record.port)

    async def adopt(self) -> None:
        """Adopts every program that lives; applies the restart policy to those that ended meanwhile."""
        agents = list(self._agents.values())
        await each(_begin_adoption, agents, parallel=ADOPTIONS_AT_ONCE)
        await each(Agent.adopt, agents, parallel=None)
        await self._reply_broker.reconcile()
        self._tidy_again()

    async def autostart(self) -> None:
        """Starts the agents that ran when the last daemon ended, and those configured to; failures are retried."""
        try:
            await self._order.start(self._to_start(), self._roster.config)
        finally:
            for agent in self._agents.values():
                agent.to_be_started = False

    def _to_start(self) -> list[Agent]:
        return [
            agent
            for agent in self._agents.values()
            if agent.process.wanted
            or (not views.is_reachable(agent) and self._roster.config_of(agent.record).autostart)
        ]

    async def reload(self, *, dry_run: bool = False) -> list[ConfigChange]:
        async with self._reloading:
            self._check_open()
            config = await asyncio.to_thread(load_config, self._settings.paths, type(self._settings.config))
            library = await asyncio.to_thread(self._library.again)
            await asyncio.to_thread(
                lambda: [library.get(agent.profile or name) for name, agent in config.agents.items()]
            )
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
                await self.doors.open(bool(self._agents or config.agents))
                changes = await self._perform(changes)
            return changes

    async def _perform(self, changes: list[ConfigChange]) -> list[ConfigChange]:
        """Performs the changes and returns them; a restart that failed is returned as refused."""
        starting, done = [], list(changes)
        for number, change in enumerate(changes):
            if self._closed:
                return done
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
                if change.action == "restart":
                    done[number] = replace(change, action="refused", reason=f"{change.reason}; {error.message}")
        await self._order.start(starting, self._roster.config)
        return done

    async def _take_over(self, name: str) -> Agent:
        """Returns the agent with its new configuration: made, or released and adopted again, as by a new daemon."""
        old = next((agent for agent in self._agents.values() if agent.record.name == name), None)
        if old is not None:
            await old.adopt()
            await old.close()
        record = self._roster.configured(name, old.record if old is not None else None)
        agent = self._add(record, self._library.get_or_bare(record.profile))
        agent.hold.open()
        if old is not None:
            old.hold.leave()  # after `open`: else others of its account would be released
        for commit in self._restore(agent, await self._open_tasks(), await self._store.turns()):
            await self._end(commit)
        try:
            await self._store.commit(agents=[record])
        finally:  # otherwise no agent would own its program
            if old is None:
                await self._announce(record.port)
            await agent.adopt()
        return agent

    async def close(self, *, keep_agents: bool) -> None:
        """Ends the agents, or releases them. May be called again."""
        if self._closed:
            return
        self._closed = True
        for timer in (self._sweeper, self._tidier):
            if timer is not None:
                timer.cancel()
        self._order.end()
        async with self._reloading:  # a reload that runs makes agents: it ends after the present one
            pass
        if not keep_agents:
            await each(Agent.suspend, self._agents.values())
        await each(Agent.close, self._agents.values())
        await self._reply_broker.close()
        await self._background.finish()
        await self._news.close()
        self._roster.ports.close()

    # --- Control ---

    @property
    def processes(self) -> Processes:
        return self

    @property
    def events(self) -> EventLog:
        return self._store.events

    # --- Processes ---

    async def start(self, request: StartRequest) -> StartedAgent:
        await asyncio.to_thread(self._library.find, request.profile)  # the profile may have to be made first
        await self.doors.open(True)
        await self._order.turn()
        self._check_open()
        profile = self._library.get(request.profile)
        if request.conversation is not None:
            self._check_free(request.conversation, profile)
        record = self._roster.enter(request, profile)
        try:
            plan = self._planner.plan(record, profile)  # the program must exist before the agent does
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
            await self._roster.save_started(self._settings.paths, record, request)
        log.info("agent started", agent=record.name, profile=profile.name, port=record.port)
        view = self.directory.view(record.id)
        return StartedAgent.model_construct(**view.__dict__, activated=environment.brought(record, plan.env))

    def _check_free(self, conversation: str, profile: Profile) -> None:
        """Raises if the conversation is in use: two programs in one conversation would write over each other."""
        if not environment.names_conversation(profile.newest.resume.args):
            raise InvalidRequest(f"profile {profile.name!r} cannot go on with a conversation by its id")
        if (name := self.directory.in_conversations().get((profile.name, conversation))) is not None:
            raise ConversationTaken(f"agent {name!r} is in that conversation", agent=name)

    async def stop(self, agent_id: str, *, remove: bool = False) -> AgentView:
        agent = agent_of(self._agents, agent_id)
        await agent.stop()
        view = self.directory.view(agent_id)
        if remove:
            await self._roster.unsave(self._settings.paths, agent.record.name)
            await agent.cancel_waiting()
            await self._reply_broker.forget(agent_id)
            await self._forget(agent.record)
        return view

    async def restart(self, agent_id: str, *, when_idle: bool = False, without_approval: bool = False) -> AgentView:
        agent = agent_of(self._agents, agent_id)
        if without_approval:
            await agent.amend(without_approval=True)
        await agent.restart(when_idle=when_idle)
        return self.directory.view(agent_id)

    async def bring(self, agent_id: str, env: dict[str, str], bringing: Bringing) -> list[str]:
        agent, rules = agent_of(self._agents, agent_id), self._roster.config.environment
        before = agent.record
        fields = await asyncio.to_thread(
            renewed, before, env, bringing, own=self._settings.environ, update=rules.update, is_gone=gone
        )
        if fields:
            await agent.amend(**fields)
        if bringing == "all":
            return activated(environment.travelling(env, rules))
        return sorted(name for name, _ in fields.get("connection", {}).items() - before.connection.items())

    async def park(self, agent_id: str) -> AgentView:
        await agent_of(self._agents, agent_id).park("as asked")
        return self.directory.view(agent_id)

    async def kill(self, agent_id: str) -> AgentView:
        await agent_of(self._agents, agent_id).signal(signal.SIGKILL)
        return self.directory.view(agent_id)

    async def shutdown(self, *, keep_agents: bool) -> None:
        self._on_shutdown(keep_agents)

    # --- inside ---

    def _check_open(self) -> None:
        """Raises NotReady after `close`: an agent that is made now would never be closed."""
        if self._closed:
            raise NotReady("the daemon is shutting down")

    async def _end(self, commit: transitions.Commit) -> None:
        """Ends a task that belongs to no agent."""
        await self._store.commit(events=commit.events, tasks=[commit.task], turn_ended=commit.turn_ended)
        self.tasks.ended(commit.task)

    async def _open_tasks(self) -> list[Task]:
        """Returns the open tasks of agents, without those that replies complete."""
        return [task for task in await self._store.open_tasks() if not self._reply_broker.owns(task.id)]

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
            pace=self._pace,
            spool=self._settings.paths.agent(record.id) / "spool",
            inbox=self._settings.paths.inbox(record.id),
            kept=self._settings.paths.kept_files,
            settings=self._roster,
            ends=self.tasks,
            doors=self.doors,
        )
        self._agents[record.id] = agent
        self.directory.admit(record)
        return agent

    async def _forget(self, record: AgentRecord) -> None:
        """Removes everything of the agent except its tasks."""
        if (agent := self._agents.get(record.id)) is not None:
            if agent.state in LIVE_STATES:
                with contextlib.suppress(StoreError):  # its program has ended in any case
                    await agent.stop()
            agent.hold.leave()
            await agent.close()
        if self._server is not None and record.port is not None:
            await self._server.close_agent_port(record.port)
        with contextlib.suppress(SynapsedError):
            await self._store.delete_agent(record.id, [NewEvent(record.id, StateChanged(state=REMOVED))])
        await asyncio.to_thread(shutil.rmtree, self._settings.paths.agent(record.id), ignore_errors=True)
        self._agents.pop(record.id, None)
        self.directory.dismiss(record)
        self._roster.leave(record)

    async def _announce(self, port: int | None) -> None:
        if self._server is not None and port is not None:
            for sock in self._roster.ports.take(port):
                await self._server.open_agent_port(announceable(sock))

    def _sweep_again(self) -> None:
        self._sweeper = self._timers.call_later(SWEEP_S, self._sweep_again)
        for sweep in (*(agent.sweep for agent in self._agents.values()), self._reply_broker.sweep, self._memory.look):
            try:
                sweep()
            except Exception:  # of one; those after it have their own work
                log.exception("a sweep failed")

    def _tidy_again(self) -> None:
        self._background.spawn(each(Agent.tidy, self._agents.values()))
        self._tidier = self._timers.call_later(message_files.TIDY_EVERY_S, self._tidy_again)
