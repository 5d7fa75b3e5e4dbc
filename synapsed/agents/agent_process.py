"""Starts, watches, ends and restarts the program of one agent, by the lifecycle table and the restart policy.

Everything here runs in the agent's actor; the operations (launch, adopt, stop) come back to it with a call. A change of
state is one commit of the agent's record and the events that report it, and takes effect once it is durable; so the
next daemon after a kill finds the state that was reported, and the restart policy is applied once to each exit: the
exit and the decision about it are the same commit.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, Literal

from synapsed.agents import conversations
from synapsed.agents.actor import Actor
from synapsed.agents.conversations import LaunchConversation
from synapsed.agents.exit_report import BY_HAND_S, Parting, doubted, parting, told_of
from synapsed.agents.last_screen import last_screen
from synapsed.agents.lifecycle import LIVE_STATES, TABLE, ProcessEvent, after, known_state
from synapsed.agents.part_interfaces import ProgramOwner
from synapsed.agents.process_operations import ProcessOperations
from synapsed.agents.restart_policy import Decision, Rest, RestartState, Retry
from synapsed.aio import Timer, Waiters
from synapsed.clock import Clock
from synapsed.errors import NotReady, SynapsedError
from synapsed.interfaces import AgentLink, NewEvent, Store
from synapsed.keepers.launch_plan import LaunchPlanner, LinkFactory, ProgramEnd
from synapsed.model.agent import Activity, ProcessState
from synapsed.model.events import AgentAlert, EventData, StateChanged
from synapsed.model.link import LinkExited
from synapsed.model.records import AgentRecord, LaunchRecord
from synapsed.model.task import Task
from synapsed.profiles.profile import Profile
from synapsed.tasks.transitions import Commit, describe_exit


class AgentProcess:
    def __init__(
        self,
        record: AgentRecord,
        profile: Profile,
        *,
        owner: ProgramOwner,
        planner: LaunchPlanner,
        factory: LinkFactory,
        restart: RestartState,
        store: Store,
        clock: Clock,
        actor: Actor,
    ) -> None:
        self.record = record
        self._every = profile
        self.profile = profile.at(record.launch.version if record.launch is not None else None)
        """The profile for the version that runs."""
        self._owner = owner
        self._restart = restart
        self._store = store
        self._clock = clock
        self._actor = actor
        self._operations = ProcessOperations(self, owner, profile, planner=planner, factory=factory, actor=actor)
        self.state = known_state(record.state)
        """The present state; `_move` alone changes it, by the lifecycle's table."""
        self.last_link: AgentLink | None = None
        """Link of the present launch; its last screen is readable after the end, until the exit is recorded."""
        self._open = False
        self._conversation = LaunchConversation()
        self._launched_at = clock.monotonic()
        self._timer: Timer | None = None
        self._start_again = False
        self._taken_up = False
        """True once `adopt` was called: until then the state is that of the last daemon."""
        self._suspending = False
        """True while the daemon ends, and the program with it: the program is not started again."""
        self._parked_why = "it was idle"
        self._waiters = Waiters()
        self.reason = record.failure or ""
        """Explanation of the process's state, for people."""

    @property
    def wanted(self) -> bool:
        """Returns whether the program is stopped but should run, because it ended with the last daemon."""
        return self.state is ProcessState.STOPPED and self.record.desired == "running"

    @property
    def returns(self) -> bool:
        """Returns True if the program ends, or has ended, for a restart or together with a daemon, so that this daemon
        or the next one starts it again."""
        ends = self._suspending or self.state in (ProcessState.STOPPING, ProcessState.STOPPED)
        return ends and self.record.desired == "running"

    @property
    def link(self) -> AgentLink | None:
        return self.last_link if self._open and self.state is ProcessState.RUNNING else None

    def require_link(self) -> AgentLink:
        """Returns the open link of a running program. Raises NotReady."""
        if (link := self.link) is None:
            raise self.not_running()
        return link

    def not_running(self) -> NotReady:
        """Makes the error for callers that need a running program."""
        name, state = self.record.name, self.state.value
        if self.state is ProcessState.RUNNING:  # its link is about to open
            return NotReady(f"{name} cannot be reached just now; try again", agent=name, state=state)
        return NotReady(f"{name} does not run (it is {state})", agent=name, state=state)

    @property
    def pid(self) -> int | None:
        """Returns the program's pid while it runs."""
        launch = self.record.launch
        return launch.pid if launch is not None and self.state in LIVE_STATES else None

    def owns(self, link: AgentLink) -> bool:
        """Returns whether facts from `link` are about the program that runs now."""
        return link is self.last_link and self.state is ProcessState.RUNNING

    async def saw(self, activity: Activity, *, context_id: str | None = None) -> None:
        """Notes the observed activity of the program; `context_id` is that of the task it works on."""
        await self._change(self._conversation.saw(self.record, activity, context_id))

    # --- requests; a future that one returns is done when the request is fulfilled ---

    async def start(self) -> asyncio.Future[None]:
        """Starts the program, unless it runs. The future raises AgentError if the launch fails."""
        state = self.state
        if self._suspending:
            raise NotReady("the daemon is shutting down")
        if state is ProcessState.RUNNING and self._open:
            return _completed()
        if state is ProcessState.STOPPING:
            if self.record.desired != "running":
                await self.amend(desired="running")
            self._start_again = True
        elif state not in LIVE_STATES:
            self._restart.forgive()
            await self._launch(ProcessEvent.START)
        return self._waiters.add()

    async def renew(self, context_id: str) -> bool:
        """Starts the program again in a new conversation. The old conversation and the program end in one commit.
        Returns False if there is no conversation to leave. Raises NotReady if the program could not be started
        again."""
        if not self.record.said:
            return False
        self._operations.check()
        self._start_again = True
        fields = conversations.asked_anew(context_id).fields
        await self._move(ProcessEvent.STOP, reason="a new conversation was asked for", desired="running", **fields)
        self._end()
        return True

    async def park(self, why: str) -> asyncio.Future[None]:
        """Ends the program until `start`, after which it continues its conversation. The caller has checked that the
        running program is idle. Raises NotReady if the program could not be started again."""
        self._operations.check()
        self._parked_why, self._start_again = why, False
        await self._move(ProcessEvent.STOP, reason=f"being parked: {why}", parking=True)
        self._end()
        return self._waiters.add()

    def parked(self) -> asyncio.Future[None]:
        """Returns a future that is done when the program is parked."""
        return _completed() if self.state is ProcessState.PARKED else self._waiters.add()

    async def wake(self) -> None:
        """Starts the program if it is parked. Does nothing before `adopt`, which would take the launch for one by the
        last daemon; and nothing while this daemon ends, because the next one starts the program."""
        if self.state is ProcessState.PARKED and self._taken_up and not self._suspending:
            await self._actor.persist(self.start)

    async def suspend(self) -> asyncio.Future[None]:
        """Ends the program and all it started; the next daemon starts it again, but a parked one stays parked."""
        self._suspending = True
        if self.state in (ProcessState.STOPPED, ProcessState.EXITED, ProcessState.PARKED):
            return _completed()
        if self.record.parking:
            self._start_again = False
            return self._waiters.add()
        return await self.stop(desired=self.record.desired)

    async def stop(
        self, *, again: bool = False, desired: Literal["running", "stopped"] | None = None
    ) -> asyncio.Future[None]:
        """Ends the program and all it started; `again` starts it again afterwards. `desired` is the state that the next
        daemon restores: by default running with `again`, and stopped otherwise. Raises NotReady if a running program
        could not be started again."""
        if again and self.state in (ProcessState.STARTING, ProcessState.RUNNING):
            self._operations.check()
        desired = desired or ("running" if again else "stopped")
        match self.state:
            case ProcessState.STOPPED:
                if again:
                    return await self.start()
                return _completed()
            case ProcessState.STARTING:
                await self._move(ProcessEvent.STOP, reason="to be stopped once started", desired=desired)
            case ProcessState.RUNNING:
                await self._move(ProcessEvent.STOP, reason="being stopped", desired=desired)
                if self._open:
                    self._end()
                elif self.last_link is not None:
                    self.last_link.give_up()
            case ProcessState.STOPPING:
                if self.record.parking or self.record.desired != desired:
                    await self.amend(parking=False, desired=desired)
            case _:
                await self._move(ProcessEvent.STOP, reason="stopped", desired=desired, parking=False)
                self._cancel_timer()
                return await self.start() if again else _completed()
        self._start_again = again
        return self._waiters.add()

    async def restart_later(self) -> None:
        """Requests a restart when the agent is idle; durable when this returns. Raises NotReady as `stop` does."""
        self._operations.check()
        await self.restart_pends(True)

    async def restart_pends(self, pending: bool) -> None:
        record = self.record.model_copy(update={"restart_pending": pending})
        await self._store.commit(agents=[record])
        self.record = record

    async def strike(self) -> None:
        """Ends the program and all it started, even if the database refuses to write. The consequences are decided when
        the exit can be recorded."""
        if (link := self.last_link) is None or self.state not in LIVE_STATES:
            return
        if not self._open:
            link.give_up()
            return
        with contextlib.suppress(SynapsedError):  # its leftovers are swept with its exit
            await link.stop(self.profile.exit.grace_ms / 1000)

    def signal(self, signum: int) -> asyncio.Task[None]:
        """Sends a signal to the program; the task is done when it is sent. Raises NotReady while no program runs."""
        if self.last_link is not None and self.state is ProcessState.RUNNING and not self._open:
            self.last_link.give_up()  # its keeper has not answered yet: it is ended with all it holds
            return self._actor.spawn(asyncio.sleep(0))
        link = self.require_link()

        async def signal() -> None:
            with contextlib.suppress(SynapsedError):  # it has ended meanwhile: its exit is reported
                await link.signal(signum)

        return self._actor.spawn(signal())

    async def adopt(self) -> asyncio.Future[None]:
        """Continues from the state of the last daemon. Called once, when the actor runs; nothing is launched before."""
        self._taken_up = True
        if self.state in LIVE_STATES:
            self._operations.adopt()
            return self._waiters.add()
        if self.record.launch is not None:
            self._operations.dismiss()
        if self.state is ProcessState.BACKOFF:
            self._schedule(self._restart.first_delay())
        elif self.state is ProcessState.FAILED:
            self._schedule(self._restart.slow_retry())
        return _completed()

    def leave_unreached(self) -> None:
        """Gives up on a keeper that was not reached yet because it stands still; called when the daemon ends."""
        self._operations.leaving = True
        if self.last_link is not None and not self._open:
            self.last_link.leave_unreached()

    async def let_go(self) -> None:
        """Closes the link; the program goes on running."""
        self._cancel_timer()
        if self.last_link is not None:
            self._open = False
            await self.last_link.close()

    # --- facts ---

    async def exited(self, exited: LinkExited) -> None:
        """Handles the end of the running program by itself."""
        if self.state is ProcessState.RUNNING:
            await self._exit(exited)

    def keeper_silent(self) -> None:
        """Releases the callers that wait for a link that may never open: its keeper does not answer."""
        if not self._open and self.state is ProcessState.RUNNING:
            self._waiters.wake()

    async def session(self, conversation: str, at_ns: int = 0) -> None:
        """Notes the id of the conversation that the program was in at `at_ns`. A report that is older than the one on
        record is ignored: a new daemon gets earlier reports again."""
        launch = self.record.launch
        if launch is not None and 0 < at_ns < launch.session_ns:
            return
        change = self._conversation.told(self.record, conversation)
        if launch is not None and at_ns > launch.session_ns:
            change.fields["launch"] = launch.model_copy(update={"session_ns": at_ns})
        await self._change(change)
        await self._change(self._conversation.said(self.record))

    async def prompted(self, conversation: str | None, *, context_id: str | None) -> None:
        """Notes that the program took a prompt in that conversation."""
        await self._change(self._conversation.prompted(self.record, conversation, context_id))

    async def amend(
        self, *told: EventData, tasks: Sequence[Task] = (), of_tasks: Sequence[NewEvent] = (), **fields: Any
    ) -> None:
        """Changes the record's `fields` durably, and reports the change; together with `tasks` and their events."""
        record = self.record.model_copy(update=fields)
        rows = [*(NewEvent(record.id, data) for data in told), *of_tasks]
        await self._actor.persist(self._store.commit, events=rows, agents=[record], tasks=tasks)
        self.record = record

    async def _change(self, change: conversations.ConversationChange) -> None:
        """Makes a change of the conversation durable, and reports it."""
        if not (change.fields or change.alerts):
            return
        await self.amend(*change.alerts, **change.fields)
        self._log_alerts(change)
        self._owner.changed()

    def _log_alerts(self, change: conversations.ConversationChange) -> None:
        for alert in change.alerts:
            self._actor.log.warning("conversation lost", reason=alert.message, **alert.details)

    # --- operations and what follows them ---

    async def _launch(self, event: ProcessEvent) -> None:
        restarts = self.record.restarts + (event is ProcessEvent.DUE)
        changes: dict[str, Any] = {"launch": None, "restarts": restarts, "failure": None, "restart_pending": False}
        await self._move(event, reason="starting", desired="running", parking=False, **changes)
        self._cancel_timer()
        self._operations.launch()

    async def told_version(self, of: LaunchRecord, version: str) -> None:
        if (launch := self.record.launch) is not None and launch.launch_id == of.launch_id:
            await self.amend(launch=launch.model_copy(update={"version": version}))

    async def version_known(self, patience: float) -> None:
        await self._operations.version_known(patience)

    def given(self, conversation: str | None, *, chosen: bool) -> None:
        """Notes the conversation that the program is started in, if that is known."""
        self._conversation.given(conversation, chosen=chosen)

    async def launched(self, link: AgentLink, launch: LaunchRecord, event: ProcessEvent) -> None:
        """Notes that the program runs; its link is not open yet."""
        self.last_link = link
        self._open = False
        adopted = event is ProcessEvent.ADOPTED
        change = conversations.ConversationChange()
        if adopted:
            self._conversation.adopted(self.record)
        else:
            change = self._conversation.launched(self.record, self.profile, resumed=launch.resumed)
        uptime = max(0.0, self._clock.wall() - launch.started_at) if adopted else 0.0
        self._launched_at = self._clock.monotonic() - uptime
        reason = "adopted" if adopted else "started"
        await self._actor.persist(
            self._move, event, reason=reason, launch=launch, alerts=change.alerts, **change.fields
        )
        self._log_alerts(change)

    async def opened(self, link: AgentLink) -> None:
        if link is not self.last_link:
            return
        self._open = True
        if self.state is ProcessState.STOPPING:
            self._end()
        elif self.state is ProcessState.RUNNING:
            try:
                await self._owner.opened(link)
            finally:  # it runs, even if the database refused something that is done first
                self._owner.changed()
                self._waiters.wake()

    async def open_failed(self, link: AgentLink, lost: LinkExited) -> None:
        """Notes that the link could not be opened; nothing is left of the program."""
        if link is not self.last_link:
            return
        if self.state is ProcessState.STOPPING:
            await self.gone(lost)
        elif self.state is ProcessState.RUNNING:
            await self._exit(lost)

    async def launch_failed(self, error: SynapsedError) -> None:
        if self.state is ProcessState.STOPPING:
            await self.gone(LinkExited(None, error.message))
            return
        waiters = self._waiters.take()
        failed = LinkExited(None, error.message)
        await self._decide(ProcessEvent.LAUNCH_FAILED, failed, Parting(how=error.message))
        waiters.wake(error)

    async def found_dead(self, ended: ProgramEnd) -> None:
        """Notes that the program is gone, and its keeper with it."""
        if self.state is ProcessState.STOPPING:
            await self.gone(ended.exited)
        else:
            await self._exit(ended.exited, found_dead=ended)

    async def _exit(self, exited: LinkExited, *, found_dead: ProgramEnd | None = None) -> None:
        launch, uptime = self.record.launch, self._clock.monotonic() - self._launched_at
        screen = await last_screen(self.last_link) if self.last_link is not None else ""
        end = parting(exited, screen, ready=self._conversation.ready_seen, uptime=uptime)
        if end.refused and launch is not None:
            end = end.because(self._every.drift(launch.version or None))
        by_itself = exited.exit_code is not None and exited.exit_code >= 0 and not end.refused
        unresumable = (
            launch is not None
            and launch.resumed
            and by_itself
            and not self._conversation.ready_seen
            and found_dead is None
        )
        if self.profile.model and exited.exit_code in self._restart.fine_codes and not self._by_hand():
            end = doubted(end, screen, in_turn=self._owner.works_on_message(), unresumable=unresumable)
        await self._decide(ProcessEvent.EXITED, exited, end, found_dead=found_dead, unresumable=unresumable)
        self._waiters.wake()
        await self._close_link()

    def _by_hand(self) -> bool:
        """Returns whether a person pressed keys at its terminal just before its end."""
        at = self.last_link.terminal.person_at if self.last_link is not None else None
        return at is not None and self._clock.monotonic() - at < BY_HAND_S

    async def _decide(
        self,
        event: ProcessEvent,
        exited: LinkExited,
        end: Parting,
        *,
        found_dead: ProgramEnd | None = None,
        unresumable: bool = False,
    ) -> None:
        now = self._clock.monotonic()
        uptime = now - self._launched_at if event is ProcessEvent.EXITED else 0.0
        if found_dead is not None and (found_dead.taken_down or self.record.launch is None):
            # The program did not end by itself: it was ended, or never begun. The policy does not count this.
            decision: Decision = Retry(0.0)
        else:
            decision = self._restart.exited(
                exited.exit_code, now=now, uptime=uptime, refused=end.refused, crashed=end.crashed
            )
        then, reason = told_of(decision, end)
        interrupted = found_dead is not None and (found_dead.taken_down or exited.exit_code is None)
        settled = await self._owner.settle(exited, interrupted=interrupted)
        alerts: Sequence[AgentAlert] = ()
        changes: dict[str, Any] = {"failure": end.how}
        if unresumable:
            change = conversations.refused(self.record, end.how)
            changes |= change.fields
            alerts = change.alerts
            self._log_alerts(change)
        await self._actor.persist(
            self._move,
            event,
            *then,
            reason=reason,
            exit_code=exited.exit_code,
            settled=settled,
            alerts=alerts,
            **changes,
        )
        if not isinstance(decision, Rest):
            self._schedule(decision.delay)

    async def _due(self) -> None:
        self._timer = None
        if ProcessEvent.DUE in TABLE[self.state]:
            await self._actor.persist(self._launch, ProcessEvent.DUE)

    def _end(self) -> None:
        assert self.last_link is not None
        self._operations.stop(self.last_link)

    async def gone(self, exited: LinkExited) -> None:
        """Notes that the program was stopped, with all it started."""
        settled = await self._owner.settle(exited, interrupted=self._suspending and self.record.desired == "running")
        parked = self.record.parking and not self._start_again
        reason = f"parked: {self._parked_why}" if parked else f"stopped ({describe_exit(exited)})"
        await self._actor.persist(
            self._move,
            ProcessEvent.PARKED if parked else ProcessEvent.GONE,
            reason=reason,
            exit_code=exited.exit_code,
            settled=settled,
        )
        await self._close_link()
        if self._start_again:
            self._start_again = False
            self._restart.forgive()
            await self._actor.persist(self._launch, ProcessEvent.START)
        else:
            self._waiters.wake()

    # --- small things ---

    async def _move(
        self,
        *events: ProcessEvent,
        reason: str,
        exit_code: int | None = None,
        settled: Commit | None = None,
        alerts: Sequence[AgentAlert] = (),
        **changes: Any,
    ) -> None:
        """Applies `events` in one commit; this object changes only when the commit is durable."""
        state, record = self.state, self.record.model_copy(update=changes)
        told: list[EventData] = []
        for event in events:
            before, state = state, after(state, event)
            if state is not before or event is ProcessEvent.ADOPTED:
                told.append(self._tell(state, reason, exit_code, record))
        record = record.model_copy(update={"state": state.value, "changed_at": self._clock.wall()})
        rows = [*(NewEvent(record.id, data) for data in [*told, *alerts]), *self._owner.over(state)]
        await self._store.commit(
            events=[*(settled.events if settled else ()), *rows],
            tasks=[settled.task] if settled else (),
            turn=settled.turn if settled else None,
            turn_ended=settled.turn_ended if settled else None,
            agents=[record],
        )
        self.state, self.record, self.reason = state, record, reason
        if settled is not None:
            self._owner.settled(settled)
        self._actor.log.info("process", state=state.value, reason=reason)
        self._owner.changed()

    def _tell(self, state: ProcessState, reason: str, exit_code: int | None, record: AgentRecord) -> StateChanged:
        pid = record.launch.pid if record.launch is not None and state in LIVE_STATES else None
        return StateChanged(state=state, reason=reason, pid=pid, exit_code=exit_code, restarts=record.restarts)

    async def _close_link(self) -> None:
        self._open = False
        link, self.last_link = self.last_link, None  # with its screen, which is most of an agent's memory
        if link is not None:
            with contextlib.suppress(SynapsedError):
                await link.close()

    def _schedule(self, delay: float) -> None:
        self._cancel_timer()
        self._timer = self._actor.post_later(delay, self._due)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _completed() -> asyncio.Future[None]:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.set_result(None)
    return future
