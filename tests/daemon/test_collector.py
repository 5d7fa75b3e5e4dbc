"""Everything is looked through when little goes on, and in the end whatever goes on."""

import gc

import pytest

from synapsed.process import collector
from synapsed.process.collector import (
    DUE,
    INCREMENTS,
    LOOK_EVERY_S,
    OVERDUE,
    QUIET,
    YOUNG,
    Collector,
    collecting,
)
from tests.fakes.clock import FakeClock


class Process:
    """What a collector asks of the process that it is in."""

    def __init__(self) -> None:
        self.used = 0.0
        self.looks = 0
        self.collected = 0

    def collect(self) -> None:
        self.collected += 1
        self.looks = 0
        self.used += 0.2


@pytest.fixture
def process() -> Process:
    return Process()


@pytest.fixture
def clock(process: Process) -> FakeClock:
    clock = FakeClock()
    Collector(clock, used=lambda: process.used, due=lambda: process.looks, collect=process.collect)
    return clock


def test_a_quiet_second_is_when_everything_is_looked_through(process: Process, clock: FakeClock) -> None:
    process.looks = DUE
    process.used += 2 * QUIET * LOOK_EVERY_S
    clock.advance(LOOK_EVERY_S)
    assert process.collected == 0, "somebody is waiting for the loop"
    clock.advance(LOOK_EVERY_S)
    assert process.collected == 1


def test_what_the_look_itself_takes_is_not_taken_for_work(process: Process, clock: FakeClock) -> None:
    for _ in range(3):
        process.looks = DUE
        clock.advance(LOOK_EVERY_S)
    assert process.collected == 3


def test_where_nothing_was_made_nothing_is_looked_for(process: Process, clock: FakeClock) -> None:
    process.looks = DUE - 1
    clock.advance(10 * LOOK_EVERY_S)
    assert process.collected == 0


def test_it_is_not_put_off_for_ever(process: Process, clock: FakeClock) -> None:
    process.looks = OVERDUE
    process.used += LOOK_EVERY_S
    clock.advance(LOOK_EVERY_S)
    assert process.collected == 1


class FakeGc:
    """The module `gc` of one version; `incremental` as in Python 3.14.0 to 3.14.4."""

    def __init__(self, *, incremental: bool) -> None:
        self.incremental = incremental
        self.threshold = (2000, 10, 0 if incremental else 10)
        self.collections = [0, 0, 0]

    def get_threshold(self) -> tuple[int, int, int]:
        return self.threshold

    def set_threshold(self, threshold0: int, threshold1: int = 10, threshold2: int = 10, /) -> None:
        self.threshold = (threshold0, threshold1, 0 if self.incremental else threshold2)

    def get_stats(self) -> list[dict[str, int]]:
        return [{"collections": count} for count in self.collections]

    def collect(self) -> int:
        self.collections[2] += 1
        return 0

    def make(self, objects: int) -> None:
        """The automatic collections that so many new objects bring about."""
        for number in range(objects // self.threshold[0]):
            self.collections[1 if self.incremental or number % (self.threshold[1] + 1) == 0 else 0] += 1


@pytest.mark.parametrize("incremental", [False, True])
def test_a_full_collection_comes_with_each_kind_of_collector(incremental: bool) -> None:
    clock, garbage = FakeClock(), FakeGc(incremental=incremental)
    before = garbage.threshold
    with collecting(clock, garbage):
        assert garbage.threshold[:2] == (INCREMENTS if incremental else YOUNG)
        for times in range(1, 4):
            garbage.make((DUE - 1) * YOUNG[0])
            clock.advance(LOOK_EVERY_S)
            assert garbage.collections[2] == times - 1
            garbage.make(YOUNG[0])
            clock.advance(LOOK_EVERY_S)
            assert garbage.collections[2] == times
            clock.advance(LOOK_EVERY_S)
        assert garbage.collections[2] == 3
    assert garbage.threshold == before


def test_only_the_collector_looks_at_what_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as it is there; else Python does it as it did."""
    clock, before, full = FakeClock(), gc.get_threshold(), gc.get_stats()[2]["collections"]
    monkeypatch.setattr(collector, "DUE", 1)
    with collecting(clock):
        kept = [[number] for number in range(100_000)]
        assert gc.get_stats()[2]["collections"] == full
        clock.advance(2 * LOOK_EVERY_S)  # making them was no quiet second
        assert gc.get_stats()[2]["collections"] == full + 1
    assert gc.get_threshold() == before
    clock.advance(10 * LOOK_EVERY_S)
    assert gc.get_stats()[2]["collections"] == full + 1
    assert kept
