"""Sends messages at the times of schedules: each time once at most, in spite of kills and changes of the clock.

An occurrence is a schedule and one of its times, an instant that no clock changes. Its task is made by the mailbox like
any other, under an id that follows from the occurrence, and the row about it is written in the task's own transaction
(`table`). The progress of a schedule is written after that: after a kill in between, the next daemon finds the task and
continues after it.

The clock is read when the next time is due, and every RECHECK_S: so a clock that was set, a machine that slept, and
another time zone are noticed without any notice from the system (docs/adr, "schedules by instants").
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any
from zoneinfo import ZoneInfo

import structlog

from synapsed.aio import TaskSet, Timers, cancel_all, pause
from synapsed.clock import Clock, iso
from synapsed.errors import (
    AmbiguousAddress,
    Forbidden,
    InvalidRequest,
    NameTaken,
    QueueFull,
    StoreError,
    SynapsedError,
    UnknownAgent,
    UnknownSchedule,
)
from synapsed.interfaces import STORE_RETRY_S, Directory, NewEvent, SendRequest, Store, Tasks
from synapsed.model.events import ScheduleCame
from synapsed.model.sender import KEY, Sender, Tier
from synapsed.model.task import NEW_CONVERSATION, Message, Task
from synapsed.parts.schedules.due import Due, due
from synapsed.parts.schedules.schedule import (
    SCHEDULED,
    SCHEDULES_MAX,
    LastTime,
    NewSchedule,
    Occurrence,
    Outcome,
    Schedule,
    ScheduleState,
    ScheduleView,
    as_schedule,
)
from synapsed.parts.schedules.spec import Spec, next_after, next_times, why_never
from synapsed.parts.schedules.table import ScheduleTable

RECHECK_S = 10.0
"""Seconds between two looks at the clock while nothing is due: a clock that was set is noticed within them."""

SHOWN = 5
"""Number of future times that are shown."""

log = structlog.stdlib.get_logger("synapsed.parts.schedules")


@dataclass(slots=True, eq=False)
class _Entry:
    """A schedule at work."""

    schedule: Schedule
    spec: Spec
    state: ScheduleState
    """The durable state."""
    cursor: float
    """End of its handled times, which is never later than the clock."""
    next: int | None = None
    stale: bool = True
    """True if `next` must be computed again."""
    work: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, schedule: Schedule, state: ScheduleState) -> "_Entry":
        return cls(schedule, schedule.spec, state, state.cursor)


class Scheduler:
    """Sends the messages. Life: `restore`, `start`, …, `close`. `zone` returns the machine's present time zone."""

    def __init__(
        self,
        *,
        directory: Directory,
        tasks: Tasks,
        store: Store,
        clock: Clock,
        timers: Timers,
        zone: Callable[[], ZoneInfo],
    ) -> None:
        self._directory = directory
        self._tasks = tasks
        self._events = store.events
        self._table = ScheduleTable(store)
        self._clock = clock
        self._timers = timers
        self._zone = zone
        self._entries: dict[str, _Entry] = {}
        self._seen = zone()
        """The zone at the last look at the clock."""
        self._woken = asyncio.Event()
        self._changing = asyncio.Lock()
        self._running: asyncio.Task[None] | None = None
        self._background = TaskSet()

    # --- from one daemon to the next ---

    async def restore(self, configured: Iterable[NewSchedule]) -> None:
        """Continues where the last daemon ended."""
        for schedule, state in (await self._table.schedules()).values():
            if schedule is not None:
                self._entries[schedule.id] = _Entry.of(schedule, state)
        await self._configure(configured)

    def start(self) -> None:
        """Begins to send: the agents are there."""
        self._running = self._running or asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Ends; the next daemon completes messages under way. May be called again."""
        if self._running is not None:
            await cancel_all([self._running])
        await self._background.cancel()

    def reconfigure(self, configured: Sequence[NewSchedule]) -> None:
        """Takes over a configuration that was read again."""
        self._background.spawn(self._configure(configured))

    async def _configure(self, configured: Iterable[NewSchedule]) -> None:
        """Sets the schedules of the configuration. One whose times were changed begins now."""
        async with self._changing:
            now = self._clock.wall()
            kept = await self._table.schedules()
            wanted = {one.id: one for one in (as_schedule(new, now=now) for new in configured)}
            for schedule in wanted.values():
                known = kept.get(schedule.id)
                state = known[1] if known is not None else None
                if state is None or state.times != schedule.times:
                    state = ScheduleState(cursor=now, times=schedule.times)
                    await self._table.keep(schedule.id, state)
                await self._put(schedule, state)
            for schedule_id in [one for one, (data, _) in kept.items() if data is None and one not in wanted]:
                await self._forget(schedule_id)
        self._woken.set()

    async def _put(self, schedule: Schedule, state: ScheduleState) -> None:
        old = self._entries.get(schedule.id)
        if old is not None and old.state.times == schedule.times:
            old.schedule = schedule
            return
        if old is not None and old.work is not None:
            await asyncio.wait([old.work])
        self._entries[schedule.id] = _Entry.of(schedule, state)

    async def _forget(self, schedule_id: str) -> None:
        await self._table.remove(schedule_id)
        self._entries.pop(schedule_id, None)

    # --- what people ask ---

    async def views(self) -> list[ScheduleView]:
        """Returns all schedules, by name."""
        async with self._changing:  # so that a configuration that was just read counts
            entries = sorted(self._entries.values(), key=lambda one: one.schedule.called)
        now, zone = self._now()
        return await asyncio.to_thread(lambda: [_view(entry, now, zone) for entry in entries])

    async def add(self, new: NewSchedule, *, by: str | None = None) -> ScheduleView:
        """Adds a schedule; it is durable when this returns. Raises InvalidRequest, NameTaken, QueueFull, UnknownAgent,
        AmbiguousAddress."""
        now, zone = self._now()
        if (why := await asyncio.to_thread(why_never, new.spec, now, zone)) is not None:
            raise InvalidRequest(f"at: {new.at!r} will never come: {why}", field="at")
        self._directory.resolve(new.agent)
        async with self._changing:
            if len(self._entries) >= SCHEDULES_MAX:
                raise QueueFull(f"there are {SCHEDULES_MAX} schedules; remove some", limit=SCHEDULES_MAX)
            name = new.name or self._free_name(new.agent)
            if any(entry.schedule.called == name for entry in self._entries.values()):
                raise NameTaken(f"there is a schedule {name!r} already; choose another name", name=name)
            made = Schedule(
                **new.model_dump(exclude={"name"}), name=name, id=name, by=by, born=self._born(by), created_at=now
            )
            state = ScheduleState(cursor=now, times=made.times)
            await self._table.keep(made.id, state, schedule=made)
            entry = self._entries[made.id] = _Entry.of(made, state)
        self._woken.set()
        log.info("schedule added", schedule=made.id, at=made.at, agent=made.agent)
        return await asyncio.to_thread(_view, entry, now, zone)

    async def remove(self, name: str, *, by: str | None = None) -> ScheduleView:
        """Removes a schedule; its tasks stay. `by` is the agent that asks, which may remove its own. Raises
        UnknownSchedule, AmbiguousAddress, InvalidRequest, Forbidden."""
        async with self._changing:
            entry = self._find(name)
            if entry.schedule.in_file:
                raise InvalidRequest(
                    f"{entry.schedule.called} stands in config.toml: remove its [[schedule]] there, then 'synapsectl "
                    "reload'",
                    schedule=entry.schedule.id,
                )
            if by is not None and (entry.schedule.by != by or self._is_former(entry.schedule)):
                raise Forbidden(f"{entry.schedule.called} is not yours: ask a person", schedule=entry.schedule.id)
            await self._forget(entry.schedule.id)
        log.info("schedule removed", schedule=entry.schedule.id)
        return await asyncio.to_thread(_view, entry, *self._now())

    async def run(self, name: str, *, key: str | None = None) -> Task:
        """Sends its message now; its times do not change. Raises UnknownSchedule and the errors of `Control.send`."""
        schedule = self._find(name).schedule
        return await self._send(schedule, {"schedule": schedule.id}, key=key)

    def _find(self, name: str) -> _Entry:
        if (entry := self._entries.get(name)) is not None and entry.schedule.in_file:
            return entry
        found = [entry for entry in self._entries.values() if entry.schedule.called == name]
        if len(found) > 1:
            ids = sorted(entry.schedule.id for entry in found)
            raise AmbiguousAddress(f"{name}: there are {' and '.join(ids)}", candidates=ids)
        if not found:
            known = ", ".join(sorted(entry.schedule.called for entry in self._entries.values()))
            hint = f"; there are {known}" if known else ""
            raise UnknownSchedule(f"there is no schedule {name[:64]!r}{hint}", schedule=name[:64])
        return found[0]

    def _free_name(self, agent: str) -> str:
        base = "".join(c if c.isascii() and (c.isalnum() or c in "_.-") else "-" for c in agent).strip("-.")[:50]
        taken = {entry.schedule.called for entry in self._entries.values()}
        return next(name for number in count(1) if (name := f"{base or 'schedule'}-{number}") not in taken)

    def _now(self) -> tuple[float, ZoneInfo]:
        return self._clock.wall(), self._zone()

    # --- at work ---

    async def _run(self) -> None:
        while True:
            self._woken.clear()
            try:
                await self._look()
            except Exception:  # the next look may work
                log.exception("the schedules could not be looked at")
            await self._pause()

    async def _pause(self) -> None:
        """Waits until the next time, or a change, but RECHECK_S at most, to read the clock."""
        times = [entry.next for entry in self._entries.values() if entry.next is not None and entry.work is None]
        if not self._entries:
            await self._woken.wait()
            return
        wait = min([RECHECK_S, *(at - self._clock.wall() for at in times)])
        await pause(self._timers, wait, woken=self._woken)

    async def _look(self) -> None:
        """Begins the due work."""
        now, zone = self._now()
        for entry in self._entries.values():
            # The clock was set back; or in another zone the same text means other times, and none of them was missed.
            if entry.cursor > now or zone != self._seen:
                entry.cursor, entry.stale = now, True
        self._seen = zone
        stale = [entry for entry in self._entries.values() if entry.stale and entry.work is None]
        if stale:
            await asyncio.to_thread(_plan, stale, zone)
        for entry in self._entries.values():
            if entry.next is not None and entry.next <= now and entry.work is None and not entry.stale:
                entry.work = self._background.spawn(self._serve(entry, now, zone))

    async def _serve(self, entry: _Entry, now: float, zone: ZoneInfo) -> None:
        """Handles the times of `entry` up to `now`."""
        try:
            schedule = entry.schedule
            found = await asyncio.to_thread(due, entry.spec, zone, cursor=entry.cursor, now=now, missed=schedule.missed)
            await self._settle(entry, found, now)
            entry.cursor = now
        except StoreError as error:
            if error.details.get("reason") != "closed":
                log.warning("the store refused", schedule=entry.schedule.id, error=error.message)
                await pause(self._timers, STORE_RETRY_S)
        except Exception:  # a defect: without a pause it would be tried again at once, for ever
            log.exception("a schedule failed", schedule=entry.schedule.id)
            await pause(self._timers, RECHECK_S)
        finally:
            entry.stale, entry.work = True, None
            self._woken.set()

    async def _settle(self, entry: _Entry, found: Due, now: float) -> None:
        schedule = entry.schedule
        if found.send is None:
            await self._missed(entry, found, now)
            return
        occurrence = Occurrence(schedule=schedule.id, at=found.send)
        task_id, told = await self._table.task_of(occurrence) or (None, False)
        if told:
            return  # the clock was set back
        problem = ""
        if task_id is None:
            try:
                task_id = (await self._send(schedule, occurrence.metadata(), key=occurrence.key)).id
            except StoreError:
                raise
            except SynapsedError as error:
                problem = error.message
        outcome: Outcome = "refused" if task_id is None else "sent"
        await self._tell(entry, found.send, found, now, outcome=outcome, task_id=task_id, problem=problem)

    async def _missed(self, entry: _Entry, found: Due, now: float) -> None:
        if found.missed is None:
            return
        last = Occurrence(schedule=entry.schedule.id, at=found.missed[1])
        if await self._table.task_of(last) is None:  # a task means that the clock was set back, and is right again
            await self._tell(entry, last.at, found, now, outcome="missed")

    async def _tell(
        self,
        entry: _Entry,
        at: int,
        found: Due,
        now: float,
        *,
        outcome: Outcome,
        task_id: str | None = None,
        problem: str = "",
    ) -> None:
        """Makes durable that the times up to `now` have been handled, with a report."""
        schedule = entry.schedule
        state = ScheduleState(
            cursor=now,
            times=schedule.times,
            last_at=at,
            last_outcome=outcome,
            last_task=task_id,
            last_problem=problem,
        )
        came = ScheduleCame(
            schedule=schedule.id,
            outcome=outcome,
            at=iso(at),
            missed_since=iso(found.missed[0]) if found.missed is not None else None,
            problem=problem,
        )
        told = None if task_id is None else Occurrence(schedule=schedule.id, at=at)
        event = NewEvent(self._agent_id(schedule), came, task_id)
        await self._table.keep(schedule.id, state, told=told, events=[event])
        entry.state = state
        log.info("schedule", schedule=schedule.id, outcome=outcome, task=task_id, at=came.at, problem=problem)

    def _agent_id(self, schedule: Schedule) -> str:
        """Returns the agent's id; empty if there is no such agent."""
        try:
            return self._directory.resolve(schedule.agent)
        except SynapsedError:
            return ""

    def _born(self, by: str | None) -> int:
        return 0 if by is None else self._events.born(by)

    def _is_former(self, schedule: Schedule) -> bool:
        """Returns True if the agent that made the schedule was removed, and another agent has its id."""
        return self._born(schedule.by) > schedule.born

    async def _send(self, schedule: Schedule, scheduled: dict[str, Any], *, key: str | None) -> Task:
        if self._is_former(schedule):
            raise Forbidden(
                f"the {schedule.by} that has made it was removed, and another agent has that id: nothing is sent in "
                "its name; remove the schedule, or make it again",
                schedule=schedule.id,
            )
        metadata = {KEY: self._sender(schedule).metadata()}
        request = SendRequest(
            message=Message.of(schedule.message),
            priority=schedule.priority,
            metadata=metadata | ({NEW_CONVERSATION: True} if schedule.new_conversation else {}),
            key=key,
            marks={SCHEDULED: scheduled},
            of_agent=schedule.by is not None,
        )
        return await self._tasks.send(self._directory.resolve(schedule.agent), request)

    def _sender(self, schedule: Schedule) -> Sender:
        """Returns the sender: the name of a person's schedule, else the agent that has made it."""
        if schedule.by is None:
            return Sender(id=f"schedule-{schedule.called}", tier=Tier.PERSON, type="schedule")
        try:
            view = self._directory.view(schedule.by)
        except UnknownAgent:
            return Sender(id=schedule.by, tier=Tier.AGENT)
        return Sender(id=view.id, tier=Tier.AGENT, type=view.type, endpoint=view.endpoint)


