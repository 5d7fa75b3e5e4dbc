"""The ladder: pure, so told in seconds that never pass."""

from hypothesis import given
from hypothesis import strategies as st

from synapsed.keeper.ending import DRAIN_S, KILL, KILL_LIMIT_S, POLL_S, RECORD, SWEEP_GRACE_S, TERM, Ending


def ask(
    ending: Ending, now: float, *, drained: bool = False, blocked: bool = False, survivors: bool = True
) -> str | None:
    return ending.next(now, drained=drained, blocked=blocked, has_survivors=survivors)


def test_nothing_happens_to_a_program_that_runs() -> None:
    ending = Ending(sweep_on_exit=True)
    assert ending.deadline is None
    assert ask(ending, 1.0) is None


def test_term_then_grace_then_kill_then_record() -> None:
    ending = Ending(sweep_on_exit=True)
    ending.stop(10.0, 3.0)
    assert ending.deadline == 10.0
    assert ask(ending, 10.0) == TERM
    assert ask(ending, 11.0) is None
    assert ask(ending, 13.0) == KILL
    assert ask(ending, 13.1) == KILL  # whatever was forked meanwhile
    ending.exited(13.2)
    assert ask(ending, 13.2, drained=True, survivors=False) == RECORD
    assert ending.deadline is None


def test_grace_zero_kills_without_a_term() -> None:
    ending = Ending(sweep_on_exit=True)
    ending.stop(10.0, 0.0)
    assert ask(ending, 10.0) == KILL


def test_of_two_stops_the_more_impatient_counts() -> None:
    ending = Ending(sweep_on_exit=True)
    ending.stop(10.0, 60.0)
    assert ask(ending, 10.0) == TERM
    ending.stop(11.0, 0.0)
    assert ask(ending, 11.0) == KILL
    ending.stop(12.0, 60.0)
    assert ask(ending, 12.0) == KILL


def test_two_stops_before_the_first_step_still_send_a_term() -> None:
    ending = Ending(sweep_on_exit=True)
    ending.stop(10.0, 5.0)
    ending.stop(10.0, 5.0)
    assert ask(ending, 10.0) == TERM
    ending.stop(11.0, 5.0)  # and only one is sent
    assert ask(ending, 11.0) is None
    assert ask(ending, 15.0) == KILL


def test_descendants_get_the_rest_of_the_grace_when_the_program_went_first() -> None:
    ending = Ending(sweep_on_exit=True)
    ending.stop(10.0, 3.0)
    assert ask(ending, 10.0) == TERM
    ending.exited(10.5)
    assert ask(ending, 10.5, drained=True) is None
    assert ask(ending, 13.0, drained=True) == KILL


def test_what_cannot_be_killed_is_not_waited_for() -> None:
    ending = Ending(sweep_on_exit=True)
    ending.stop(0.0, 0.0)
    assert ask(ending, 0.0) == KILL
    assert ask(ending, KILL_LIMIT_S) is None  # the last output is waited for a little
    assert ask(ending, KILL_LIMIT_S + DRAIN_S) == RECORD


def test_an_exit_with_its_output_read_is_recorded_at_once() -> None:
    ending = Ending(sweep_on_exit=True)
    ending.exited(5.0)
    assert ask(ending, 5.0, drained=True, survivors=False) == RECORD


def test_an_exit_waits_a_little_for_the_end_of_output_then_sweeps() -> None:
    ending = Ending(sweep_on_exit=True)
    ending.exited(5.0)
    assert ask(ending, 5.0) is None
    now = 5.0 + DRAIN_S
    assert ask(ending, now) == TERM
    assert ask(ending, now + SWEEP_GRACE_S) == KILL
    assert ask(ending, now + SWEEP_GRACE_S + POLL_S, drained=True, survivors=False) == RECORD


def test_without_sweep_descendants_stay() -> None:
    ending = Ending(sweep_on_exit=False)
    ending.exited(5.0)
    assert ask(ending, 5.0, drained=True) == RECORD


def test_a_full_disk_is_waited_for_unless_somebody_wants_the_end() -> None:
    ending = Ending(sweep_on_exit=True)
    ending.exited(5.0)
    assert ask(ending, 500.0, blocked=True, survivors=False) is None
    ending.stop(600.0, 1.0)
    assert ask(ending, 600.0, blocked=True, survivors=False) is None
    assert ask(ending, 600.0 + DRAIN_S, blocked=True, survivors=False) == RECORD


facts = st.tuples(
    st.sampled_from(["stop", "exited", "look", "ask"]), st.floats(0, 3), st.booleans(), st.booleans(), st.booleans()
)


@given(st.booleans(), st.lists(facts, max_size=30))
def test_in_any_order_it_ends_and_ends_once(sweep: bool, steps: list[tuple[str, float, bool, bool, bool]]) -> None:
    ending = Ending(sweep_on_exit=sweep)
    now = 0.0
    recorded = False
    for kind, seconds, drained, blocked, survivors in [*steps, ("exited", 0.0, True, False, False)]:
        now += seconds
        if recorded:
            break
        if kind == "stop":
            ending.stop(now, seconds)
        elif kind == "exited":
            ending.exited(now)
        elif kind == "look":
            ending.look(now)
        recorded = ask(ending, now, drained=drained, blocked=blocked, survivors=survivors) == RECORD
    for _ in range(200):
        if recorded:
            assert ending.deadline is None
            return
        deadline = ending.deadline
        assert deadline is not None
        now = max(now, deadline)
        recorded = ask(ending, now, drained=True, survivors=False) == RECORD
    raise AssertionError("it never ended")
