"""When something is tried again, and what the audit takes for lost."""

from dataclasses import replace

import pytest

from synapsed_fleet.audit import RECEIPT_S, is_lost
from synapsed_fleet.fleet_rows import OutRow
from synapsed_fleet.outbox import ELECTION_TRIES, JITTER, LONGEST_S, Pacing
from synapsed_fleet.ports import StreamFacts

ROW = OutRow(id="t", dst="box", kind="msg", task_id="t", state="piped", stream="monday", seq=50, attempt=1)
SUBJECT = "syn.to.box.laptop.msg"
FACTS = StreamFacts(created="monday", first=10, last=60, pending={SUBJECT: 1})


def test_a_broker_that_is_away_stops_everything_for_longer_and_longer() -> None:
    pacing = Pacing()
    pauses = []
    for _ in range(ELECTION_TRIES + 3):
        pacing.broker_failed(100.0, 0.0)
        pauses.append(round(pacing.resting(100.0), 3))
    assert pauses[:4] == [0.2, 0.4, 0.8, 1.0]
    assert pauses[4:] == [1.0] * (ELECTION_TRIES - 4) + [5.0] * 3, "soon, while brokers may elect a leader"
    pacing.reconnected()
    assert pacing.resting(100.0) == 0


def test_jitter_spreads_those_that_wait() -> None:
    pacing = Pacing()
    for _ in range(ELECTION_TRIES + 1):
        pacing.broker_failed(0.0, 1.0)
    assert pacing.resting(0.0) == pytest.approx(LONGEST_S * (1 + JITTER))


def test_a_full_mailbox_stops_its_host_alone() -> None:
    pacing = Pacing()
    pacing.broker_failed(99.0, 0.0)
    assert pacing.trying
    pacing.refused("box", 100.0, 0.0)
    assert not pacing.trying, "the broker is there"
    assert (pacing.blocked(100.1), pacing.resting(100.1)) == ({"box"}, 0.0)
    assert pacing.next_at(100.1) == pytest.approx(0.1)
    assert pacing.blocked(100.3) == frozenset()
    pacing.refused("box", 100.3, 0.0)
    pacing.worked("box")
    assert (pacing.blocked(100.3), pacing.next_at(100.3)) == (frozenset(), None)


@pytest.mark.parametrize(
    ("row", "facts", "waited", "lost"),
    [
        (ROW, FACTS, 1e6, False),
        (ROW, replace(FACTS, created="tuesday"), 0, True),
        (ROW, replace(FACTS, last=49), 0, True),
        (ROW, replace(FACTS, last=50), 0, False),
        (ROW, replace(FACTS, pending={}), RECEIPT_S - 1, False),
        (ROW, replace(FACTS, pending={}), RECEIPT_S, True),
        (ROW, replace(FACTS, first=51), RECEIPT_S - 1, False),
        (ROW, replace(FACTS, first=51), RECEIPT_S, True),
        (replace(ROW, seq=None), FACTS, 0, True),
    ],
)
def test_what_the_broker_can_have_no_more_is_lost(row: OutRow, facts: StreamFacts, waited: float, lost: bool) -> None:
    assert is_lost(row, SUBJECT, facts, waited) is lost


def test_what_is_overtaken_is_sent_again_less_and_less_often() -> None:
    busy = StreamFacts(created="1", first=1, last=90, pending={SUBJECT: 3})
    waits = []
    for attempt in (1, 2, 3, 9, 2001, 2002):
        row = OutRow(id="a", dst="box", kind="msg", task_id="a", state="piped", stream="1", seq=7, attempt=attempt)
        assert not is_lost(row, SUBJECT, busy, 1e9)
        waits.append(next(s for s in range(1, 5000) if is_lost(row, SUBJECT, busy, s, overtaken=True)))
    assert waits == [60, 120, 240, 3600, 60, 120]
