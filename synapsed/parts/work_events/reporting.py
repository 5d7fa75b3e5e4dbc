"""Reports one agent's work, each item once: its tool calls (`toolExecution`), from the reports of its channels and the
denials of policy and dialogs; turns that a person typed at its terminal (`turnSeen`); usage of turns (`usage`); plans,
changed files and limits.

All of this runs in the agent's actor. An event is committed before the next report is handled, so a report is settled
only when its events are durable.

The author of a typed turn is known when its prompt is accepted: it is the person if the agent works on no task, and the
last tasks had another text (a report may be late, or repeated to a new daemon).
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import structlog

from synapsed.clock import Clock, iso
from synapsed.errors import StoreError
from synapsed.interfaces import (
    LinkEvent,
    LinkTurnEnded,
    LinkTurnFailed,
    LinkTurnInterrupted,
    NewEvent,
    Store,
    TaskFilter,
    WorkOwner,
    WorkTeller,
    WorkTelling,
)
from synapsed.kernel import Kernel, Running
from synapsed.model.events import (
    DiffUpdated,
    Event,
    EventData,
    PlanStep,
    PlanUpdated,
    RateLimitsSeen,
    RateWindow,
    TokensUsed,
    TurnSeen,
)
from synapsed.model.facts import (
    ChannelFact,
    DiffTold,
    LimitsTold,
    PermissionAsked,
    PlanTold,
    PromptAccepted,
    ToolBegan,
    ToolOver,
    ToolsShown,
    TurnEnded,
    TurnFailed,
    TurnInterrupted,
    TurnOver,
    TurnUsed,
)
from synapsed.model.task import TERMINAL_STATES, Prompt, Task
from synapsed.parts.work_events.shown_calls import ShownCalls
from synapsed.parts.work_events.tool_calls import ToolCalls

log = structlog.stdlib.get_logger("synapsed.work")

TEXT_MAX = 1 << 20
"""Most characters of a text, and of an answer, in an event."""
KNOWN_MAX = 200
"""Most turns that are remembered."""


class _ToldTurns:
    def __init__(self, kind: type[TurnSeen | TokensUsed]) -> None:
        self._kind = kind
        self._told: dict[str, None] = {}

    def restore(self, events: Iterable[Event]) -> None:
        """Takes this agent's events from the log, oldest first."""
        for event in events:
            if isinstance(event.data, self._kind) and event.data.turn_id is not None:
                _keep(self._told, event.data.turn_id, None)


class OwnTurns(_ToldTurns):
    """Turns that a person typed."""

    def __init__(self) -> None:
        super().__init__(TurnSeen)
        self._open: dict[str, PromptAccepted] = {}

    def accepted(self, fact: PromptAccepted) -> None:
        """Notes a person's prompt."""
        if fact.turn is not None and fact.prompt and fact.turn not in self._told:
            _keep(self._open, fact.turn, fact)

    def over(self, fact: ChannelFact) -> TurnSeen | None:
        """Ends a turn; returns the event about it if it was a person's."""
        begun = self._open.pop(fact.turn, None) if fact.turn is not None else None
        if begun is None or begun.turn is None:
            return None
        _keep(self._told, begun.turn, None)
        answer = fact.answer if isinstance(fact, TurnEnded) else None
        return TurnSeen(
            text=(begun.prompt or "")[:TEXT_MAX],
            answer=answer[:TEXT_MAX] if answer is not None else None,
            turn_id=begun.turn,
            source=fact.channel,
        )


class UsedTurns(_ToldTurns):
    """Usage of turns, which is known after their end."""

    def __init__(self) -> None:
        super().__init__(TokensUsed)
        self._of: dict[str, tuple[str, str]] = {}
        """Task and context by turn."""

    def belongs(self, fact: PromptAccepted, task: Task) -> None:
        """Notes that a turn of the task began."""
        if fact.turn is not None:
            _keep(self._of, fact.turn, (task.id, task.context_id))

    def told(self, fact: TurnUsed) -> TokensUsed | None:
        """Returns the usage to report; None if it was reported before."""
        if fact.turn is None or fact.turn in self._told:
            return None
        _keep(self._told, fact.turn, None)
        return TokensUsed(
            model=fact.model,
            input_tokens=fact.input_tokens,
            output_tokens=fact.output_tokens,
            cache_read_tokens=fact.cache_read_tokens,
            cache_write_tokens=fact.cache_write_tokens,
            cost_usd=fact.cost_usd,
            turn_id=fact.turn,
            source=fact.channel,
        )

    def event(self, agent_id: str, usage: TokensUsed) -> NewEvent:
        """Returns the event, with the task of its turn."""
        task_id, context_id = self._of.get(usage.turn_id or "", (None, None))
        return NewEvent(agent_id, usage, task_id, context_id)


