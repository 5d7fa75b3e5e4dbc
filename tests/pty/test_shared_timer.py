"""One timer visits all links, and each has its pulse in its turn."""

from itertools import pairwise

import pytest

from synapsed.pty.shared_timer import BEAT_S, PULSE_BEATS, Rounds
from tests.fakes.clock import FakeClock


class Link:
    """Counts what it is called for."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.visits = 0
        self.pulses: list[float] = []

    def visit(self) -> None:
        self.visits += 1

    def pulse(self) -> None:
        self.pulses.append(self._clock.monotonic())


class Broken(Link):
    def visit(self) -> None:
        raise ValueError("a defect")


def joined(count: int) -> tuple[FakeClock, Rounds, list[Link]]:
    clock = FakeClock()
    rounds = Rounds(clock)
    links = [Link(clock) for _ in range(count)]
    for link in links:
        rounds.join(link)
    return clock, rounds, links


def test_many_links_are_visited_by_one_timer() -> None:
    clock, _, links = joined(50)
    assert len(clock.pending()) == 1
    clock.advance(3 * BEAT_S)
    assert [link.visits for link in links] == [3] * 50
    assert len(clock.pending()) == 1


@pytest.mark.parametrize("count", [1, 7, 50])
def test_each_link_has_its_pulse_once_in_so_many_beats(count: int) -> None:
    clock, _, links = joined(count)
    clock.advance(4 * PULSE_BEATS * BEAT_S)
    for link in links:
        pauses = {after - before for before, after in pairwise(link.pulses)}
        assert (len(link.pulses), pauses) == (4, {PULSE_BEATS * BEAT_S})


def test_pulses_come_in_turns() -> None:
    clock, _, links = joined(50)
    clock.advance(PULSE_BEATS * BEAT_S)
    beats = [at for link in links for at in link.pulses]
    assert {beats.count(at) for at in beats} == {50 // PULSE_BEATS}


def test_no_pulse_is_missed_while_others_come_and_go() -> None:
    clock, rounds, (stays, *others) = joined(25)
    for other in others:
        rounds.leave(other)
        clock.advance(BEAT_S)
        rounds.join(other)
    assert [after - before for before, after in pairwise(stays.pulses)] == [PULSE_BEATS * BEAT_S] * 2
    clock.advance(PULSE_BEATS * BEAT_S)
    assert all(len(other.pulses) >= 1 for other in others)


def test_who_has_left_is_not_visited_and_without_links_there_is_no_timer() -> None:
    clock, rounds, (first, second) = joined(2)
    clock.advance(BEAT_S)
    rounds.leave(first)
    rounds.leave(first)
    clock.advance(BEAT_S)
    assert (first.visits, second.visits) == (1, 2)
    rounds.leave(second)
    assert clock.pending() == []
    rounds.join(first)
    clock.advance(BEAT_S)
    assert first.visits == 2


def test_a_link_that_fails_keeps_no_other_from_its_visit() -> None:
    clock, rounds, (link,) = joined(1)
    rounds.leave(link)
    broken = Broken(clock)
    rounds.join(broken)
    rounds.join(link)
    clock.advance(2 * BEAT_S)
    assert link.visits == 2
    clock.advance(PULSE_BEATS * BEAT_S)
    assert broken.pulses, "its keeper is asked all the same"
