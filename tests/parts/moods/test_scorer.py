"""Conversations, and which levels are told."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.model.events import (
    EmotionUpdate,
    Event,
    EventData,
    InputAnswered,
    InputRequired,
    TaskDelivered,
    TaskStatusChanged,
    TurnSeen,
)
from synapsed.model.task import Prompt, PromptOption, Said, TaskState
from synapsed.parts.moods.mood_record import MoodState
from synapsed.parts.moods.scorer import EMOTIONS, HOLD_S, Scorer, level_of
from synapsed.parts.moods.signals import LEAVES, REACHES, SIGNALS

type Told = tuple[str, int, str]

PROMPT = Prompt(
    prompt_id="p",
    type="permission",
    prompt="Run it?",
    options=[PromptOption(key="1", label="Yes"), PromptOption(key="2", label="No")],
)
QUESTION = "why does the login test fail"
PERSON: dict[str, Any] = {}
AGENT = {"sender": {"sender_id": "synapse-codex-8120", "tier": "agent"}}
SCHEDULE = {"sender": {"sender_id": "schedule-standup", "tier": "person"}}


class Conversation:
    """Says what happens, at `now`, and keeps what is told. With `kept` the state is kept and read before each event."""

    def __init__(self, *, kept: bool = False) -> None:
        self.scorer = Scorer()
        self.now = 1_000_000.0
        self.updates: list[tuple[float, EmotionUpdate]] = []
        self.id = 0
        self._kept = kept

    @property
    def told(self) -> list[Told]:
        return [(update.emotion_type, update.level, update.detected_from) for _, update in self.updates]

    def happens(self, data: EventData, *, task: str | None = None, said: Said | None = None) -> None:
        self.id += 1
        if self._kept:
            self.scorer = Scorer(MoodState.model_validate_json(self.scorer.state.model_dump_json()))
        event = Event(id=self.id, at=self.now, agent_id="a", task_id=task, data=data)
        self.updates += [(self.now, update) for update in self.scorer.evaluate(event, said)]

    def says(self, text: str, *, priority: int = 1, metadata: dict[str, Any] = PERSON) -> str:
        task = f"t{self.id}"
        self.happens(TaskStatusChanged(state=TaskState.SUBMITTED), task=task, said=Said(text, metadata, priority))
        return task

    def ends(self, task: str, state: TaskState = TaskState.COMPLETED, reason: str | None = None) -> None:
        self.happens(TaskStatusChanged(state=state, reason=reason), task=task)

    def after(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(params=[False, True], ids=["one-life", "read-again-each-time"])
def talk(request: pytest.FixtureRequest) -> Conversation:
    return Conversation(kept=request.param)


def test_one_strong_word_is_not_told(talk: Conversation) -> None:
    talk.says("fix that annoying warning")
    assert talk.told == []


def test_words_raise_it(talk: Conversation) -> None:
    talk.says("wtf, this is useless!!")
    assert talk.told == [("frustration", 2, "text_analysis")]
    talk.says("You broke it, stupid. I TOLD YOU THAT")
    assert talk.told[1:] == [("frustration", 4, "text_analysis")]
    (_, last) = talk.updates[-1]
    assert last.evidence == "words of annoyance (3 times), capitals"


def test_interrupts_add_up(talk: Conversation) -> None:
    for reason in ("canceled", "person", "interrupted", "canceled"):
        task = talk.says("go on")
        talk.after(10)
        talk.ends(task, TaskState.CANCELED, reason)
    assert talk.told == [("frustration", 2, "interaction_pattern"), ("frustration", 3, "interaction_pattern")]


def test_an_interrupt_for_another_agents_message_is_not_the_persons(talk: Conversation) -> None:
    for _ in range(5):
        task = talk.says("do it")
        other = talk.says("hurry", priority=5, metadata=AGENT)
        talk.ends(task, TaskState.CANCELED, "interrupted")
        talk.ends(other)
    assert talk.told == []


@pytest.mark.parametrize("reason", ["removed", "the daemon"])
def test_a_task_that_went_with_its_agent_is_no_interrupt(talk: Conversation, reason: str) -> None:
    for _ in range(5):
        talk.ends(talk.says("do it"), TaskState.CANCELED, reason)
    assert talk.told == []


def test_a_message_that_interrupts_counts_once(talk: Conversation) -> None:
    task = talk.says("do it")
    talk.says("no, stop that", priority=5)
    talk.ends(task, TaskState.CANCELED, "interrupted")
    assert talk.scorer.state.feelings["frustration"].points == pytest.approx(0.4)


def test_the_same_question_again(talk: Conversation) -> None:
    for _ in range(3):
        task = talk.says(QUESTION)
        talk.after(300)
        talk.ends(task)
    assert talk.told == [("frustration", 2, "interaction_pattern")]
    assert talk.updates[0][1].evidence == "the same question again (2 times)"


def test_another_question_is_none(talk: Conversation) -> None:
    for words in ("login test fail", "search page hang", "export file break", "mail job stall"):
        talk.ends(talk.says(f"Say: {words}"))
        talk.after(300)
    assert [told for told in talk.told if told[0] == "frustration"] == []


def test_a_retry_after_a_failure(talk: Conversation) -> None:
    talk.ends(talk.says(QUESTION), TaskState.FAILED)
    talk.says(QUESTION)
    assert talk.told == [("frustration", 2, "interaction_pattern")]
    assert talk.updates[0][1].evidence == "the same tried again"


def test_the_same_question_an_hour_later_is_not_again(talk: Conversation) -> None:
    for _ in range(4):
        talk.ends(talk.says(QUESTION))
        talk.after(3600)
    assert [told for told in talk.told if told[0] == "frustration"] == []


def test_refusals(talk: Conversation) -> None:
    talk.happens(InputRequired(prompt=PROMPT))
    for by, answer in (("person", "2"), ("person", "1"), ("rule", "2"), ("agent", "2"), ("person", "2")):
        talk.happens(InputAnswered(prompt_id="p", answer=answer, by=by))
    assert talk.told == [("frustration", 2, "interaction_pattern")]
    assert talk.updates[0][1].evidence == "a refusal"


def test_quick_successes(talk: Conversation) -> None:
    for number in range(4):
        task = talk.says(f"step {number}")
        talk.after(600)
        talk.happens(TaskDelivered(attempt=1), task=task)
        talk.after(30)
        talk.ends(task)
        talk.after(30)
    assert ("confidence", 2, "interaction_pattern") in talk.told
    assert talk.scorer.state.streak == 4
    slow = talk.says("a long one")
    talk.after(500)
    talk.ends(slow)
    assert talk.scorer.state.streak == 0


def test_joy_of_a_streak(talk: Conversation) -> None:
    for number in range(4):
        task = talk.says(f"step {number}")
        talk.after(20)
        talk.ends(task)
    assert ("joy", 2, "interaction_pattern") in talk.told


def test_a_long_session_tires_and_a_break_rests(talk: Conversation) -> None:
    for _ in range(7 * 4):
        talk.says("and the next one")
        talk.after(900)
    levels = [told for told in talk.told if told[0] == "fatigue"]
    assert levels == [("fatigue", level, "interaction_pattern") for level in (2, 3, 4, 5)]
    talk.after(12 * 3600)
    talk.says("good morning")
    assert talk.told[-1] == ("fatigue", 1, "interaction_pattern")
    assert talk.updates[-1][1].evidence == "nothing more of it was seen"


def test_thanks_calm_but_not_at_once(talk: Conversation) -> None:
    talk.says("wtf, this is useless!!")
    talk.after(10)
    for _ in range(5):
        talk.says("Great, perfect, thanks!")
    assert [told for told in talk.told if told[0] == "frustration"] == [("frustration", 2, "text_analysis")]
    talk.after(HOLD_S)
    talk.says("thanks")
    assert [level for emotion, level, _ in talk.told if emotion == "frustration"] == [2, 1]


@pytest.mark.parametrize("metadata", [AGENT, SCHEDULE, {"sender": "somebody"}])
def test_what_others_send_is_not_the_persons(talk: Conversation, metadata: dict[str, Any]) -> None:
    for _ in range(5):
        task = talk.says("wtf, this is useless!! I TOLD YOU THAT", metadata=metadata, priority=5)
        talk.ends(task, TaskState.CANCELED, "canceled")
    assert talk.told == []
    assert talk.scorer.state.feelings == {}


def test_a_turn_at_the_terminal_counts(talk: Conversation) -> None:
    talk.happens(TurnSeen(text="wtf, this is useless!!", answer="I hate this. Stupid, damn"))
    assert talk.told == [("frustration", 2, "text_analysis")]


def test_nothing_of_the_text_is_kept_or_told(talk: Conversation) -> None:
    talk.says("wtf, this is useless!! The Hedgehog password is correct-horse")
    kept = talk.scorer.state.model_dump_json() + "".join(update.model_dump_json() for _, update in talk.updates)
    for word in ("hedgehog", "horse", "useless", "wtf", "password"):
        assert word not in kept.lower()


def test_a_clock_that_is_set_back_and_forth(talk: Conversation) -> None:
    talk.says("wtf, this is useless!!")
    talk.after(-86_400 * 365)
    talk.says("go on, then")
    talk.after(3600)
    talk.says("go on, then")
    assert talk.told[:2] == [("frustration", 2, "text_analysis"), ("frustration", 1, "text_analysis")]


def test_a_level_stays_between_its_bounds() -> None:
    for level, (reached, left) in enumerate(zip(REACHES, LEAVES, strict=True), start=2):
        between = (reached + left) / 2
        assert left < reached
        assert level_of(between, level) == level
        assert level_of(between, level - 1) == level - 1
        assert level_of(reached, 1) == level
        assert level_of(left - 0.01, 5) == level - 1


MESSAGES = [
    "wtf, useless!!",
    "thanks, perfect!",
    "so tired",
    QUESTION,
    "lgtm, ship it",
    "go on",
    "ありがとう",
    "もういい",
]
STEP = st.tuples(
    st.sampled_from(["says", "other", "completed", "failed", "canceled", "terminal", "asks", "no", "yes", "sent"]),
    st.sampled_from(MESSAGES),
    st.floats(-10, 4000),
)


def played(steps: list[tuple[str, str, float]], *, kept: bool = False) -> Conversation:
    talk = Conversation(kept=kept)
    tasks = ["nobody's"]
    for what, text, seconds in steps:
        talk.after(seconds)
        match what:
            case "says" | "other":
                tasks.append(talk.says(text, metadata=AGENT if what == "other" else PERSON, priority=len(text) % 6))
            case "terminal":
                talk.happens(TurnSeen(text=text))
            case "asks":
                talk.happens(InputRequired(prompt=PROMPT))
            case "no" | "yes":
                talk.happens(InputAnswered(prompt_id="p", answer="2" if what == "no" else "1", by="person"))
            case "sent":
                talk.happens(TaskDelivered(attempt=1), task=tasks[-1])
            case _:
                talk.ends(tasks.pop() if len(tasks) > 1 else tasks[0], TaskState(what), "canceled")
    return talk


@given(st.lists(STEP, max_size=60))
def test_any_conversation(steps: list[tuple[str, str, float]]) -> None:
    talk = played(steps)
    assert [one.model_dump() for _, one in talk.updates] == [one.model_dump() for _, one in played(steps).updates]
    assert talk.updates == played(steps, kept=True).updates, "kept and read again, it goes on as it was"
    for emotion in EMOTIONS:
        before, at = 1, None
        for now, update in talk.updates:
            if update.emotion_type != emotion:
                continue
            assert 1 <= update.level <= 5
            assert update.level != before, "it is told on change only"
            if update.level < before and at is not None and now >= at:
                assert now - at >= HOLD_S
            before, at = update.level, now
    known = {signal.evidence for signal in SIGNALS.values()} | {"nothing more of it was seen"}
    for _, update in talk.updates:
        assert {part.partition(" (")[0] for part in (update.evidence or "").split(", ")} <= known
    state = talk.scorer.state
    assert len(state.asked) <= 5
    assert len(state.open) <= 50
    assert len(state.refusals) <= 5
    assert all(0 <= feeling.points <= 6 for feeling in state.feelings.values())


def test_what_is_kept_is_bounded() -> None:
    talk = Conversation()
    for number in range(500):
        talk.says(f"{number} {QUESTION} " + "x" * 3000, priority=5, metadata=AGENT if number % 2 else PERSON)
        talk.happens(InputRequired(prompt=PROMPT.model_copy(update={"prompt_id": str(number)})))
    assert len(talk.scorer.state.model_dump_json()) < 16_000