def is_of(prompt: str, task: Task) -> bool:
    """Returns whether the prompt is the text typed for the task: its message, perhaps after a mark of the sender."""
    text = _dense(task.message.text)
    return bool(text) and _dense(prompt).endswith(text)


def _dense(text: str) -> str:
    return "".join(text.split())


def _keep[T](kept: dict[str, T], turn: str, value: T) -> None:
    """Keeps the value; of all values only the newest `KNOWN_MAX` are kept."""
    kept[turn] = value
    while len(kept) > KNOWN_MAX:
        del kept[next(iter(kept))]


STEPS_MAX = 200
STEP_MAX = 2000
"""Most steps of a plan, and most characters of each, in an event."""
DIFF_MAX = 1 << 20
"""Most characters of a diff in an event."""
WINDOWS_MAX = 20


class WorkTold:
    """Reported plans, diffs and limits of one agent. A repetition is not reported again: channels repeat their
    reports."""

    def __init__(self, agent_id: str) -> None:
        self._agent_id = agent_id
        self._last: dict[str, EventData] = {}

    def told(self, fact: PlanTold | DiffTold | LimitsTold, task: Task | None) -> list[NewEvent]:
        """Returns the events of one report; `task` is the present one, to whose turn it belongs."""
        event: PlanUpdated | DiffUpdated | RateLimitsSeen
        match fact:
            case PlanTold():
                steps = [PlanStep(text=text[:STEP_MAX], status=status) for text, status in fact.steps[:STEPS_MAX]]
                note = fact.note[:STEP_MAX] if fact.note else None
                event = PlanUpdated(steps=steps, note=note, turn_id=fact.turn, source=fact.channel)
            case DiffTold():
                event = DiffUpdated(
                    diff=fact.diff[:DIFF_MAX],
                    truncated=len(fact.diff) > DIFF_MAX,
                    turn_id=fact.turn,
                    source=fact.channel,
                )
            case LimitsTold():
                task, event = None, _limits(fact)
        if self._last.get(event.type) == event:
            return []
        self._last[event.type] = event
        return [NewEvent(self._agent_id, event, *((task.id, task.context_id) if task is not None else (None, None)))]


def _limits(fact: LimitsTold) -> RateLimitsSeen:
    windows = [
        RateWindow(
            name=each.name,
            used_percent=max(0.0, each.used),
            minutes=each.minutes,
            resets_at=iso(each.resets_at) if each.resets_at is not None else None,
        )
        for each in fact.windows[:WINDOWS_MAX]
    ]
    return RateLimitsSeen(windows=windows, plan=fact.plan, source=fact.channel)


RECALLED = 20_000
"""Events at the end of the log in which a new daemon looks for calls that were reported already."""

OVER: Final[dict[type[ChannelFact], str]] = {
    TurnEnded: "the turn ended, and its program told of no end",
    TurnFailed: "the turn failed",
    TurnInterrupted: "the turn was interrupted",
}
"""Reasons for the failure of a call that is open at its turn's end."""

UNSEEN: Final[dict[type[LinkEvent], str]] = {
    LinkTurnEnded: "the turn ended, and its screen showed no end",
    LinkTurnFailed: OVER[TurnFailed],
}
"""The same for a call that was read off the screen."""

LAST_TASKS = 2
"""Number of an agent's last tasks to which an accepted prompt may belong: channels repeat the reports of two turns."""

_TYPES = frozenset({"toolExecution", "turnSeen", "usage"})


