"""A task's life from its events: every course that a task can take, and any order of events at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.model.events import Event, TaskStatusChanged
from synapsed.model.task import TaskError, TaskState
from synapsed.telemetry.lives import Lives, Stage

S, W, I, A = TaskState.SUBMITTED, TaskState.WORKING, TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED  # noqa: E741
DONE, FAILED, CANCELED = TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED


def told(*course: tuple[TaskState, float]) -> list[tuple[str, float]]:
    """The periods that end on that course, each with its seconds."""
    lives, found = Lives(), []
    for number, (state, at) in enumerate(course, 1):
        reason = "it waits again" if state is S and number > 1 else None
        error = TaskError(code="AGENT_EXITED", message="no words of this are counted") if state is FAILED else None
        data = TaskStatusChanged(state=state, reason=reason, error=error)
        life, ended = lives.take("t", Event(id=number, at=at, agent_id="a", task_id="t", data=data))
        found += [(period.stage.value, period.seconds) for period in ended]
        assert life.code == (error.code if error is not None else None)
    assert len(lives) == (0 if course[-1][0] in (DONE, FAILED, CANCELED) else 1)
    return found


@pytest.mark.parametrize(
    ("course", "periods"),
    [
        ([(S, 0), (W, 2), (DONE, 5)], [("queue", 2), ("turn", 3), ("task", 5)]),
        ([(S, 0), (W, 1), (FAILED, 2)], [("queue", 1), ("turn", 1), ("task", 2)]),
        ([(S, 0), (CANCELED, 4)], [("queue", 4), ("task", 4)]),
        (
            [(S, 0), (W, 1), (I, 3), (W, 10), (I, 11), (A, 12), (DONE, 20)],
            [("queue", 1), ("input", 7), ("input", 1), ("input", 8), ("turn", 19), ("task", 20)],
        ),
        (
            [(S, 0), (W, 1), (S, 4), (W, 9), (DONE, 10)],
            [("queue", 1), ("turn", 3), ("queue", 5), ("turn", 1), ("task", 10)],
        ),
        ([(S, 0), (DONE, 0)], [("queue", 0), ("task", 0)]),
        ([(S, 10), (W, 5), (DONE, 7)], [("queue", 0), ("turn", 2), ("task", 0)]),
    ],
    ids=["a turn", "a failure", "canceled while it waited", "questions", "given back", "answered unseen", "clock back"],
)
def test_a_course(course: list[tuple[TaskState, float]], periods: list[tuple[str, float]]) -> None:
    assert told(*course) == periods


def test_a_task_that_another_answers_is_no_turn() -> None:
    lives = Lives()
    life, _ = lives.take("t", Event(id=1, at=0, agent_id="a", task_id="t", data=TaskStatusChanged(state=W)))
    assert life.by_reply is True


@given(st.lists(st.tuples(st.sampled_from(list(TaskState)), st.floats(0, 1e9))))
def test_any_order_of_events(course: list[tuple[TaskState, float]]) -> None:
    lives = Lives()
    for number, (state, at) in enumerate(course):
        event = Event(id=number, at=at, agent_id="a", task_id="t", data=TaskStatusChanged(state=state))
        life, ended = lives.take("t", event)
        assert all(period.seconds >= 0 for period in ended)
        assert sum(period.stage is Stage.WHOLE for period in ended) == (life.end is not None)
        assert (life.end is None) == lives.knows("t")
