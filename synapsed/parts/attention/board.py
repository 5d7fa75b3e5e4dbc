"""The board: everything that needs a person now, over all agents, as a view of the log of events.

An item begins with an event `attention` whose `state` is `opened`, and ends with one of another state. The
`inputRequired` before it has the whole prompt; a later one for the same prompt adds to it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from synapsed.model.events import (
    REMOVED,
    AttentionChanged,
    AttentionKind,
    Event,
    InputRequired,
    ProcessState,
    StateChanged,
    kind_of,
)
from synapsed.model.task import Prompt

ITEMS_MAX = 1000
"""Most open items. If there are more, the oldest that asks nothing is forgotten, or else the oldest."""

CLOSED_MAX = 500
"""Most closed items whose end is remembered."""

TYPES: Final = frozenset({"attention", "inputRequired", "agentState"})
"""Events that the board takes."""


@dataclass(frozen=True, slots=True)
class OpenItem:
    """One thing that needs a person; `since` is in seconds since the epoch."""

    id: str
    agent_id: str
    kind: AttentionKind
    question: str
    since: float
    event: int
    """Id of the event that opened it."""
    task_id: str | None = None
    prompt_id: str | None = None
    prompt: Prompt | None = None
    until: str | None = None

    @property
    def asks(self) -> bool:
        """True if a program waits for an answer."""
        return self.prompt_id is not None


@dataclass(slots=True)
class _Agent:
    """Facts about one agent besides its items."""

    prompt: Prompt | None = None
    running_since: float | None = None


class Board:
    """The open items. `take` must get every event of TYPES, in their order."""

    def __init__(self) -> None:
        self._open: dict[str, OpenItem] = {}
        self._in_order: list[OpenItem] | None = None
        """The items in order; None if they have to be sorted first."""
        self._agents: dict[str, _Agent] = {}
        self._closed: dict[str, AttentionChanged] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def items(self) -> list[OpenItem]:
        """Returns the open items, the oldest first."""
        if self._in_order is None:
            self._in_order = sorted(self._open.values(), key=lambda item: (item.since, item.event))
        return list(self._in_order)

    def get(self, item_id: str) -> OpenItem | None:
        return self._open.get(item_id)

    def of(self, agent_id: str, *kinds: AttentionKind) -> list[OpenItem]:
        """Returns the agent's items of these kinds, the oldest first."""
        return [item for item in self.items if item.agent_id == agent_id and item.kind in kinds]

    def restore(self, opened: Iterable[Event], around: Iterable[Event]) -> None:
        """Restores the items. `opened`: the log's events of open items. `around`: earlier and later events of the same
        agents, in their order; events of items that are not in `opened` are ignored."""
        known = {event.id for event in opened}
        for event in sorted({event.id: event for event in (*opened, *around)}.values(), key=lambda event: event.id):
            if not isinstance(event.data, AttentionChanged) or event.id in known:
                self.take(event)

    def take(self, event: Event) -> None:
        match event.data:
            case InputRequired(prompt=prompt):
                self._asked(event, prompt)
            case AttentionChanged(state="opened") as change:
                self._opened(event, change)
            case AttentionChanged() as change:
                if self._open.pop(change.id, None) is not None:
                    self._in_order = None
                self._closed[change.id] = change
                if len(self._closed) > CLOSED_MAX:
                    del self._closed[next(iter(self._closed))]
            case StateChanged(state=state) if state == REMOVED:
                self._agents.pop(event.agent_id, None)
                self._open = {name: item for name, item in self._open.items() if item.agent_id != event.agent_id}
                self._in_order = None
            case StateChanged(state=state):
                self._agent(event).running_since = event.at if state is ProcessState.RUNNING else None
            case _:
                pass

    def outcome(self, item_id: str) -> AttentionChanged | None:
        """Returns the event that ended the item, if that was not long ago."""
        return self._closed.get(item_id)

    def running_since(self, agent_id: str) -> float | None:
        """Returns the time when the agent's program started to run (seconds since the epoch); None if it does not run,
        or the time is not known."""
        agent = self._agents.get(agent_id)
        return agent.running_since if agent is not None else None

    def _opened(self, event: Event, change: AttentionChanged) -> None:
        agent = self._agent(event)
        asked = agent.prompt
        prompt = asked if asked is not None and asked.prompt_id == change.prompt_id else None
        item = OpenItem(
            id=change.id,
            agent_id=event.agent_id,
            kind=kind_of(change.kind),
            question=prompt.prompt if prompt is not None else change.question,
            since=event.at,
            event=event.id,
            task_id=event.task_id,
            prompt_id=change.prompt_id,
            prompt=prompt,
            until=change.until,
        )
        self._open[item.id] = item
        self._in_order = None
        if len(self._open) > ITEMS_MAX:
            quiet = (known for known in self.items if not known.asks)
            del self._open[next(quiet, self.items[0]).id]
            self._in_order = None

    def _asked(self, event: Event, prompt: Prompt) -> None:
        """Takes a prompt; a prompt that is open already is updated if more is known of it."""
        self._agent(event).prompt = prompt
        for item in self._open.values():
            if item.agent_id == event.agent_id and item.prompt_id == prompt.prompt_id:
                self._open[item.id] = replace(item, prompt=prompt, question=prompt.prompt)
                self._in_order = None

    def _agent(self, event: Event) -> _Agent:
        return self._agents.setdefault(event.agent_id, _Agent())
