"""Follows the event log: a follower handles each event that it wants once it is durable, in order, in spite of
failures.

A follower has a cursor, its place in the log. A `Follower` keeps it in memory: each daemon builds its state again. A
`DurableFollower` writes it in one commit with the consequence of an event: even if the daemon is killed at any moment,
the consequence is recorded once, and no event is skipped. An event without a consequence moves the cursor only in
memory; it is written now and then.

A failed event is tried again, with growing pauses, from the last cursor of `restore` on, which resets memory to that
place. While the store refuses, the attempts go on. An event that fails by itself is passed over after `TRIES`, with an
alert that names it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog

from synapsed.aio import Timers, cancel_all, pause
from synapsed.clock import backoff
from synapsed.errors import StoreError
from synapsed.interfaces import EVERY_EVENT, EventFilter, EventLog, NewEvent, Store
from synapsed.model.events import AgentAlert, Event
from synapsed.model.records import FollowerState

PASSED_OVER = "EVENT_PASSED_OVER"
"""Code of the alert."""

TRIES = 10
"""Attempts at an event that fails by itself; with their pauses they take some five minutes."""

RETRY_S = 1.0
RETRY_MAX_S = 60.0

BATCH = 100
BATCH_SIZE = 1 << 20
"""Events, and characters of their JSON, that are read at a time."""

SAVE_EVERY = 200
"""Events without consequence after which a durable cursor is written anyway."""

log = structlog.stdlib.get_logger("synapsed.follower")


@dataclass(frozen=True, slots=True)
class Changes:
    """The consequence of an event: the events that report it."""

    events: Sequence[NewEvent] = ()


class Ended(Exception):
    """Raised by `handle` if there is nothing more to follow."""


class NotNow(Exception):
    """Raised if an action is impossible now: it is tried again as after a failure, without a report."""


class Follower:
    """Handles events from its first `restore` on, which `start` calls if no caller did. Its methods are called in this
    order: `restore`, `start`, …, `close`."""

    name: str
    """Name in the daemon's log, and of the row of a durable follower."""
    wants: EventFilter = EVERY_EVENT
    pace: float = 0.0
    """Seconds between two reads of the log, for work that is not urgent; 0: each new event is read at once."""
    escapes: tuple[type[Exception], ...] = ()
    """Errors that end `run`, which raises them."""

    def __init__(self, events: EventLog, timers: Timers | None = None) -> None:
        """`timers` None: those of the event loop."""
        self._events = events
        self._timers = timers
        self.cursor = -1
        """Id of the last event that was handled; negative before the first `restore`."""
        self._reached = -1
        """Id of the last event after which `handled` was called."""
        self._moved = asyncio.Event()
        self._hurried = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._waits = False
        """True if it failed, and is going to try again."""
        self._amid = False
        """True while an event is being handled: memory may be ahead of the cursor."""
        self._broken_off = False
        """True if the last `catch_up` did not finish."""
        self._failed: tuple[int, int] = (0, 0)
        """The event that failed last, and how often it did."""

    # --- for subclasses ---

    async def restore(self) -> None:
        """Sets the cursor, and resets memory to its state there. Called again after each failure."""
        if self.cursor < 0:
            self.cursor = self._events.last_id

    async def due(self, event: Event) -> None:
        """Returns when the event may be handled."""

    async def handle(self, event: Event) -> Changes | None:
        """Handles the event. Returns None if it has no consequence."""
        raise NotImplementedError

    async def handled(self) -> None:
        """Called when events that were read together are handled, with the cursor after them."""

    async def pass_over(self, event: Event) -> None:
        """Called instead of `handle` for an event that failed too often."""

    async def keep(self, event_id: int, changes: Changes) -> None:
        """Makes the consequence of the event durable, in followers that have a place for it."""

    # --- for callers ---

    def start(self) -> None:
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self.run(), name=f"follower {self.name}")

    async def close(self) -> None:
        """Stops the follower. May be called again."""
        if (running := self._running) is not None:
            await cancel_all([running])
            self._wake()

    @property
    def running(self) -> bool:
        return self._running is not None and not self._running.done()

    async def reached(self, event_id: int) -> None:
        """Returns once all events up to that one are handled; returns at once if the follower does not run, or waits
        after a failure."""
        self._hurried.set()
        while self._reached < event_id and self.running and not self._waits:
            await self._moved.wait()

    async def catch_up(self) -> None:
        """Handles the present events of the log, for a follower that is not started: errors are raised."""
        upto = self._events.last_id
        if self.cursor < 0 or self._broken_off:
            await self.restore()
        self._broken_off = True
        while self.cursor < upto:
            await self._see_to(self.cursor)
        self._broken_off = False

    async def run(self) -> None:
        """Returns when the store is closed, or `handle` has raised `Ended`. Raises the errors of `escapes`."""
        failures, furthest = 0, -1
        try:
            while not await self._attempt(again=furthest >= 0):
                failures = failures + 1 if self.cursor <= furthest else 0
                furthest = max(furthest, self.cursor, 0)
                self._waits = True
                self._wake()
                await self._pause(backoff(failures, initial=RETRY_S, factor=2.0, maximum=RETRY_MAX_S))
                self._waits = False
        finally:
            asyncio.get_running_loop().call_soon(self._wake)  # by then, the task is done

    # --- inside ---

    async def _attempt(self, *, again: bool) -> bool:
        """Follows until it fails; returns True if there is nothing more to follow."""
        try:
            if again or self.cursor < 0:
                await self.restore()
            await self._follow()
        except Ended:
            return True
        except self.escapes:
            raise
        except NotNow as reason:
            log.info("a follower waits", follower=self.name, why=str(reason))
        except StoreError as error:
            if error.details.get("reason") == "closed":
                return True
            log.warning("the store refused", follower=self.name, error=error.message)
        except Exception:
            log.exception("a follower failed", follower=self.name, after=self.cursor)
        else:
            return True
        return False

    async def _follow(self) -> None:
        """Follows the log; returns when the store is closed."""
        after: int | None = self.cursor
        while after is not None:
            await self._see_to(after)
            if self.pace and self.cursor >= self._events.last_id:
                await self._pause(self.pace, woken=self._hurried)
                self._hurried.clear()
            after = await self._events.changed(self.cursor, self.wants)

    async def _see_to(self, after: int) -> None:
        """Handles the next events after `after`."""
        page = await self._events.page(after, self.wants, limit=BATCH, size=BATCH_SIZE)
        for event in page.events:
            await self.due(event)
            self._amid = True
            changes = await self._handle(event)
            if changes is not None:
                await self.keep(event.id, changes)
            self.cursor = event.id
            self._amid = False
        self.cursor = page.upto
        await self.handled()
        self._reached = page.upto
        self._wake()
        await asyncio.sleep(0)  # one that is far behind leaves time for others

    async def _handle(self, event: Event) -> Changes | None:
        tries = self._failed[1] if self._failed[0] == event.id else 0
        if tries >= TRIES:
            await self.pass_over(event)
            return _told(self.name, event)
        try:
            return await self.handle(event)
        except (StoreError, Ended, NotNow):
            raise
        except self.escapes:
            raise
        except Exception:
            self._failed = (event.id, tries + 1)
            raise

    async def _pause(self, seconds: float, woken: asyncio.Event | None = None) -> None:
        await pause(self._timers or asyncio.get_running_loop(), seconds, woken=woken)

    def _wake(self) -> None:
        self._moved.set()
        self._moved.clear()


