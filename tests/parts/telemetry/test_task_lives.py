"""A task's life from its events: every course that a task can take, and any order of events at all."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.model.events import Event, TaskDelivered, TaskStatusChanged, TokensUsed, ToolExecution
from synapsed.model.task import TaskError, TaskState
from synapsed.parts.telemetry.task_lives import PERIODS_MAX, Life, Lives, Period, TaskPhase

S, W, I, A = TaskState.SUBMITTED, TaskState.WORKING, TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED  # noqa: E741
DONE, FAILED, CANCELED = TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED


def told(*course: tuple[TaskState | None, float]) -> list[tuple[str, float]]:
    """The periods that end on that course, each with its seconds; None: the message is submitted."""
    lives, found = Lives(), []
    for number, (state, at) in enumerate(course, 1):
        reason = "it waits again" if state is S and number > 1 else None
        error = TaskError(code="AGENT_EXITED", message="no words of this are counted") if state is FAILED else None
        changed = TaskStatusChanged(state=state or W, reason=reason, error=error)
        data = changed if state is not None else TaskDelivered()
        life, ended = lives.apply("t", Event(id=number, at=at, agent_id="a", task_id="t", data=data))
        found += [(period.stage.value, period.seconds) for period in ended if isinstance(period, Period)]
        assert life.code == (error.code if error is not None else None)
    assert len(lives) == (0 if course[-1][0] in (DONE, FAILED, CANCELED) else 1)
    return found


@pytest.mark.parametrize(
    ("course", "periods"),
    [
        ([(S, 0), (W, 2), (None, 3), (DONE, 5)], [("queue", 2), ("deliver", 1), ("turn", 2), ("task", 5)]),
        ([(S, 0), (W, 2), (DONE, 5)], [("queue", 2), ("turn", 3), ("task", 5)]),
        ([(S, 0), (W, 1), (FAILED, 2)], [("queue", 1), ("deliver", 1), ("task", 2)]),
        ([(S, 0), (W, 1), (None, 1), (FAILED, 2)], [("queue", 1), ("deliver", 0), ("turn", 1), ("task", 2)]),
        ([(S, 0), (CANCELED, 4)], [("queue", 4), ("task", 4)]),
        (
            [(S, 0), (W, 1), (I, 3), (W, 10), (I, 11), (A, 12), (DONE, 20)],
            [("queue", 1), ("input", 7), ("input", 1), ("input", 8), ("turn", 19), ("task", 20)],
        ),
        (
            [(S, 0), (W, 1), (S, 4), (W, 9), (None, 9.5), (DONE, 10)],
            [("queue", 1), ("deliver", 3), ("queue", 5), ("deliver", 0.5), ("turn", 0.5), ("task", 10)],
        ),
        ([(S, 0), (DONE, 0)], [("queue", 0), ("task", 0)]),
        ([(S, 10), (W, 5), (DONE, 7)], [("queue", 0), ("turn", 2), ("task", 0)]),
    ],
    ids=[
        "a turn",
        "nobody told of the submission",
        "not delivered",
        "a failure",
        "canceled while it waited",
        "questions",
        "given back",
        "answered unseen",
        "clock back",
    ],
)
def test_a_course(course: list[tuple[TaskState, float]], periods: list[tuple[str, float]]) -> None:
    assert told(*course) == periods


def test_calls_of_tools_are_paired_by_their_id() -> None:
    lives = Lives()
    numbers = itertools.count(1)

    def take(at: float, **told: Any) -> tuple[Life, list[Any]]:
        data = ToolExecution.model_validate({"tool_name": "Bash", **told})
        return lives.apply("t", Event(id=next(numbers), at=at, agent_id="a", task_id="t", data=data))

    lives.apply("t", Event(id=next(numbers), at=0, agent_id="a", task_id="t", data=TaskStatusChanged(state=S)))
    take(1, status="started", call_id="1")
    take(2, status="started", call_id="2")
    life, ended = take(5, status="completed", call_id="1")
    assert [(call.call_id, call.seconds) for call in ended] == [("1", 4)]
    _, ended = take(6, status="failed", call_id="2", denied=True, duration_ms=1500)
    assert [(call.call_id, call.seconds, call.denied) for call in ended] == [("2", 1.5, True)]
    _, ended = take(9, status="completed", call_id="nobody told of its beginning", duration_ms=500)
    assert [(call.begin, call.end) for call in ended] == [(8.5, 9)]
    take(10, status="started")
    _, ended = take(11, status="completed")
    assert [(call.begin, call.end) for call in ended] == [(10, 11)], "without ids, the last of its name"
    assert len(life.tools) == 4
    for number in range(2 * PERIODS_MAX):
        take(12, status="started", call_id=f"many-{number}")
    assert (len(life.tools), life.dropped) == (PERIODS_MAX, PERIODS_MAX + 4)


def test_tokens_are_added_up() -> None:
    lives = Lives()
    for number, used in enumerate([{"input_tokens": 10, "output_tokens": 5}, {"input_tokens": 1, "model": "m"}]):
        data = TokensUsed.model_validate(used)
        life, _ = lives.apply("t", Event(id=number, at=0, agent_id="a", task_id="t", data=data))
    assert (life.tokens, life.model) == ({"input": 11, "output": 5}, "m")


def test_a_task_that_another_answers_is_no_turn() -> None:
    lives = Lives()
    life, _ = lives.apply("t", Event(id=1, at=0, agent_id="a", task_id="t", data=TaskStatusChanged(state=W)))
    assert life.by_reply is True


@given(st.lists(st.tuples(st.sampled_from([None, *TaskState]), st.floats(0, 1e9))))
def test_any_order_of_events(course: list[tuple[TaskState | None, float]]) -> None:
    lives = Lives()
    for number, (state, at) in enumerate(course):
        data = TaskDelivered() if state is None else TaskStatusChanged(state=state)
        event = Event(id=number, at=at, agent_id="a", task_id="t", data=data)
        life, ended = lives.apply("t", event)
        assert all(period.seconds >= 0 for period in ended)
        assert sum(isinstance(one, Period) and one.stage is TaskPhase.WHOLE for one in ended) == (life.end is not None)
        assert (life.end is None) == lives.knows("t")
