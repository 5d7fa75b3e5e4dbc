"""Computes changes of a person's mood levels from an agent's events, one after the other, by the times of the events.

The points of an emotion halve within its half-life, and signals add to them. A level follows from points with
hysteresis: it rises at one bound, and falls at a lower one and no sooner than HOLD_S after its last report. It is only
evaluated at a person's actions and their results; in between there are no reports. The same events give the same
updates, even if the state was saved and read again in between.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import get_args

from synapsed.model.events import (
    EmotionUpdate,
    Event,
    InputAnswered,
    InputRequired,
    TaskDelivered,
    TaskStatusChanged,
    TurnSeen,
)
from synapsed.model.sender import Sender
from synapsed.model.task import TERMINAL_STATES, Prompt, Said, TaskState, ends
from synapsed.parts.moods.likeness import alike, sketch
from synapsed.parts.moods.mood_record import Feeling, MoodState, Open, OpenQuestion
from synapsed.parts.moods.signals import HALF_LIFE_S, LEAVES, PATTERN, REACHES, SIGNALS, TEXT, points
from synapsed.parts.moods.text import own_words, signs
from synapsed.parts.moods.words import Emotion
from synapsed.shared.choices import choice

EMOTIONS: tuple[Emotion, ...] = get_args(Emotion.__value__)

TYPES = frozenset({"taskStatus", "taskDelivered", "turnSeen", "inputRequired", "inputAnswered"})
"""Types of the events that the scorer uses."""

POINTS_MAX = 6.0
"""Most points of an emotion: so a signal that lasts an hour fades as quickly as a short one."""
HOLD_S = 60.0
"""Least seconds for which a level stays before it falls."""
AGAIN_S = 1800.0
"""Seconds in which the same question counts as asked again."""
PAUSE_S = 1800.0
"""Seconds without an action of the person after which a session is over."""
QUICK_S = 120.0
"""Most seconds from the delivery of a task to its completion that count as quick."""
STREAK = 3
URGENT = 5
"""The priority that interrupts."""
SESSIONS: tuple[tuple[float, float], ...] = ((6.0, 4.5), (4.5, 3.2), (3.0, 2.0), (2.0, 1.0))
"""Hours of a session, with the least points of fatigue after them."""
ASKED_MAX, OPEN_MAX, REFUSALS_MAX = 5, 50, 5

_BY_A_PERSON = frozenset({"canceled", "person"})
"""Reasons of a task that a person has canceled."""
_INTERRUPTED = "interrupted"
"""Reason if the agent was interrupted, or a message of priority 5 came."""

type Found = dict[str, int]


def asks_for_text(event: Event) -> bool:
    """Returns True if `evaluate` needs the text of the event's task."""
    return isinstance(event.data, TaskStatusChanged) and event.data.state is TaskState.SUBMITTED


