"""Turns that a person typed at the agent's terminal, as its side channels tell of them (`turnSeen`). Pure.

A turn is told once it is over, with its text and its answer. Whose it is, is known when its prompt is accepted: it is
a person's where no task is worked on, and the last tasks had another text (a report may be late, or repeated to a new
daemon).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from synapsed.model.events import Event, TurnSeen
from synapsed.model.facts import ChannelFact, PromptAccepted, TurnEnded
from synapsed.model.task import Task

TEXT_MAX = 1 << 20
"""Characters of a text, and of an answer, that are told."""
KNOWN_MAX = 200
"""Turns that are remembered, so that they are not told twice."""


@dataclass(slots=True)
class OwnTurns:
    _open: dict[str, PromptAccepted] = field(default_factory=dict)
    _told: dict[str, None] = field(default_factory=dict)

    def restore(self, events: Iterable[Event]) -> None:
        """What the log has of this agent, oldest first."""
        for event in events:
            if isinstance(event.data, TurnSeen) and event.data.turn_id is not None:
                self._remember(event.data.turn_id)

    def accepted(self, fact: PromptAccepted) -> None:
        """A person's prompt."""
        if fact.turn is None or not fact.prompt or fact.turn in self._told:
            return
        self._open[fact.turn] = fact
        while len(self._open) > KNOWN_MAX:
            del self._open[next(iter(self._open))]

    def over(self, fact: ChannelFact) -> TurnSeen | None:
        """A turn is over; what is to be told of it, if it was a person's."""
        begun = self._open.pop(fact.turn, None) if fact.turn is not None else None
        if begun is None or begun.turn is None:
            return None
        self._remember(begun.turn)
        answer = fact.answer if isinstance(fact, TurnEnded) else None
        return TurnSeen(
            text=(begun.prompt or "")[:TEXT_MAX],
            answer=answer[:TEXT_MAX] if answer is not None else None,
            turn_id=begun.turn,
            source=fact.channel,
        )

    def _remember(self, turn: str) -> None:
        self._told[turn] = None
        while len(self._told) > KNOWN_MAX:
            del self._told[next(iter(self._told))]


def is_of(prompt: str, task: Task) -> bool:
    """Whether the prompt is what was typed for the task: its message, perhaps behind a mark of who sent it."""
    text = _dense(task.message.text)
    return bool(text) and _dense(prompt).endswith(text)


def _dense(text: str) -> str:
    return "".join(text.split())
