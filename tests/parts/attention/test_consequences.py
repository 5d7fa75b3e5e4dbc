"""What needs a person although no program asks."""

from typing import Any

import pytest

from synapsed.agents.restart_policy import Rest, RestartState
from synapsed.config.config import RestartPolicy
from synapsed.model.agent import ProcessState
from synapsed.model.events import REMOVED, AttentionChanged, StateChanged, TaskStatusChanged
from synapsed.model.task import Artifact, Message, Task, TaskError, TaskState
from synapsed.parts.attention import consequences
from synapsed.parts.attention.consequences import Facts, follows
from tests.parts.attention.test_board import Log

DONE = TaskStatusChanged(state=TaskState.COMPLETED)
FAILED = TaskStatusChanged(state=TaskState.FAILED)
RUNNING = Facts(ProcessState.RUNNING)


def task(**changes: Any) -> Task:
    made = Task(id="t", agent_id="a", message=Message.of("do it"), created_at="", updated_at="")
    return made.model_copy(update={"status": TaskState.COMPLETED, "artifacts": [Artifact.answer(" Done. ")]} | changes)


def failed(code: str = "MODEL_ERROR") -> Task:
    return task(status=TaskState.FAILED, artifacts=[], error=TaskError(code=code, message="it broke"))


class Events(Log):
    def conclude(self, data: Any, facts: Facts = RUNNING, *, of: str | None = None) -> list[tuple[str, str, str]]:
        """Tells it, and what follows from it; gives what follows."""
        event = self.tell(data, task=of)
        told = follows(event, self.board, facts)
        for new in told:
            self.tell(new.data, new.agent_id, new.task_id)
        return words(told)

    @property
    def kinds(self) -> list[str]:
        return [item.kind for item in self.board.items]


def words(told: list[Any]) -> list[tuple[str, str, str]]:
    changes = [new.data for new in told if isinstance(new.data, AttentionChanged)]
    return [(change.state, change.kind, change.question) for change in changes]


def process(state: Any, **told: Any) -> StateChanged:
    return StateChanged(state=state, **told)


@pytest.fixture
def log() -> Events:
    return Events()


def test_a_finished_task_that_nobody_waited_for(log: Events) -> None:
    assert log.conclude(DONE, Facts(ProcessState.RUNNING, task()), of="t") == [("opened", "finished", "Done.")]
    (item,) = log.board.items
    assert (item.task_id, item.id) == ("t", "finished-1")


def test_a_finished_task_tells_what_goes_on_in_the_background(log: Events) -> None:
    facts = Facts(ProcessState.RUNNING, task(metadata={"in_background": 2}))
    assert log.conclude(DONE, facts, of="t") == [("opened", "finished", "(2 in the background) Done.")]


@pytest.mark.parametrize(
    "facts",
    [
        Facts(ProcessState.RUNNING, task(), heard=True),
        Facts(ProcessState.RUNNING, None),
        Facts(None, task()),
        Facts(ProcessState.RUNNING, task(metadata={"sender": {"sender_id": "synapse-codex-8120", "tier": "agent"}})),
        Facts(ProcessState.RUNNING, task(metadata={"sender": {"sender_id": "schedule-x", "tier": "person"}})),
        Facts(ProcessState.RUNNING, task(metadata={"direction": "outgoing"})),
        Facts(ProcessState.RUNNING, failed("RATE_LIMITED")),
    ],
    ids=["heard", "no task", "no agent", "of an agent", "of a schedule", "for a reply", "limited"],
)
def test_what_needs_nobody(log: Events, facts: Facts) -> None:
    told = DONE if facts.task is None or facts.task.error is None else FAILED
    assert log.conclude(told, facts, of="t") == []


@pytest.mark.parametrize("state", [TaskState.WORKING, TaskState.CANCELED, TaskState.REJECTED, TaskState.INPUT_REQUIRED])
def test_states_from_which_nothing_follows(log: Events, state: TaskState) -> None:
    assert log.conclude(TaskStatusChanged(state=state), Facts(ProcessState.RUNNING, task()), of="t") == []


