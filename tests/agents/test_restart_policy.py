"""The restart policy: delays within their bounds, the limit, forgiveness."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.agents.restart_policy import GiveUp, Rest, RestartState, Retry
from synapsed.config.config import RestartPolicy


def state(*, fine: frozenset[int] = frozenset({0}), rng: float = 0.5, **policy: Any) -> RestartState:
    return RestartState(RestartPolicy(**policy), fine_codes=fine, rng=lambda: rng)


@pytest.mark.parametrize(
    ("policy", "code", "rests"),
    [
        ("never", 1, True),
        ("never", None, True),
        ("on-failure", 0, True),
        ("on-failure", 1, False),
        ("on-failure", -9, False),
        ("on-failure", None, False),
        ("always", 0, False),
        ("always", 7, False),
    ],
)
def test_policy_and_code(policy: str, code: int | None, rests: bool) -> None:
    decision = state(policy=policy).exited(code, now=0, uptime=1)
    assert isinstance(decision, Rest) is rests


def test_fine_codes_are_the_caller_s() -> None:
    assert isinstance(state(fine=frozenset({3})).exited(3, now=0, uptime=1), Rest)
    assert isinstance(state(fine=frozenset({3})).exited(0, now=0, uptime=1), Retry)


def test_delays_double_up_to_the_maximum() -> None:
    restart = state(initial=1, factor=2, maximum=10, limit=100, jitter=0)
    delays = [restart.exited(1, now=n, uptime=0) for n in range(6)]
    assert [d.delay for d in delays if isinstance(d, Retry)] == [1, 2, 4, 8, 10, 10]


def test_more_than_the_limit_in_the_window_gives_up_and_time_heals() -> None:
    restart = state(limit=3, window=10, retry=300, jitter=0)
    kinds = [type(restart.exited(1, now=float(n), uptime=0)) for n in range(4)]
    assert kinds == [Retry, Retry, Retry, GiveUp]
    assert restart.exited(1, now=5.0, uptime=0) == GiveUp(300, 4)
    assert isinstance(restart.exited(1, now=100.0, uptime=0), Retry)


def test_a_stable_run_forgives() -> None:
    restart = state(initial=1, stable=60, limit=3, jitter=0)
    for n in range(3):
        restart.exited(1, now=float(n), uptime=0)
    assert restart.exited(1, now=70.0, uptime=60) == Retry(1)


def test_forgive() -> None:
    restart = state(initial=1, limit=1, jitter=0)
    restart.exited(1, now=0, uptime=0)
    restart.forgive()
    assert restart.exited(1, now=1, uptime=0) == Retry(1)


@given(
    st.floats(0.01, 10),
    st.floats(1, 10),
    st.floats(10, 1000),
    st.floats(0, 0.9),
    st.integers(1, 50),
    st.lists(st.tuples(st.floats(0, 1000), st.floats(0, 200), st.sampled_from([0, 1, -9, None])), max_size=80),
    st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=20),
)
def test_every_delay_is_within_its_bounds(
    initial: float,
    factor: float,
    maximum: float,
    jitter: float,
    limit: int,
    exits: list[tuple[float, float, int | None]],
    rolls: list[float],
) -> None:
    policy = RestartPolicy(initial=initial, factor=factor, maximum=maximum, jitter=jitter, limit=limit)
    dice = itertools.cycle(rolls)
    restart = RestartState(policy, fine_codes=frozenset({0}), rng=lambda: next(dice))
    now = 0.0
    for pause, uptime, code in exits:
        now += pause
        match restart.exited(code, now=now, uptime=uptime):
            case Retry(delay):
                assert initial * (1 - jitter) * 0.999 <= delay <= maximum * (1 + jitter) * 1.001
            case GiveUp(delay, count):
                assert count > limit
                assert policy.retry * (1 - jitter) * 0.999 <= delay <= policy.retry * (1 + jitter) * 1.001
            case Rest():
                assert code == 0


def test_a_crash_is_one_whatever_its_code() -> None:
    assert isinstance(state().exited(0, now=0, uptime=1, crashed=True), Retry)
    assert isinstance(state(policy="never").exited(0, now=0, uptime=1, crashed=True), Rest)
