"""When a receiver that failed is tried again, and when it is given up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.outgoing import PushPolicy
from synapsed.outgoing.retrying import RETRY_AFTER_MAX, accepted, failed, retry_after, waiting
from synapsed.parts.a2a.push.push_record import PushRecord
from tests.fakes.clock import JUMPS

NOW = 1_700_000_000.0
EXACT = PushPolicy(jitter=0)


def a_record(**changes) -> PushRecord:
    return PushRecord(task_id="t", id="p", agent_id="a", url="https://example.com/", cursor=7).model_copy(
        update=changes
    )


def pauses(policy: PushPolicy, count: int, *, roll: float = 0.0) -> list[float]:
    """Between failures that follow each other as they should."""
    record, now, found = a_record(), NOW, []
    for _ in range(count):
        record = failed(record, policy, now=now, asked=None, roll=roll)
        found.append(waiting(record, policy, now=now))
        now += found[-1]
    return found


def test_pauses_grow_up_to_the_maximum():
    assert pauses(PushPolicy(jitter=0, initial=1, factor=2, maximum=10), 6) == [1, 2, 4, 8, 10, 10]


def test_jitter_shortens_them():
    policy = PushPolicy(jitter=0.5, initial=8, factor=1, maximum=8)
    assert pauses(policy, 1, roll=0.0) == [8]
    assert pauses(policy, 1, roll=0.5) == [6]


@given(st.floats(0, 0.999), st.integers(1, 60))
def test_pauses_stay_in_their_bounds(roll: float, count: int):
    policy = PushPolicy(initial=0.5, factor=3, maximum=100, jitter=0.4, give_up=30 * 86_400)
    for number, pause in enumerate(pauses(policy, count, roll=roll)):
        whole = min(100, 0.5 * 3 ** min(number, 50))
        assert whole * 0.6 - 1e-6 <= pause <= whole + 1e-6


def test_success_forgets_what_failed():
    record = failed(a_record(), EXACT, now=NOW, asked=None, roll=0)
    after = accepted(record, 9, last=False)
    assert (after.cursor, after.attempt, after.failing_since, after.retry_at) == (9, 0, None, None)
    assert after.state == "active"
    assert accepted(record, 9, last=True).state == "done"


def test_given_up_after_so_many_failures_in_a_row():
    policy = PushPolicy(attempts=3)
    record = a_record()
    states = []
    for _ in range(3):
        record = failed(record, policy, now=NOW, asked=None, roll=0)
        states.append(record.state)
    assert states == ["active", "active", "given_up"]
    assert record.cursor == 7


def test_given_up_after_so_long_a_time():
    policy = PushPolicy(jitter=0, initial=10, factor=1, maximum=10, give_up=35)
    record, now = a_record(), NOW
    while record.state == "active":
        record = failed(record, policy, now=now, asked=None, roll=0)
        now += 10
    assert record.attempt == 4


def test_retry_after_makes_a_pause_longer_never_shorter():
    policy = PushPolicy(jitter=0, initial=10)
    assert waiting(failed(a_record(), policy, now=NOW, asked=60, roll=0), policy, now=NOW) == 60
    assert waiting(failed(a_record(), policy, now=NOW, asked=1, roll=0), policy, now=NOW) == 10


def test_a_clock_that_was_set_back_does_not_lead_to_an_endless_pause():
    record = failed(a_record(), EXACT, now=NOW, asked=None, roll=0)
    assert waiting(record, EXACT, now=NOW - 10 * 86_400) <= RETRY_AFTER_MAX
    assert waiting(record, EXACT, now=NOW + 1000) == 0


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("120", 120),
        (" 5 ", 5),
        ("0", 0),
        ("99999999999999999999", RETRY_AFTER_MAX),
        ("-5", None),
        ("soon", None),
        ("", None),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60),
        ("Tue, 14 Nov 2023 22:14:20", 60),
        ("Tue, 14 Nov 2000 22:14:20 GMT", 0),
        ("Tue, 14 Nov 2090 22:14:20 GMT", RETRY_AFTER_MAX),
    ],
)
def test_retry_after(header: str | None, seconds: float | None):
    assert retry_after(header, now=NOW) == seconds


@given(st.text(max_size=40))
def test_any_retry_after_is_read_or_passed_over(text: str):
    found = retry_after(text, now=NOW)
    assert found is None or 0 <= found <= RETRY_AFTER_MAX


@pytest.mark.parametrize("jump", [*JUMPS, 3600.0])
def test_time_in_which_nobody_tried_gives_nobody_up(jump: float):
    """The clock was set, the machine slept, or no daemon ran: the receiver has failed for as long as before."""
    policy = PushPolicy(jitter=0, initial=60, factor=1, maximum=60, attempts=1000, give_up=7200)
    record, now = a_record(), NOW
    for number in range(119):
        record = failed(record, policy, now=now, asked=None, roll=0.0)
        assert record.state == "active"
        assert 0 <= waiting(record, policy, now=now + jump) <= RETRY_AFTER_MAX
        now += 60 + (jump if number % 10 == 5 else 0)
    record = failed(record, policy, now=now, asked=None, roll=0.0)
    assert record.state == "active"
    assert failed(record, policy, now=now + 60, asked=None, roll=0.0).state == "given_up"
