"""Attention: the questions and faults of one agent that need a person, each reported when it begins, and once when it
is answered or gone. Pure.

Every change is an `AttentionChange`: the events that report it, for the commit that makes it true, and the open items
afterwards. The next daemon reads the open items from the log (`EventLog.open_attention`), so that no item is opened
twice.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from synapsed.agents.pending_answers import Given
from synapsed.interfaces import NewEvent
from synapsed.model.attention import OF_PROMPT, AttentionKind
from synapsed.model.events import AttentionChanged, Event, EventData, InputAnswered, InputRequired, Origin
from synapsed.model.link import LinkAlert, LinkObserved
from synapsed.model.task import Prompt, Task, new_id

QUESTION_SHOWN = 500
"""Largest number of characters of a question in a notice to a person; the prompt has all of it."""

ALERT = "alert"

ASKED_BESIDE = frozenset({"UNKNOWN_SCREEN"})
"""Codes of alerts that come with a prompt about the same thing: the person needs only the prompt."""

TERMINAL = Origin("person", where="terminal")


@dataclass(frozen=True, slots=True)
class AttentionChange:
    """A change of the open items."""

    events: tuple[NewEvent, ...]
    """Events that report the change."""
    open: tuple["_Open", ...]
    """The open items once the events are durable."""
    settled: "_Open | None" = None
    """The prompt that was answered last, until something else is seen: it may stay on the screen for a moment."""


@dataclass(frozen=True, slots=True)
class _Open:
    told: AttentionChanged
    task_id: str | None
    context_id: str | None
    asking: int | None = None
    """`LinkObserved.asking` of a prompt; None if another daemon has reported it."""
    code: str | None = None
    """Code of an alert."""
    prompt: Prompt | None = None
    """The prompt as it was last reported; None if another daemon has reported it."""


class Attention:
    """The open items of one agent. `plan`: text that marks a prompt about a plan (`profiles.Prompts`)."""

    def __init__(self, agent_id: str, *, plan: Sequence[re.Pattern[str]] = ()) -> None:
        self._agent_id = agent_id
        self._plan = plan
        self._open: tuple[_Open, ...] = ()
        self._settled: _Open | None = None

    def restore(self, opened: Iterable[Event]) -> None:
        """Restores the items that were open when the last daemon ended; items that are neither prompts nor alerts
        belong to other modules. Alerts are reported again by the code that raises them."""
        self._open = tuple(
            _Open(event.data, event.task_id, event.context_id, code=event.data.code)
            for event in opened
            if isinstance(event.data, AttentionChanged) and (event.data.prompt_id or event.data.code)
        )

    def believe(self, change: AttentionChange) -> None:
        """Takes over a change that is durable."""
        self._open, self._settled = change.open, change.settled

    def observed(self, seen: LinkObserved, task: Task | None, *, answering: bool) -> AttentionChange:
        """Compares the open items with the prompt that the program shows now, in `task` or outside a task. While an
        answer is being typed (`answering`), nothing is reported: the prompt may vanish because of it."""
        asked = self._open_question
        if answering or (seen.prompt is not None and _is(self._settled, seen.prompt, seen.asking)):
            return AttentionChange((), self._open, self._settled)
        if asked is None and seen.prompt is None:
            return AttentionChange((), self._open)
        if asked is not None and seen.prompt is not None and _is(asked, seen.prompt, seen.asking):
            known = replace(asked, asking=seen.asking, prompt=seen.prompt)
            more = (self._event(InputRequired(prompt=seen.prompt), known),) if _differs(asked, seen.prompt) else ()
            return AttentionChange(more, tuple(known if one is asked else one for one in self._open))
        repeated = asked is not None and seen.prompt is not None and asked.asking not in (None, seen.asking)
        events, kept = self._ended(asked, by_hand=seen.by_hand, repeated=repeated)
        if seen.prompt is None:
            return AttentionChange(events, kept)
        begun = _Open(
            AttentionChanged(
                id=new_id(),
                state="opened",
                kind=self._kind(seen.prompt),
                question=seen.prompt.prompt[:QUESTION_SHOWN],
                prompt_id=seen.prompt.prompt_id,
            ),
            task.id if task is not None else None,
            task.context_id if task is not None else None,
            seen.asking,
            prompt=seen.prompt,
        )
        return AttentionChange(
            (*events, self._event(InputRequired(prompt=seen.prompt), begun), self._event(begun.told, begun)),
            (*kept, begun),
        )

    def answered(self, given: Given, task: Task | None) -> AttentionChange:
        origin, answer = given.origin, None if given.secret else given.answer.text
        told = InputAnswered(prompt_id=given.prompt_id, answer=answer, by=origin.by, who=origin.who, where=origin.where)
        asked = self._open_question
        if asked is None or asked.told.prompt_id != given.prompt_id:
            whose = NewEvent.of(task, told) if task is not None else NewEvent(self._agent_id, told)
            return AttentionChange((whose,), self._open, self._settled)
        over = self._event(_closed(asked, "answered", origin), asked)
        return AttentionChange((self._event(told, asked), over), self._without([asked]), asked)

    def alerted(self, alert: LinkAlert) -> AttentionChange:
        """Notes that a fault began or was repaired."""
        known = [one for one in self._open if one.code == alert.code]
        if alert.state == "begins" and not known and not (alert.code in ASKED_BESIDE and self._open_question):
            told = AttentionChanged(id=new_id(), state="opened", kind=ALERT, question=alert.message, code=alert.code)
            begun = _Open(told, None, None, code=alert.code)
            return AttentionChange((self._event(told, begun),), (*self._open, begun), self._settled)
        if alert.state == "over":
            return self._gone(known)
        return AttentionChange((), self._open, self._settled)

    def renewed(self) -> AttentionChange:
        """Closes the alerts: the program was adopted, and those whose causes last are raised again."""
        return self._gone([one for one in self._open if one.code is not None])

    def over(self) -> AttentionChange:
        """Closes all items, because the program is gone."""
        return self._gone(self._open)

    def _kind(self, prompt: Prompt) -> AttentionKind:
        is_plan = any(pattern.search(prompt.prompt) for pattern in self._plan)
        return "plan" if is_plan else OF_PROMPT[prompt.type]

    @property
    def _open_question(self) -> _Open | None:
        return next((one for one in self._open if one.code is None), None)

    def _ended(
        self, asked: _Open | None, *, by_hand: str | None, repeated: bool
    ) -> tuple[tuple[NewEvent, ...], tuple[_Open, ...]]:
        """Closes a prompt that left the screen, or is asked once more, without an answer through synapsed."""
        if asked is None:
            return (), self._open
        prompt_id = asked.told.prompt_id
        kept = self._without([asked])
        if by_hand is None or by_hand != prompt_id:
            state = "answered" if repeated else "gone"  # asked again, so there was an answer, which was not right
            return (self._event(_closed(asked, state, None), asked),), kept
        told = InputAnswered(prompt_id=by_hand, answer=None, by=TERMINAL.by, where=TERMINAL.where)
        return (self._event(told, asked), self._event(_closed(asked, "answered", TERMINAL), asked)), kept

    def _gone(self, which: Sequence[_Open]) -> AttentionChange:
        events = tuple(self._event(_closed(one, "gone", None), one) for one in which)
        return AttentionChange(events, self._without(which), self._settled)

    def _without(self, which: Sequence[_Open]) -> tuple[_Open, ...]:
        return tuple(one for one in self._open if one not in which)

    def _event(self, data: EventData, of: _Open) -> NewEvent:
        return NewEvent(self._agent_id, data, of.task_id, of.context_id)


def _is(asked: _Open | None, prompt: Prompt, asking: int) -> bool:
    return asked is not None and asked.told.prompt_id == prompt.prompt_id and asked.asking in (None, asking)


def _differs(asked: _Open, prompt: Prompt) -> bool:
    """Returns whether a command or edit is known now that differs from the one reported with the prompt."""
    if asked.prompt is None:
        return prompt.command is not None or prompt.diff is not None
    return not asked.prompt.is_same(prompt)


def _closed(one: _Open, state: str, origin: Origin | None) -> AttentionChanged:
    who = {} if origin is None else {"by": origin.by, "who": origin.who, "where": origin.where}
    return one.told.model_copy(update={"state": state, **who})