class ToolEvents:
    """Reports the work of one agent."""

    def __init__(self, owner: WorkOwner, *, store: Store, clock: Clock) -> None:
        self._owner = owner
        self._agent_id = agent_id = owner.id
        self._calls = ToolCalls(agent_id)
        self._shown = ShownCalls()
        self._typed = OwnTurns()
        self._used = UsedTurns()
        self._work = WorkTold(agent_id)
        self._store = store
        self._clock = clock

    async def restore(self) -> None:
        """Restores the reports of an earlier daemon. Raises StoreError."""
        after = max(0, self._store.events.last_id - RECALLED)
        while batch := await self._store.events.read(after, agent_id=self._agent_id, types=_TYPES):
            self._calls.restore(batch)
            self._shown.restore(batch)
            self._typed.restore(batch)
            self._used.restore(batch)
            after = batch[-1].id

    async def told(self, fact: ChannelFact) -> None:
        """Handles a channel's report."""
        match fact:
            case PromptAccepted():
                await self._accepted(fact)
            case ToolBegan():
                await self._tell(self._calls.began(fact, self._owner.current))
            case ToolOver():
                await self._tell(self._calls.over(fact, self._owner.current))
            case ToolsShown():
                await self._tell_shown(fact)
            case TurnUsed():
                if (usage := self._used.told(fact)) is not None:
                    await self._tell([self._used.event(self._agent_id, usage)])
            case PlanTold() | DiffTold() | LimitsTold():
                await self._tell(self._work.told(fact, self._owner.current))
            case PermissionAsked():
                self._calls.asked(fact.input)
            case TurnEnded() | TurnFailed() | TurnInterrupted():
                await self._turn_over(fact)

    async def turn(self, event: LinkEvent) -> None:
        """Handles the end of a task's turn; the screen may report an interrupt before any channel does."""
        if isinstance(event, LinkTurnInterrupted):
            await self._tell(self._calls.turn_over(None, OVER[TurnInterrupted], stopped=True))
        elif (reason := UNSEEN.get(type(event))) is not None:
            await self._tell(self._calls.screen_over(reason))

    async def _tell_shown(self, fact: ToolsShown) -> None:
        task = self._owner.current
        if task is None or task.id != fact.turn:
            return
        events: list[NewEvent] = []
        for call in self._shown.seen(fact):
            events += self._calls.began(call, task) if isinstance(call, ToolBegan) else self._calls.over(call, task)
        await self._tell(events)

    async def _turn_over(self, fact: TurnOver) -> None:
        stopped = isinstance(fact, TurnInterrupted)
        await self._tell(self._calls.turn_over(fact.turn, OVER[type(fact)], stopped=stopped))
        if (seen := self._typed.over(fact)) is not None:
            await self._tell([NewEvent(self._agent_id, seen)])

    async def _accepted(self, fact: PromptAccepted) -> None:
        task = self._owner.current
        if fact.own is False:
            self._typed.accepted(fact)
            return
        if fact.own and (seen := self._typed.over(fact)) is not None:  # a message joined it: its answer is the task's
            await self._tell([NewEvent(self._agent_id, seen)])
        if task is not None and fact.at_ns >= self._owner.since * 1e9:
            self._used.belongs(fact, task)
            return
        try:
            over, _ = await self._store.tasks(
                TaskFilter(agent_id=self._agent_id, states=TERMINAL_STATES, limit=LAST_TASKS)
            )
        except StoreError as error:
            log.warning("whose turn this is, is not known", agent_id=self._agent_id, error=error.message)
            return
        task = self._worked_on(fact, over) or task
        if task is not None:
            self._used.belongs(fact, task)
        elif not any(is_of(fact.prompt or "", task) for task in over):
            self._typed.accepted(fact)

    def _worked_on(self, fact: PromptAccepted, over: Sequence[Task]) -> Task | None:
        """Returns the task, among those that are over (the last first), during whose turn the prompt was accepted; a
        channel reports it again to a new daemon. The prompt's text may be a note from synapsed."""
        at = iso(self._clock.wall() - self._clock.monotonic() + fact.at_ns / 1e9)
        return next((task for task in reversed(over) if task.created_at <= at <= task.updated_at), None)

    def about(self, prompt: Prompt | None) -> Prompt | None:
        """Implements `ToolCalls.about`."""
        return self._calls.about(prompt) if prompt is not None else None

    async def works(self) -> None:
        """Notes that the program works: so the call that it asked about was allowed."""
        self._calls.allowed()

    async def denied(self, tool: str, texts: Sequence[str], reason: str) -> None:
        """Notes that a rule denied the call of `tool` that has `texts` in its input."""
        await self._tell(self._calls.denied(tool, tuple(texts), reason))

    async def refused(self, shown: str) -> None:
        """Notes that the dialog with `shown` was answered with a refusal."""
        await self._tell(self._calls.refused(shown, "denied in the program's dialog"))

    async def program_over(self, how: str) -> None:
        """Ends the calls of a program that is gone."""
        await self._tell(self._calls.turn_over(None, f"the program ended ({how})"))

    async def _tell(self, events: list[NewEvent]) -> None:
        if events:
            await self._owner.tell(events)


class WorkEvents(Running):
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.provides = {WorkTelling: self}

    def teller(self, owner: WorkOwner) -> WorkTeller:
        """Implements `WorkTelling`."""
        return ToolEvents(owner, store=self._store, clock=self._clock)


@asynccontextmanager
async def opened(kernel: Kernel) -> AsyncIterator[Running]:
    yield WorkEvents(kernel.store, kernel.clock)
