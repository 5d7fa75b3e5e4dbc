"""What an agent's turns have used (`usage`): once for each, with the task that it was the turn of. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from synapsed.interfaces import NewEvent
from synapsed.model.events import Event, TokensUsed
from synapsed.model.facts import PromptAccepted, TurnUsed
from synapsed.model.task import Task

KNOWN_MAX = 200
"""Turns that are remembered."""


@dataclass(slots=True)
class UsedTurns:
    _of: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Task and context by turn: the turn's usage is known after its end."""
    _told: dict[str, None] = field(default_factory=dict)

    def restore(self, events: Iterable[Event]) -> None:
        """What the log has of this agent, oldest first."""
        for event in events:
            if isinstance(event.data, TokensUsed) and event.data.turn_id is not None:
                self._remember(event.data.turn_id)

    def belongs(self, fact: PromptAccepted, task: Task) -> None:
        """A turn of the task began."""
        if fact.turn is not None:
            self._of[fact.turn] = (task.id, task.context_id)
            while len(self._of) > KNOWN_MAX:
                del self._of[next(iter(self._of))]

    def told(self, fact: TurnUsed) -> TokensUsed | None:
        """What is to be told, None where it was told before."""
        if fact.turn is None or fact.turn in self._told:
            return None
        self._remember(fact.turn)
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
        """The event, with the task of its turn."""
        task_id, context_id = self._of.get(usage.turn_id or "", (None, None))
        return NewEvent(agent_id, usage, task_id, context_id)

    def _remember(self, turn: str) -> None:
        self._told[turn] = None
        while len(self._told) > KNOWN_MAX:
            del self._told[next(iter(self._told))]