class Scorer:
    """Scores one agent. `state` is the state from which `evaluate` continues."""

    def __init__(self, state: MoodState | None = None) -> None:
        self.state = state or MoodState()

    def evaluate(self, event: Event, said: Said | None = None) -> list[EmotionUpdate]:
        """Returns the reports after the event. `said`: the text of the event's task, if `asks_for_text`."""
        found: Found | None = None
        match event.data:
            case TaskStatusChanged(state=TaskState.SUBMITTED):
                found = None if said is None else self._sent(event, said)
            case TaskStatusChanged() if event.data.state in TERMINAL_STATES:
                found = self._over(event, event.data)
            case TaskDelivered():
                self._delivered(event)
            case TurnSeen():
                found = self._message(ends([event.data.text]), at=event.at)
            case InputRequired():
                self._asks(event.data.prompt)
            case InputAnswered():
                found = self._answered(event.data, event.at)
            case _:
                pass
        return [] if found is None else self._changes(found, event.at)

    # --- what happened: None where it is no reason to look ---

    def _sent(self, event: Event, said: Said) -> Found | None:
        state, task = self.state, event.task_id or ""
        urgent = said.priority >= URGENT
        if Sender.of(said.metadata) is not None:
            if urgent:
                state.others = [*state.others, task][-OPEN_MAX:]
            return None
        found = self._message(said.text, at=event.at, task=task)
        state.open = [*state.open, Open(id=task, at=event.at, urgent=urgent)][-OPEN_MAX:]
        return {**found, "urgency": 1} if urgent else found

    def _message(self, text: str, *, at: float, task: str | None = None) -> Found:
        own = own_words(text)
        found = signs(own)
        asked = OpenQuestion(at=at, sketch=sketch(own.casefold()), task=task)
        same = [one for one in self.state.asked if at - one.at <= AGAIN_S and alike(one.sketch, asked.sketch)]
        if same:
            found |= {"retry": 1} if same[-1].missed else {"repeat": len(same)}
        self.state.asked = [*self.state.asked, asked][-ASKED_MAX:]
        return found | self._acts(at)

    def _acts(self, at: float) -> Found:
        """Notes an action of the person, which continues or begins a session."""
        state = self.state
        if state.session is None or at - state.acted > PAUSE_S:
            state.session = at
        state.session, state.acted = min(state.session, at), at
        return {"long_session": 1} if self._tires(at) else {}

    def _tires(self, at: float) -> float:
        """Returns the least points of fatigue for the session's length."""
        hours = 0.0 if self.state.session is None else (at - self.state.session) / 3600
        return next((least for since, least in SESSIONS if hours >= since), 0.0)

    def _delivered(self, event: Event) -> None:
        for one in self.state.open:
            if one.id == event.task_id:
                one.at = event.at

    def _over(self, event: Event, told: TaskStatusChanged) -> Found | None:
        state, task = self.state, event.task_id
        by_others = bool(state.others)
        state.others = [other for other in state.others if other != task]
        own = next((one for one in state.open if one.id == task), None)
        if own is None:
            return None
        state.open = [one for one in state.open if one is not own]
        by_others = by_others or any(one.urgent for one in state.open)  # an urgent message counted when it was sent
        return self._outcome(own, told, event.at, by_others=by_others)

    def _outcome(self, own: Open, told: TaskStatusChanged, at: float, *, by_others: bool) -> Found | None:
        state = self.state
        if told.state is TaskState.COMPLETED:
            if at - own.at > QUICK_S:
                state.streak = 0
                return {}
            state.streak += 1
            return {"quick_success": 1, **({"streak": 1} if state.streak >= STREAK else {})}
        state.streak = 0
        for one in state.asked:
            one.missed = one.missed or one.task == own.id
        if told.state is TaskState.FAILED:
            return {"failure": 1}
        stopped = told.reason in _BY_A_PERSON or (told.reason == _INTERRUPTED and not by_others)
        return {"interrupt": 1} | self._acts(at) if stopped else None

    def _asks(self, prompt: Prompt) -> None:
        try:
            no = choice(prompt.model_dump(include={"type", "options"}), accept=False)
        except ValueError:
            return
        self.state.refusals = [*self.state.refusals, (prompt.prompt_id, no)][-REFUSALS_MAX:]

    def _answered(self, told: InputAnswered, at: float) -> Found | None:
        if told.by != "person":
            return None
        found = self._acts(at)
        return found | {"denial": 1} if (told.prompt_id, told.answer) in self.state.refusals else found

    # --- what follows ---

    def _changes(self, found: Found, at: float) -> list[EmotionUpdate]:
        text, pattern = points(found, TEXT), points(found, PATTERN)
        passed = max(0.0, at - self.state.at)
        self.state.at = at
        told = []
        for emotion in EMOTIONS:
            feeling = self.state.feelings.get(emotion)
            if feeling is None:
                feeling = self.state.feelings[emotion] = Feeling()
            by_text, by_pattern = text.get(emotion, 0.0), pattern.get(emotion, 0.0)
            least = self._tires(at) if emotion == "fatigue" and "long_session" in found else 0.0
            value = feeling.points * 0.5 ** (passed / HALF_LIFE_S[emotion]) + by_text + by_pattern
            if least > value:
                by_pattern += least - value
            feeling.points = min(max(value, least, 0.0), POINTS_MAX)
            if by_text or by_pattern:
                feeling.source = TEXT if abs(by_text) > abs(by_pattern) else PATTERN
            if (update := _update(emotion, feeling, found, at)) is not None:
                told.append(update)
        return told


def _update(emotion: Emotion, feeling: Feeling, found: Mapping[str, int], at: float) -> EmotionUpdate | None:
    level = level_of(feeling.points, feeling.level)
    held = feeling.told is not None and 0 <= at - feeling.told < HOLD_S
    if level == feeling.level or (level < feeling.level and held):
        return None
    feeling.level, feeling.told = level, at
    return EmotionUpdate(
        emotion_type=emotion,
        level=level,
        detected_from=feeling.source,
        evidence=_evidence(emotion, found, tires=emotion == "fatigue") or "nothing more of it was seen",
    )


def level_of(value: float, before: int) -> int:
    """Returns the level for `value` points after the level `before`."""
    reached, kept = 1 + bisect_right(REACHES, value), 1 + bisect_right(LEAVES, value)
    return max(reached, min(before, kept))


def _evidence(emotion: Emotion, found: Mapping[str, int], *, tires: bool) -> str:
    """Returns the signals of the change, in fixed words, not the person's."""
    names: Iterable[tuple[str, int]] = (
        (SIGNALS[name].evidence, count)
        for name, count in found.items()
        if emotion in SIGNALS[name].points or (tires and name == "long_session")
    )
    return ", ".join(evidence if count == 1 else f"{evidence} ({count} times)" for evidence, count in names)