def _plan(entries: Sequence[_Entry], zone: ZoneInfo) -> None:
    """Finds the next times; in a thread, since some are years away."""
    for entry in entries:
        try:
            entry.next = next_after(entry.spec, entry.cursor, zone)
        except Exception:  # one schedule's fault must not end the others'
            log.exception("a schedule has no times", schedule=entry.schedule.id)
            entry.next = None
        entry.stale = False


def _view(entry: _Entry, now: float, zone: ZoneInfo) -> ScheduleView:
    schedule, state = entry.schedule, entry.state
    own = ZoneInfo(entry.spec.zone) if entry.spec.zone is not None else zone
    times = next_times(entry.spec, max(now, entry.cursor), zone, SHOWN)
    last = None
    if state.last_at is not None and state.last_outcome is not None:
        last = LastTime(
            at=_shown(state.last_at, own), outcome=state.last_outcome, task=state.last_task, problem=state.last_problem
        )
    return ScheduleView(
        id=schedule.id,
        name=schedule.called,
        source="file" if schedule.in_file else "verb",
        by=schedule.by,
        at=schedule.at,
        zone=entry.spec.zone,
        agent=schedule.agent,
        message=schedule.message,
        missed=schedule.missed,
        priority=schedule.priority,
        new_conversation=schedule.new_conversation,
        next=[_shown(at, own) for at in times],
        last=last,
    )


def _shown(at: int, zone: ZoneInfo) -> str:
    return datetime.fromtimestamp(at, UTC).astimezone(zone).isoformat()