class DurableFollower(Follower):
    """Goes on at the place that the last daemon recorded; without such a place, with the next events."""

    def __init__(self, store: Store, timers: Timers | None = None) -> None:
        super().__init__(store.events, timers)
        self._store = store
        self.state = FollowerState(cursor=0)
        """Its durable state."""

    def memory(self) -> Mapping[str, FollowerState]:
        """Returns further states that have changed in memory, by the names under which they are kept: they are written
        with the cursor."""
        return {}

    async def restore(self) -> None:
        state = await self._store.follower(self.name)
        if state is None:
            state = FollowerState(cursor=self._events.last_id)
            await self._store.keep_follower(self.name, state)
        self.state, self.cursor = state, state.cursor

    async def keep(self, event_id: int, changes: Changes) -> None:
        await self.keep_state(FollowerState(cursor=event_id), events=changes.events, others=self.memory())

    async def keep_state(
        self,
        state: FollowerState,
        *,
        events: Sequence[NewEvent] = (),
        others: Mapping[str, FollowerState] | None = None,
    ) -> None:
        """Makes `state` durable, in one commit with the others."""
        await self._store.keep_follower(self.name, state, events=events, others=others)
        self.state = state

    async def handled(self) -> None:
        if self.cursor - self.state.cursor >= SAVE_EVERY:
            await self.save()

    async def save(self) -> None:
        """Makes its progress durable; does nothing while an event is handled: its cursor is written afterwards."""
        if not self._amid and self.cursor > self.state.cursor:
            await self.keep(self.cursor, Changes())

    async def close(self) -> None:
        await super().close()
        try:
            await self.save()
        except StoreError as error:
            log.warning("the store refused", follower=self.name, error=error.message)


def _told(name: str, event: Event) -> Changes:
    """Returns the alert about an event that was passed over; none if the event is such an alert itself."""
    log.error("an event is passed over", follower=name, event_id=event.id)
    if isinstance(event.data, AgentAlert) and event.data.code == PASSED_OVER:
        return Changes()
    alert = AgentAlert(
        code=PASSED_OVER,
        message=f"{name} could not handle event {event.id} ({event.data.type}), and goes on behind it; "
        "the daemon's log says why",
        details={"state": "happened", "follower": name, "event": event.id},
    )
    return Changes([NewEvent("", alert)])
