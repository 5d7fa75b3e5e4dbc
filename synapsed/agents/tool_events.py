"""Tells of one agent's tool calls (`toolExecution`): what its channels report, and what policy and dialogs deny; and of
turns that a person typed at its terminal (`turnSeen`), of what turns used (`usage`), and of plans, changed files and
limits (`work_events`).

Everything here runs in the agent's actor. An event is committed before what is reported next is looked at, so that a
report is settled only when what it told is durable.
"""

from collections.abc import Sequence
from typing import Any, Final

from synapsed.agents.actor import Actor
from synapsed.agents.tool_calls import ToolCalls
from synapsed.agents.turn_events import OwnTurns, UsedTurns, is_of
from synapsed.agents.turns import AgentTurns
from synapsed.agents.work_events import WorkTold
from synapsed.clock import Clock, iso
from synapsed.errors import StoreError
from synapsed.interfaces import NewEvent, Store, TaskFilter
from synapsed.model.approval import ToolCall
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
    TurnUsed,
)
from synapsed.model.link import LinkEvent, LinkTurnEnded, LinkTurnFailed, LinkTurnInterrupted
from synapsed.model.task import TERMINAL_STATES, Prompt, Task
from synapsed.pty.shown_calls import ShownCalls

RECALLED = 20_000
"""Events at the end of the log in which a new daemon looks for calls that were told already."""

OVER: Final[dict[type[ChannelFact], str]] = {
    TurnEnded: "the turn ended, and its program told of no end",
    TurnFailed: "the turn failed",
    TurnInterrupted: "the turn was interrupted",
}
"""Why a call that is open at its turn's end has failed."""

UNSEEN: Final[dict[type[LinkEvent], str]] = {
    LinkTurnEnded: "the turn ended, and its screen showed no end",
    LinkTurnFailed: OVER[TurnFailed],
}
"""The same of a call that was read off the screen."""

LAST_TASKS = 2
"""How many of its last tasks an accepted prompt may be of: channels repeat the reports of two turns."""

_TYPES = frozenset({"toolExecution", "turnSeen", "usage"})


class ToolEvents:
    """Of one agent."""

    def __init__(self, agent_id: str, *, store: Store, clock: Clock, actor: Actor, turns: AgentTurns) -> None:
        self._calls = ToolCalls(agent_id)
        self._shown = ShownCalls()
        self._typed = OwnTurns()
        self._used = UsedTurns()
        self._work = WorkTold(agent_id)
        self._agent_id = agent_id
        self._store = store
        self._clock = clock
        self._since = clock.monotonic()
        self._actor = actor
        self._turns = turns

    async def restore(self) -> None:
        """Take up what an earlier daemon told. Raises StoreError."""
        after = max(0, self._store.events.last_id - RECALLED)
        while batch := await self._store.events.read(after, agent_id=self._agent_id, types=_TYPES):
            self._calls.restore(batch)
            self._shown.restore(batch)
            self._typed.restore(batch)
            self._used.restore(batch)
            after = batch[-1].id

    async def told(self, fact: ChannelFact) -> None:
        """A channel reported something."""
        match fact:
            case PromptAccepted():
                await self._accepted(fact)
            case ToolBegan():
                await self._tell(self._calls.began(fact, self._turns.current))
            case ToolOver():
                await self._tell(self._calls.over(fact, self._turns.current))
            case ToolsShown():
                await self._tell_shown(fact)
            case TurnUsed():
                if (usage := self._used.told(fact)) is not None:
                    await self._tell([self._used.event(self._agent_id, usage)])
            case PlanTold() | DiffTold() | LimitsTold():
                await self._tell(self._work.told(fact, self._turns.current))
            case PermissionAsked():
                self._calls.asked(fact.input)
            case TurnEnded() | TurnFailed() | TurnInterrupted():
                await self._turn_over(fact)

    async def turn(self, event: LinkEvent) -> None:
        """The link says what became of a task's turn; the screen may tell of an interrupt before any channel does."""
        if isinstance(event, LinkTurnInterrupted):
            await self._tell(self._calls.turn_over(None, OVER[TurnInterrupted], stopped=True))
        elif (reason := UNSEEN.get(type(event))) is not None:
            await self._tell(self._calls.screen_over(reason))

    async def _tell_shown(self, fact: ToolsShown) -> None:
        task = self._turns.current
        if task is None or task.id != fact.turn:
            return
        events: list[NewEvent] = []
        for call in self._shown.seen(fact):
            events += self._calls.began(call, task) if isinstance(call, ToolBegan) else self._calls.over(call, task)
        await self._tell(events)

    async def _turn_over(self, fact: TurnEnded | TurnFailed | TurnInterrupted) -> None:
        stopped = isinstance(fact, TurnInterrupted)
        await self._tell(self._calls.turn_over(fact.turn, OVER[type(fact)], stopped=stopped))
        if (seen := self._typed.over(fact)) is not None:
            await self._tell([NewEvent(self._agent_id, seen)])

    async def _accepted(self, fact: PromptAccepted) -> None:
        task = self._turns.current
        if fact.own is False:
            self._typed.accepted(fact)
            return
        if task is not None and fact.at_ns >= self._since * 1e9:
            self._used.belongs(fact, task)
            return
        try:
            over, _ = await self._store.tasks(
                TaskFilter(agent_id=self._agent_id, states=TERMINAL_STATES, limit=LAST_TASKS)
            )
        except StoreError as error:
            self._actor.log.warning("whose turn this is, is not known", error=error.message)
            return
        task = self._worked_on(fact, over) or task
        if task is not None:
            self._used.belongs(fact, task)
        elif not any(is_of(fact.prompt or "", task) for task in over):
            self._typed.accepted(fact)

    def _worked_on(self, fact: PromptAccepted, over: Sequence[Task]) -> Task | None:
        """The task, of those that are over (the last first), in whose turn a prompt was accepted that is reported again
        to a new daemon. Its text may be a note of ours."""
        at = iso(self._clock.wall() - self._clock.monotonic() + fact.at_ns / 1e9)
        return next((task for task in reversed(over) if task.created_at <= at <= task.updated_at), None)

    def about(self, prompt: Prompt | None) -> Prompt | None:
        """See `ToolCalls.about`."""
        return self._calls.about(prompt) if prompt is not None else None

    def works(self) -> None:
        """The program was seen at work: what it asked about was allowed."""
        self._calls.allowed()

    async def denied(self, call: ToolCall, reason: str) -> None:
        """The approval policy denied `call`."""
        texts = (call.command,) if call.command is not None else call.subjects
        await self._tell(self._calls.denied(call.tool, texts, reason))

    async def refused(self, shown: str) -> None:
        """The dialog that has `shown` was answered with a refusal."""
        await self._tell(self._calls.refused(shown, "denied in the program's dialog"))

    async def program_over(self, how: str) -> None:
        """The program is gone, and its calls with it."""
        await self._tell(self._calls.turn_over(None, f"the program ended ({how})"))

    async def _tell(self, events: list[NewEvent]) -> None:
        if not events:
            return
        try:
            await self._actor.persist(self._store.commit, events=events)
        except StoreError as error:  # the actor ends: a new daemon is told again
            told: list[Any] = [event.data for event in events]
            self._actor.log.warning("what a channel told could not be recorded", count=len(told), error=error.message)
