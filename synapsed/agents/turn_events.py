"""What is told of turns once they are over, each once: those that a person typed at the agent's terminal (`turnSeen`),
with text and answer, and what a turn has used (`usage`), with the task that it was the turn of. Pure.

Whose a typed turn is, is known when its prompt is accepted: it is a person's where no task is worked on, and the last
tasks had another text (a report may be late, or repeated to a new daemon).
"""

from collections.abc import Iterable

from synapsed.interfaces import NewEvent
from synapsed.model.events import Event, TokensUsed, TurnSeen
from synapsed.model.facts import ChannelFact, PromptAccepted, TurnEnded, TurnUsed
from synapsed.model.task import Task

TEXT_MAX = 1 << 20
"""Characters of a text, and of an answer, that are told."""
KNOWN_MAX = 200
"""Turns that are remembered."""


class _ToldTurns:
    def __init__(self, kind: type[TurnSeen | TokensUsed]) -> None:
        self._kind = kind
        self._told: dict[str, None] = {}

    def restore(self, events: Iterable[Event]) -> None:
        """What the log has of this agent, oldest first."""
        for event in events:
            if isinstance(event.data, self._kind) and event.data.turn_id is not None:
                _keep(self._told, event.data.turn_id, None)


class OwnTurns(_ToldTurns):
    """Those that a person typed."""

    def __init__(self) -> None:
        super().__init__(TurnSeen)
        self._open: dict[str, PromptAccepted] = {}

    def accepted(self, fact: PromptAccepted) -> None:
        """A person's prompt."""
        if fact.turn is not None and fact.prompt and fact.turn not in self._told:
            _keep(self._open, fact.turn, fact)

    def over(self, fact: ChannelFact) -> TurnSeen | None:
        """A turn is over; what is to be told of it, if it was a person's."""
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
    """What turns have used, which is known after their end."""

    def __init__(self) -> None:
        super().__init__(TokensUsed)
        self._of: dict[str, tuple[str, str]] = {}
        """Task and context by turn."""

    def belongs(self, fact: PromptAccepted, task: Task) -> None:
        """A turn of the task began."""
        if fact.turn is not None:
            _keep(self._of, fact.turn, (task.id, task.context_id))

    def told(self, fact: TurnUsed) -> TokensUsed | None:
        """What is to be told, None where it was told before."""
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
        """The event, with the task of its turn."""
        task_id, context_id = self._of.get(usage.turn_id or "", (None, None))
        return NewEvent(agent_id, usage, task_id, context_id)


def is_of(prompt: str, task: Task) -> bool:
    """Whether the prompt is what was typed for the task: its message, perhaps behind a mark of who sent it."""
    text = _dense(task.message.text)
    return bool(text) and _dense(prompt).endswith(text)


def _dense(text: str) -> str:
    return "".join(text.split())


def _keep[T](kept: dict[str, T], turn: str, value: T) -> None:
    """Keep it, and of more than `KNOWN_MAX` the newest."""
    kept[turn] = value
    while len(kept) > KNOWN_MAX:
        del kept[next(iter(kept))]