def test_an_agent_has_one_finished_task(log: Events) -> None:
    for _ in range(3):
        log.conclude(DONE, Facts(ProcessState.RUNNING, task()), of="t")
    assert log.kinds == ["finished"]


def test_failures_are_bounded(log: Events) -> None:
    for _ in range(consequences.FAILURES_MAX + 5):
        log.conclude(FAILED, Facts(ProcessState.RUNNING, failed()), of="t")
    assert log.kinds == ["failure"] * consequences.FAILURES_MAX


def test_what_the_account_failed_is_told_by_its_own_row(log: Events) -> None:
    met = failed("AUTH_REQUIRED")
    assert met.error is not None
    met = met.model_copy(update={"error": met.error.model_copy(update={"details": {"held": "account"}})})
    assert log.conclude(FAILED, Facts(ProcessState.RUNNING, met), of="t") == []


def test_it_is_over_once_the_task_is_read_or_its_agent_looked_at(log: Events) -> None:
    log.conclude(DONE, Facts(ProcessState.RUNNING, task()), of="t")
    log.asked(name="asks")
    assert consequences.seen(log.board, ["another"], ["b"]) == []
    assert words(consequences.seen(log.board, ["t"], [])) == [("answered", "finished", "Done.")]
    assert words(consequences.seen(log.board, [], ["a"])) == [("answered", "finished", "Done.")]


def test_a_crash_loop_until_it_has_run_for_a_while(log: Events) -> None:
    told = process("failed", reason="boom (exit code 1); ended 9 times in a row")
    assert log.conclude(told, Facts(ProcessState.FAILED)) == [("opened", "crash_loop", told.reason)]
    assert log.conclude(told, Facts(ProcessState.FAILED)) == []
    log.conclude(process("starting"))
    event = log.tell(process("running"))
    assert log.kinds == ["crash_loop"]
    assert consequences.stable(log.board, age=lambda _, at: consequences.STABLE_S - 1) == []
    over = consequences.stable(log.board, age=lambda _, at: consequences.STABLE_S if at == event.at else 0)
    assert words(over) == [("gone", "crash_loop", told.reason)]
    log.tell(process("exited", exit_code=1))
    assert consequences.stable(log.board, age=lambda _, at: consequences.STABLE_S) == []


@pytest.mark.parametrize("state", ["stopped", "parked"])
def test_whoever_stops_it_knows(log: Events, state: str) -> None:
    log.conclude(process("failed"), Facts(ProcessState.FAILED))
    assert [told[:2] for told in log.conclude(process(state))] == [("gone", "crash_loop")]
    assert log.kinds == []


def test_with_its_agent_everything_of_it_is_over(log: Events) -> None:
    log.conclude(process("failed"), Facts(ProcessState.FAILED))
    event = log.tell(DONE, task="t")
    (finished,) = follows(event, log.board, Facts(ProcessState.FAILED, task()))
    log.tell(finished.data, "a", "t")
    removed = log.all[-1].model_copy(update={"id": 99, "data": process(REMOVED)})
    assert [told[:2] for told in words(follows(removed, log.board, Facts(None)))] == [
        ("gone", "crash_loop"),
        ("gone", "finished"),
    ]


def test_a_program_that_is_left_be_after_a_failure(log: Events) -> None:
    ended = process("exited", exit_code=3, reason="exit code 3; the restart policy is 'never'")
    assert log.conclude(ended, Facts(ProcessState.BACKOFF)) == []
    assert [told[:2] for told in log.conclude(ended, Facts(ProcessState.EXITED))] == [("opened", "failure")]
    assert [told[:2] for told in log.conclude(process("running"))] == [("gone", "failure")]


def test_a_program_that_has_nothing_more_to_do(log: Events) -> None:
    policy = RestartState(RestartPolicy(), fine_codes=frozenset({0, 130}), rng=lambda: 0.5)
    rest = policy.exited(130, now=1.0, uptime=1.0)
    assert isinstance(rest, Rest)
    for told in (process("exited", exit_code=0), process("exited", exit_code=130, reason=f"ended; {rest.reason}")):
        assert log.conclude(told, Facts(ProcessState.EXITED)) == []
