"""One agent as a whole: its actor, its process, its turns, and the other objects of this package.

The agent only connects them: facts from the link go to the program (exit, session), to the turn queue and into the
view; a change of activity and its effect on the present task are one commit. Features of parts (`hold`, `work`, the
rules) are reached through doors: adapters that look the part up for each call, and do nothing without it.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from synapsed.agents import conversations, message_files
from synapsed.agents.actor import Actor, Fact
from synapsed.agents.agent_process import AgentProcess
from synapsed.agents.agent_prompts import AgentPrompts
from synapsed.agents.agent_screen import AgentScreen
from synapsed.agents.alerts import Alerts, HeldMessages, SlowStart, UnkeptRules
from synapsed.agents.attention_changes import Attention, AttentionChange
from synapsed.agents.briefing import Briefing
from synapsed.agents.last_screen import RESTS, Resting, rest_screen
from synapsed.agents.parking import Parking
from synapsed.agents.part_doors import HoldDoor, PartDoors, RuleDoor, WorkDoor
from synapsed.agents.part_interfaces import Settings, TaskEnds
from synapsed.agents.restart_policy import RestartState
from synapsed.agents.stop_requests import StopRequests, Unanswered
from synapsed.agents.turns import AgentTurns
from synapsed.aio import Pace, Timers
from synapsed.clock import Clock
from synapsed.config.config import AgentConfig
from synapsed.errors import NotReady, StoreError
from synapsed.interfaces import PERSON, AgentLink, Attachment, NewEvent, ScreenWatch, Store
from synapsed.keepers.launch_plan import LaunchPlanner, LinkFactory
from synapsed.model.agent import Activity, ProcessState
from synapsed.model.events import ActivityChanged, EventData, Origin, ScreenRested
from synapsed.model.external import unknown
from synapsed.model.facts import ChannelFact, PermissionAsked, PromptAccepted, ToolBegan, ToolOver
from synapsed.model.link import (
    LinkAlert,
    LinkExited,
    LinkObserved,
    LinkRefused,
    LinkSession,
    LinkTold,
    LinkTurnAccepted,
)
from synapsed.model.records import AgentRecord, ReplyRecord
from synapsed.model.task import Artifact, Message, Prompt, Task
from synapsed.profiles.profile import Profile
from synapsed.tasks.transitions import Commit, describe_exit


class Agent:
    """Connects the pieces of one agent. Call `turns.restore`, then `start_shell`."""

    def __init__(
        self,
        record: AgentRecord,
        profile: Profile,
        *,
        planner: LaunchPlanner,
        factory: LinkFactory,
        restart: RestartState,
        store: Store,
        clock: Clock,
        timers: Timers,
        pace: Pace,
        spool: Path,
        inbox: Path,
        kept: Path,
        settings: Settings,
        ends: TaskEnds,
        doors: PartDoors,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._spool = spool
        self._inbox = inbox
        self._actor = Actor(record.name, agent_id=record.id, timers=timers, pace=pace, handle=self._handle)
        self.process = AgentProcess(
            record,
            profile,
            owner=self,
            planner=planner,
            factory=factory,
            restart=restart,
            store=store,
            clock=clock,
            actor=self._actor,
        )
        self.screen = AgentScreen(self.process, store=store, factory=factory, spool=spool)
        self.attention = Attention(record.id, plan=profile.prompts.plan)
        self._resting = Resting()
        self.hold = HoldDoor(doors, self, self._actor)
        self.turns = AgentTurns(
            self.process,
            profile,
            store=store,
            clock=clock,
            actor=self._actor,
            inbox=inbox,
            kept=kept,
            hold=self.hold,
            attention=self.attention,
            ends=ends,
            doors=doors,
        )
        self.parking = Parking(self.process, self.turns, self.hold, self, clock=clock, actor=self._actor)
        self.stops = StopRequests(
            self.process, self.turns, self.hold, self.parking, self, store=store, actor=self._actor
        )
        self._unanswered = Unanswered(self.turns, self, clock=clock, actor=self._actor)
        self._held, self._slow_start, self._unkept = HeldMessages(), SlowStart(), UnkeptRules()
        self._briefing = Briefing(self.process, self.turns, folder=spool.parent, planner=planner, clock=clock)
        since, current = clock.monotonic(), lambda: self.turns.current
        self.work = WorkDoor(record.id, doors, store=store, actor=self._actor, since=since, current=current)
        self._rules = RuleDoor(doors, self, lambda: self.profile)
        self.prompts = AgentPrompts(
            self.process, self.turns, self, rules=self._rules, hold=self.hold, clock=clock, actor=self._actor
        )
        self.alerts = Alerts()
        self.stopped = False
        """True if this daemon was asked to stop it: then only a request starts it again."""
        self.to_be_started = False
        """True while the daemon starts and has not yet started this agent, which ran before or is configured to run."""
        self._seen: LinkObserved | None = None
        self.since = record.changed_at or record.created_at
        """Time of the last change of the state or the activity, in seconds since the epoch."""
        self.exit: LinkExited | None = None
        """The last end of its program."""
        self._adoption: asyncio.Future[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        """A stop that the database has refused, until it is recorded."""
        self._polling: asyncio.Task[None] | None = None

    # --- properties that can be read at any time ---

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def record(self) -> AgentRecord:
        return self.process.record

    @property
    def profile(self) -> Profile:
        return self.process.profile

    @property
    def config(self) -> AgentConfig:
        return self._settings.config_of(self.record)

    @property
    def takes_agents(self) -> bool:
        """Returns whether other agents' messages may be typed here: a model reads them, or a person allowed it."""
        return self.profile.model or self.record.accept_agents

    @property
    def state(self) -> ProcessState:
        return self.process.state

    @property
    def comes_up(self) -> bool:
        """Returns whether no program of it runs, but one will without a request."""
        return not self.stopped and (self.to_be_started or self.process.returns)

    @property
    def seen(self) -> LinkObserved | None:
        """Returns the last observation of a running program."""
        return self._seen if self.state is ProcessState.RUNNING else None

    @property
    def activity(self) -> Activity:
        """Returns the program's activity, UNKNOWN if it has not been looked at; `views.activity_of` says more."""
        return self._seen.activity if self._seen is not None else Activity.UNKNOWN

    # --- the actor ---

    def start_shell(self) -> None:
        self._spool.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # its log goes there
        self._actor.start()

    async def adopt(self) -> None:
        """Continues from the last daemon's state; returns when it is known if the program lives. Done once, first."""
        if self._adoption is None:
            self._adoption = asyncio.ensure_future(self._adopt())
        await asyncio.shield(self._adoption)

    async def adopted(self) -> None:
        """Does the same as `adopt`, for a request: raises StoreError if that cannot be recorded now."""
        if self._adoption is None or not self._adoption.done():
            await self._actor.wait(self.adopt())

    def sweep(self) -> None:
        """Checks for work that is due even if the event that announces it was missed.

        - a waiting task can be delivered; the reports of a turn have come
        - the agent is to be parked; its program comes up
        - messages wait behind a person's draft; the program's rules have no effect
        """
        self.parking.sweep()
        held, now = self._seen.held if self._seen is not None else None, self._clock.monotonic()
        starting = self.seen.evidence if self.seen is not None and self.activity is Activity.STARTING else None
        unkept = self._rules.without_effect if self.process.link is not None else None
        found = self._held.look(held, self.turns.untyped, now), self._slow_start.look(starting, now)
        for alert in (*found, self._unkept.look(unkept)):
            if alert is not None:
                self._actor.post(self._alert, alert)
        if (link := self.process.link) is None:
            return
        if self.turns.current is not None:
            self._unanswered.sweep()
            if self._polling is None or self._polling.done():
                self._polling = self._actor.spawn(link.poke())
        elif self.turns.queue or self.record.restart_pending:
            self._actor.post(self.recheck)

    async def tidy(self) -> None:
        """Removes old files of finished tasks from the inbox."""
        try:
            tasks, now = self.turns.open_tasks, self._clock.settled()
            if removed := await asyncio.to_thread(message_files.tidy, self._inbox, tasks, now=now):
                self._actor.log.info("old files removed from the inbox", count=removed)
        except OSError as error:
            self._actor.log.warning("the inbox cannot be tidied", error=str(error))

    async def believed(self) -> None:
        """Returns when this object has applied all changes that are already in the event log, which has them a moment
        earlier: the actor has then finished all earlier work."""
        with contextlib.suppress(NotReady):  # the actor has ended, with all that it had to do
            await self._actor.report(asyncio.sleep, 0)

    async def close(self) -> None:
        """Closes the connection to the program, which goes on running."""
        self.process.leave_unreached()
        await self._actor.close()
        await self.process.let_go()

    # --- the program ---

    async def start(self) -> None:
        """Returns when the program runs; raises AgentError when it cannot be launched."""
        self.stopped = False
        await self.adopted()
        await self._actor.ask(self.process.start)

    async def stop(self) -> None:
        """Returns when the program and all it started are gone. Raises StoreError if that cannot be recorded: a running
        program has ended all the same, and is reported as stopped when there is space."""
        self.stopped = True
        try:
            await self.adopted()
            await self._actor.ask(self.process.stop)
        except StoreError as error:
            if self.process.last_link is None:
                raise
            if self._stopping is None:  # first: a program that ends by itself would be restarted
                self._stopping = self._actor.spawn(self._write_stop(), at_once=True)
            await self.process.strike()
            raise StoreError(
                f"the program of {self.record.name} has ended, but this state cannot be saved: {error.message}; "
                "until it can, a new daemon would start the agent again",
                **error.details,
            ) from error

    async def _write_stop(self) -> None:
        try:
            await self._actor.report(self._actor.persist, self.process.stop)
        finally:
            self._stopping = None

    async def suspend(self) -> None:
        """Stops like `stop`, but the next daemon starts it again: nothing needs to be recorded for that."""
        try:
            await self.adopted()
            await self._actor.ask(self.process.suspend)
        except StoreError as error:
            self._actor.log.warning("it ends, and that is not written down", error=error.message)
            await self.process.strike()

    async def park(self, why: str) -> None:
        await self.adopted()
        await self._actor.ask(self.parking.park, why)

    async def restart(self, *, when_idle: bool = False) -> None:
        """Restarts the program and returns when it runs again; `when_idle`: when the request for later is durable."""
        await self.adopted()
        if when_idle and self.parking.away:
            return  # its next program is a new one anyway
        if when_idle and self.state in (ProcessState.STARTING, ProcessState.RUNNING):
            await self._actor.call(self._restart_later)
            return
        self.stopped = False
        await self._actor.call(self.hold.lift, "restarted")
        await self._actor.ask(self.process.stop, again=True)

    async def amend(self, **fields: Any) -> None:
        """Changes the record durably, for the next start."""
        await self.adopted()
        await self._actor.call(self.process.amend, **fields)

    async def signal(self, signum: int) -> None:
        """Sends a signal without waiting for the database."""
        with contextlib.suppress(StoreError):
            await self.adopted()
        await asyncio.wait([self.process.signal(signum)])

    async def cancel_waiting(self) -> None:
        await self._actor.call(self.turns.cancel_waiting)

    # --- tasks ---

    async def send(self, task: Task, reply: ReplyRecord | None = None) -> Task:
        """Accepts a task; `reply` becomes durable with it."""
        task = await self._actor.call(self.turns.accept, task, reply)
        if self.turns.queue:  # else its turn has begun
            self.parking.wake()
        return task

    def enter(self, task: Task) -> None:
        """Puts a durable task into its mailbox; if the actor cannot take it, the next daemon finds it."""
        self._actor.post(self._enter, task)

    async def _enter(self, task: Task) -> None:
        await self.turns.enter(task)
        self.parking.wake()

    async def hand_over(self, task_id: str, artifact: Artifact, *, append: bool, last_chunk: bool) -> Task:
        """Adds an artifact to a task. Raises NotWaiting if the program does not work on the task."""
        return await self._actor.call(self.turns.hand_over, task_id, artifact, append=append, last_chunk=last_chunk)

    async def provide_input(
        self, task_id: str, answer: Message, text: str, prompt_id: str | None, origin: Origin = PERSON
    ) -> Task:
        """Answers a task; `text` is typed. Raises NotWaiting, PromptChanged, NotTaken, InvalidChoice."""
        await self.adopted()
        task = await self.prompts.provide(self.process.require_link(), task_id, answer, text, prompt_id, origin)
        return task if task is not None else await self._stored(task_id)

    async def answer(self, text: str, prompt_id: str | None, origin: Origin = PERSON) -> None:
        """Answers the prompt on the screen, in a task or outside one."""
        await self.adopted()
        link = self.process.link if self.parking.away else self.process.require_link()
        await self.prompts.answer(link, text, prompt_id, origin)

    async def press(self, keys: Sequence[str]) -> None:
        await self.adopted()
        await self.process.require_link().terminal.press(keys)

    async def decide(self, event: str, told: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the rules' answer to the program's question; None leaves it to a person."""
        task = self.turns.current
        return await self._rules.decide(event, told, task.id if task is not None else None)

    def denied(self, tool: str, texts: Sequence[str], reason: str) -> None:
        self._actor.post(self.work.do, lambda work: work.denied(tool, texts, reason))

    # --- its terminal and side channels ---

    async def attach(self, *, cols: int, rows: int, read_only: bool, keep_size: bool = False) -> Attachment:
        await self.adopted()
        with self.parking.attaching():
            comes = self.state in (ProcessState.STARTING, ProcessState.RUNNING) and self.process.link is None
            if self.parking.away or comes:
                await self.start()  # or wait until its link is open
            terminal = self.process.require_link().terminal
            return await terminal.attach(cols=cols, rows=rows, read_only=read_only, keep_size=keep_size)

    def watch(self) -> ScreenWatch:
        """Implements `Control.watch`. Raises NotReady if no program runs."""
        return self.process.require_link().terminal.watch()

    async def poke(self) -> None:
        if (link := self.process.link) is not None:
            await link.poke()

    # --- ProgramOwner ---

    def works_on_message(self) -> bool:
        """Implements `ProgramOwner`: True if a turn runs that a message began, and that is not being stopped."""
        return self.turns.works_on_message

    async def settle(self, exited: LinkExited, *, interrupted: bool) -> Commit | None:
        """Implements `ProgramOwner`: returns the change of the running task because its program has ended."""
        if (link := self.process.last_link) is not None and not self.record.parking:
            await self.screen.keep(link)
        self.exit = exited
        return self.turns.settle(exited, code="INTERRUPTED" if interrupted else "AGENT_EXITED")

    async def leaves(self, link: AgentLink) -> None:
        """Implements `ProgramOwner`: saves the screen of a program that is about to be parked."""
        await self.screen.keep(link)

    def settled(self, commit: Commit) -> None:
        """Implements `ProgramOwner`: applies the change that `settle` returned, once it is stored."""
        self.turns.believe(commit)

    def over(self, state: ProcessState) -> tuple[NewEvent, ...]:
        """Implements `ProgramOwner`: returns the events that close the questions and alerts of an ended program."""
        return () if state is ProcessState.RUNNING else self.attention.over().events

    async def opened(self, link: AgentLink) -> None:
        """Implements `ProgramOwner`: takes the first observation of a new or adopted program, and its next task."""
        self._seen = await link.observe()
        await self._tell_of(self.attention.renewed())
        await self._tell_of_conversation()
        self.hold.watch()
        await self.process.saw(self._seen.activity)
        await self.turns.resume(link)
        await self._briefing.give()
        await self.recheck()

    def changed(self) -> None:
        """Implements `ProgramOwner`: forgets the facts about a program that does not run any more."""
        self.since = self._clock.wall()
        if self.state is not ProcessState.RUNNING:
            self._seen = None
            self.alerts.clear()
            self._slow_start = SlowStart()  # for the next launch
            if self.state is not ProcessState.STOPPING:
                how = describe_exit(self.exit) if self.exit is not None else self.state.value
                self._actor.post(self.work.do, lambda work: work.program_over(how))
            self.attention.believe(self.attention.over())
            self.turns.interruption.program_gone()
        self.parking.sweep()

    async def _restart_later(self) -> None:
        await self.process.restart_later()
        await self.recheck()

    async def recheck(self) -> None:
        """Restarts an idle agent if that was requested, and otherwise takes the next task."""
        link = self.process.link
        if not self.record.restart_pending:
            await self.turns.pump()
        elif link is not None and self.turns.current is None and (seen := await link.observe()).can_receive:
            if seen.background:
                await self.turns.pump()  # the background may go on for ever: no message waits for it
                return
            try:
                await self.process.stop(again=True)
            except NotReady as error:  # something that it needs has gone since the request
                await self.process.restart_pends(False)
                await self._alert(LinkAlert("RESTART_REFUSED", error.message, "happened"))
                await self.turns.pump()

    async def _adopt(self) -> None:
        try:
            self.attention.restore(await self._store.events.open_attention(self.id))
            await self.work.restore()
        except StoreError as error:  # an agent without its open items is better than none
            self._actor.log.warning("what was open of it is not known: it may be told again", error=error.message)
        await (await self._actor.report(self.process.adopt))
        self.parking.sweep()

    # --- facts ---

    async def _handle(self, fact: Fact) -> None:
        if not self.process.owns(fact.link):
            return
        await self._take(fact)
        self.parking.note()

    async def _take(self, fact: Fact) -> None:
        match fact.event:
            case LinkObserved() as seen:
                await self._observed(seen)
            case LinkTold(reported):
                await self._handle_channel_fact(reported, fact.link)
            case LinkRefused(asked):
                await self.work.do(lambda work: work.refused(asked))
            case LinkAlert() as alert:
                await self._alert(alert)
            case LinkExited() as exited:
                await self.process.exited(exited)
            case LinkSession(conversation, at_ns):
                await self.process.session(conversation, at_ns)
                await self._tell_of_conversation()
            case event:
                if isinstance(event, LinkTurnAccepted):
                    await self._saw(Activity.BUSY)
                await self.work.do(lambda work: work.turn(event))
                await self.turns.handle(event, fact.link)

    async def _handle_channel_fact(self, fact: ChannelFact, link: AgentLink) -> None:
        if isinstance(fact, PermissionAsked) and fact.request is not None and not fact.again:
            self._actor.spawn(self._reply(link, fact))
        if isinstance(fact, PromptAccepted):
            await self.process.prompted(fact.session, context_id=self._context_id)
        await self.work.do(lambda work: work.told(fact))
        link.taken(fact)
        asks = self.prompt is not None and self.prompt.type == "permission"
        if asks and isinstance(fact, ToolBegan | ToolOver | PermissionAsked):
            await self.observe_again()  # the dialog may be about that call

    async def _alert(self, alert: LinkAlert) -> None:
        """Reports an alert. If the disk is full and it cannot be recorded, it is shown all the same."""
        if alert.code == "KEEPER_SILENT":
            self.process.keeper_silent()
        event, change = self.alerts.told(alert), self.attention.alerted(alert)
        try:
            await self._store.commit(events=[NewEvent(self.id, event), *change.events])
            self.attention.believe(change)
        except StoreError as error:
            self._actor.log.warning("an alert could not be recorded", alert=event.message, error=error.message)

    async def _reply(self, link: AgentLink, asked: PermissionAsked) -> None:
        answer = await self.decide(asked.event, asked.told)
        if answer is not None and not await link.reply(asked, answer):
            self._actor.log.warning("a decision was not taken: the person is asked", tool=asked.tool)
        elif answer is None:
            self._actor.post(self.observe_again)  # the prompt that waited for it goes to the person

    async def observe_again(self) -> None:
        if (link := self.process.link) is not None:
            await self._observed(await link.observe())

    async def keep_hold(self, kept: dict[str, Any] | None, *told: EventData) -> None:
        await self.process.amend(*told, limit=kept)

    async def _observed(self, seen: LinkObserved) -> None:
        if not seen.whole:
            seen = replace(seen, prompt=self.work.about(seen.prompt))
        if self.prompts.sees_to(seen.prompt):
            return
        before, self._seen = self._seen, seen
        if moved := before is None or before.activity is not seen.activity or before.prompt != seen.prompt:
            self.since = self._clock.wall()
        moved = moved or before is None or len(before.background) != len(seen.background)
        commit = self.turns.observed(seen, again=before is not None and before.asking != seen.asking)
        change = self.attention.observed(seen, self.turns.current, answering=self.turns.answers.under_way)
        if moved or commit is not None or change.events:
            event = ActivityChanged(
                activity=seen.activity, evidence=seen.evidence, prompt=seen.prompt, background=len(seen.background)
            )
            also: list[EventData] = []
            if moved:
                also = [event, *await self._rested(seen.activity)]
            events = [*(NewEvent(self.id, data) for data in also), *(commit.events if commit else ()), *change.events]
            await self._actor.persist(self._store.commit, events=events, tasks=[commit.task] if commit else ())
            if commit is not None:
                self.turns.believe(commit)
        self.attention.believe(change)
        await self._saw(seen.activity)
        await self.recheck()

    async def _rested(self, activity: Activity) -> list[ScreenRested]:
        """Returns the event for the screen at rest; empty if the screen is not available in time."""
        if activity not in RESTS or (link := self.process.link) is None:
            return []
        screen = await rest_screen(link)
        return [] if screen is None else self._resting.screen(screen)

    async def _tell_of(self, change: AttentionChange) -> None:
        if change.events:
            await self._actor.persist(self._store.commit, events=change.events)
        self.attention.believe(change)

    async def _saw(self, activity: Activity) -> None:
        if activity is Activity.BUSY:
            await self.work.do(lambda work: work.works())
        await self.process.saw(activity, context_id=self._context_id)
        await self._tell_of_conversation()

    @property
    def _context_id(self) -> str | None:
        return self.turns.current.context_id if self.turns.current is not None else None

    async def _tell_of_conversation(self) -> None:
        """Opens the inbox item about a lost conversation, or closes it once something is said in the new one."""
        lost = conversations.lost(self.record, self.profile)
        alert = LinkAlert(conversations.LOST, lost or "", "begins" if lost else "over")
        await self._tell_of(self.attention.alerted(alert))

    async def _stored(self, task_id: str) -> Task:
        task = await self._store.task(task_id)
        assert task is not None, "a task that was accepted is in the store"
        return task

    @property
    def prompt(self) -> Prompt | None:
        """Returns the prompt that the program shows now."""
        return self.seen.prompt if self.seen is not None else None


def agent_of(agents: Mapping[str, Agent], agent_id: str) -> Agent:
    """Returns the agent with this id. Raises UnknownAgent."""
    if (agent := agents.get(agent_id)) is None:
        raise unknown(agent_id)
    return agent
