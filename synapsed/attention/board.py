"""Everything that needs a person now, over all agents: a view of the log of events.

An item begins with the event `attention` that is `opened` and ends with the one that is not. The events around it say
the rest: `inputRequired` has the prompt whole, and `toolExecution` what the program is about to do.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from synapsed.model.agent import ProcessState
from synapsed.model.attention import Kind, kind_of
from synapsed.model.events import AttentionChanged, Event, InputRequired, StateChanged, ToolExecution
from synapsed.model.events.kinds import REMOVED
from synapsed.model.task import Prompt

ITEMS_MAX = 1000
"""Open items. Of more, the oldest that asks nothing is not shown any more, or else the oldest."""

CLOSED_MAX = 500
"""Items of which it is known how they ended."""

CALLS_MAX = 50
"""Tool calls that are open at one agent, of which one may be what it asks about."""

COMMAND_MAX = 10_000
"""Characters of a command."""

SHOWN = 80
"""Characters of a text, without white space, that a dialog has to show of it: programs cut what is long."""

TYPES: Final = frozenset({"attention", "inputRequired", "toolExecution", "agentState"})
"""Events that the board takes."""

_COMMANDS: Final = ("command", "cmd")
"""The fields of a call's input that are a command, whatever else the dialog shows of it."""


@dataclass(frozen=True, slots=True)
class OpenItem:
    """One thing that needs a person; `since` is in seconds since the epoch."""

    id: str
    agent_id: str
    kind: Kind
    question: str
    since: float
    event: int
    """Id of the event that opened it."""
    task_id: str | None = None
    prompt_id: str | None = None
    prompt: Prompt | None = None
    command: str | None = None
    until: str | None = None

    @property
    def asks(self) -> bool:
        """Whether a program waits for an answer."""
        return self.prompt_id is not None


@dataclass(slots=True)
class _Agent:
    """What was told of one agent around its items."""

    prompt: Prompt | None = None
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Input of the calls that are open, oldest first."""
    running_since: float | None = None


class Board:
    """`take` it every event of TYPES, in their order."""

    def __init__(self) -> None:
        self._open: dict[str, OpenItem] = {}
        self._in_order: list[OpenItem] | None = None
        """None where it has to be made."""
        self._agents: dict[str, _Agent] = {}
        self._closed: dict[str, AttentionChanged] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def items(self) -> list[OpenItem]:
        """The oldest first."""
        if self._in_order is None:
            self._in_order = sorted(self._open.values(), key=lambda item: (item.since, item.event))
        return list(self._in_order)

    def get(self, item_id: str) -> OpenItem | None:
        return self._open.get(item_id)

    def of(self, agent_id: str, *kinds: Kind) -> list[OpenItem]:
        """Items of the agent, of these kinds, the oldest first."""
        return [item for item in self.items if item.agent_id == agent_id and item.kind in kinds]

    def restore(self, opened: Iterable[Event], around: Iterable[Event]) -> None:
        """`opened`: what the log says is open. `around`: events of the same agents that came before and after those,
        in their order; what is among them of other items is passed over."""
        known = {event.id for event in opened}
        for event in sorted({event.id: event for event in (*opened, *around)}.values(), key=lambda event: event.id):
            if not isinstance(event.data, AttentionChanged) or event.id in known:
                self.take(event)

    def take(self, event: Event) -> None:
        match event.data:
            case InputRequired(prompt=prompt):
                self._agent(event).prompt = prompt
            case ToolExecution() as told:
                self._tool(event, told)
            case AttentionChanged(state="opened") as told:
                self._opened(event, told)
            case AttentionChanged() as told:
                if self._open.pop(told.id, None) is not None:
                    self._in_order = None
                self._closed[told.id] = told
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
        """How the item ended, if that was not long ago."""
        return self._closed.get(item_id)

    def running_since(self, agent_id: str) -> float | None:
        """Since when its program runs (seconds since the epoch); None if it does not, or nothing was told of it."""
        agent = self._agents.get(agent_id)
        return agent.running_since if agent is not None else None

    def _opened(self, event: Event, told: AttentionChanged) -> None:
        agent = self._agent(event)
        asked = agent.prompt
        prompt = asked if asked is not None and asked.prompt_id == told.prompt_id else None
        item = OpenItem(
            id=told.id,
            agent_id=event.agent_id,
            kind=kind_of(told.kind),
            question=prompt.prompt if prompt is not None else told.question,
            since=event.at,
            event=event.id,
            task_id=event.task_id,
            prompt_id=told.prompt_id,
            prompt=prompt,
            until=told.until,
        )
        self._open[item.id] = replace(item, command=_shown_command(item, agent.calls))
        self._in_order = None
        if len(self._open) > ITEMS_MAX:
            quiet = (known for known in self.items if not known.asks)
            del self._open[next(quiet, self.items[0]).id]
            self._in_order = None

    def _tool(self, event: Event, told: ToolExecution) -> None:
        """Programs tell of a call before or after they ask about it."""
        calls, name = self._agent(event).calls, told.call_id or told.tool_name
        if told.status != "started":
            calls.pop(name, None)
            return
        calls[name] = told.input or {}
        if len(calls) > CALLS_MAX:
            del calls[next(iter(calls))]
        for item in self._open.values():
            if item.agent_id != event.agent_id or item.command is not None:
                continue
            if (command := _shown_command(item, calls)) is not None:
                self._open[item.id] = replace(item, command=command)
                self._in_order = None

    def _agent(self, event: Event) -> _Agent:
        return self._agents.setdefault(event.agent_id, _Agent())


def _shown_command(item: OpenItem, calls: Mapping[str, Mapping[str, Any]]) -> str | None:
    """What the dialog asks about: of the newest open call that it shows a text of, the command, or else that text."""
    if item.kind != "permission" or item.prompt is None:
        return None
    dialog = _dense(item.prompt.prompt)
    for told in reversed(list(calls.values())):
        texts = [*(text for name in _COMMANDS if (text := _text(told.get(name)))), *_texts(told)]
        if shown := [text for text in texts if _dense(text)[:SHOWN] in dialog]:
            named = next((text for name in _COMMANDS if (text := _text(told.get(name)))), None)
            return (named or max(shown, key=len))[:COMMAND_MAX]
    return None


def _text(value: object) -> str:
    """A command in one piece; several words are one command."""
    if isinstance(value, str):
        return value if value.strip() else ""
    if isinstance(value, Sequence) and value and all(isinstance(word, str) for word in value):
        return " ".join(value)
    return ""


def _texts(value: Any) -> list[str]:
    """Every text in it that has more than a few characters: what is shorter stands in many a dialog by chance."""
    if isinstance(value, str):
        return [value] if len(value.strip()) > 2 else []
    items: Iterable[Any] = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [text for item in items for text in _texts(item)]


def _dense(text: str) -> str:
    return "".join(text.split())
