"""The process table: what follows what, and that nothing else does."""

import pytest

from synapsed.agents.lifecycle import TABLE, IllegalEvent, after
from synapsed.agents.lifecycle import ProcessEvent as E
from synapsed.model.agent import ProcessState as S


@pytest.mark.parametrize(
    "story",
    [
        [(E.START, S.STARTING), (E.LAUNCHED, S.RUNNING), (E.STOP, S.STOPPING), (E.GONE, S.STOPPED)],
        [
            (E.START, S.STARTING),
            (E.LAUNCHED, S.RUNNING),
            (E.EXITED, S.EXITED),
            (E.RETRY, S.BACKOFF),
            (E.DUE, S.STARTING),
        ],
        [(E.START, S.STARTING), (E.LAUNCH_FAILED, S.EXITED), (E.GIVE_UP, S.FAILED), (E.DUE, S.STARTING)],
        [(E.START, S.STARTING), (E.STOP, S.STOPPING), (E.LAUNCHED, S.STOPPING), (E.GONE, S.STOPPED)],
        [(E.ADOPTED, S.RUNNING), (E.EXITED, S.EXITED), (E.STOP, S.STOPPED)],
        [
            (E.ADOPTED, S.RUNNING),
            (E.STOP, S.STOPPING),
            (E.PARKED, S.PARKED),
            (E.START, S.STARTING),
            (E.LAUNCHED, S.RUNNING),
        ],
        [(E.ADOPTED, S.RUNNING), (E.STOP, S.STOPPING), (E.PARKED, S.PARKED), (E.STOP, S.STOPPED)],
        [(E.START, S.STARTING), (E.LAUNCH_FAILED, S.EXITED), (E.RETRY, S.BACKOFF), (E.STOP, S.STOPPED)],
    ],
)
def test_stories(story: list[tuple[E, S]]) -> None:
    before = S.STOPPED
    for event, state in story:
        assert after(before, event) is state
        before = state


def test_every_state_has_a_row_and_none_is_a_dead_end() -> None:
    assert set(TABLE) == set(S)
    assert all(TABLE[state] for state in S)


@pytest.mark.parametrize("state", list(S))
def test_from_every_state_there_is_a_way_to_running_and_to_stopped(state: S) -> None:
    reachable, todo = {state}, [state]
    while todo:
        for follower in TABLE[todo.pop()].values():
            if follower not in reachable:
                reachable.add(follower)
                todo.append(follower)
    assert {S.RUNNING, S.STOPPED} <= reachable


@pytest.mark.parametrize("state", list(S))
@pytest.mark.parametrize("event", list(E))
def test_an_event_that_the_table_does_not_have_raises(state: S, event: E) -> None:
    if event in TABLE[state]:
        assert after(state, event) is TABLE[state][event]
    else:
        with pytest.raises(IllegalEvent):
            after(state, event)
