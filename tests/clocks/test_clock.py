"""The clocks themselves: a wall clock that is set, and a machine that sleeps."""

import os
import time
from pathlib import Path

import pytest

from synapsectl.service.systemd import _is_older
from synapsed.clock import AGES_MAX, JUMP_S, SETTLED_S, STEPS_MAX, Ages, PastDates, SystemClock, began
from synapsed.keeper.processes import lived_s, start_mark
from tests.fakes.clock import DAY_S, JUMPS, FakeClock

HOUR_S = 3600.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_the_machines_clocks_go_together() -> None:
    clock = SystemClock()
    before = clock.boot(), clock.monotonic(), clock.wall()
    assert before[0] >= before[1] - 1, "it counts what the machine slept besides"
    assert clock.settled() == pytest.approx(before[2], abs=60)
    mark = start_mark(os.getpid())
    assert mark is not None
    assert clock.boot() - lived_s(mark) > 0, "a process began after the machine"


@pytest.mark.parametrize("jump", JUMPS)
def test_for_a_day_after_a_jump_no_date_is_settled(clock: FakeClock, jump: float) -> None:
    assert clock.settled() == clock.wall(), "it is believed at first"
    clock.jump(jump)
    assert clock.settled() is None
    clock.advance(SETTLED_S - 1)
    assert clock.settled() is None
    clock.advance(1)
    assert clock.settled() == clock.wall()
    clock.jump(-jump)
    assert clock.settled() is None, "to be set right is to be set"


def test_corrections_and_sleep_are_no_jumps(clock: FakeClock) -> None:
    for _ in range(1000):
        clock.advance(600)
        clock.jump(JUMP_S / 2)
        assert clock.settled() == clock.wall()
    clock.sleep(20 * DAY_S)
    assert clock.settled() == clock.wall()


@pytest.mark.parametrize("jump", JUMPS)
def test_ages_grow_by_the_boot_clock(clock: FakeClock, jump: float) -> None:
    ages, date = Ages(clock), clock.wall() - 10
    assert ages.of("a", date) == 10
    clock.jump(jump)
    clock.advance(5)
    assert ages.of("a", date) == 15
    clock.sleep(HOUR_S)
    assert ages.of("a", date) == HOUR_S + 15
    assert ages.of("b", clock.wall() + jump) == max(0, -jump), "who asks first has nothing but the date"


def test_a_date_of_the_future_is_now(clock: FakeClock) -> None:
    assert began(clock, clock.wall() + 20 * DAY_S) == clock.boot()
    assert began(clock, clock.wall() - 5) == clock.boot() - 5


def test_so_many_ages_are_remembered(clock: FakeClock) -> None:
    ages, date = Ages(clock), clock.wall()
    for number in range(AGES_MAX + 1):
        ages.of(str(number), date)
    clock.jump(DAY_S)
    assert ages.of(str(AGES_MAX), date) == 0
    assert ages.of("0", date) == DAY_S


@pytest.mark.parametrize("jump", JUMPS)
def test_past_instants_keep_their_dates(clock: FakeClock, jump: float) -> None:
    dates = PastDates(clock)
    clock.advance(100)
    first = clock.monotonic(), clock.wall()
    clock.advance(100)
    dates.note()
    clock.sleep(2 * HOUR_S)
    dates.note()
    clock.advance(100)
    second = clock.monotonic(), clock.wall()
    clock.advance(1)
    clock.jump(jump)
    dates.note()
    clock.advance(100)
    third = clock.monotonic(), clock.wall()
    for instant, date in (first, second, third):
        assert dates.of(instant) == pytest.approx(date, abs=0.001)
    assert dates.instant(third[1]) == pytest.approx(third[0], abs=0.001)
    assert dates.instant(second[1]) == pytest.approx(second[0], abs=0.001)
    assert dates.instant(clock.wall() + 20 * DAY_S) == clock.monotonic(), "the future is now"
    assert dates.of(0.0) == first[1] - first[0], "before it was there it was as when it came"


@pytest.mark.parametrize("jump", JUMPS)
def test_a_clock_that_was_set_just_now_dates_the_instants_before(clock: FakeClock, jump: float) -> None:
    dates = PastDates(clock)
    clock.advance(100)
    before = clock.monotonic(), clock.wall()
    clock.jump(jump)
    clock.advance(100)
    after = clock.monotonic(), clock.wall()
    assert dates.instant(after[1]) == pytest.approx(after[0], abs=0.001), "nothing has noted the jump before"
    assert dates.instant(before[1]) == pytest.approx(before[0], abs=0.001)


def test_so_many_steps_of_the_clock_are_remembered(clock: FakeClock) -> None:
    dates = PastDates(clock)
    for number in range(2 * STEPS_MAX):
        last = clock.wall()
        clock.jump((number + 1) * HOUR_S)
        clock.advance(1)
        dates.note()
    assert len(dates._steps) == STEPS_MAX
    clock.jump(HOUR_S)
    assert dates.instant(last) < clock.monotonic(), "a step more does not shift the others"
    assert len(dates._steps) == STEPS_MAX


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="Linux only")
def test_a_process_is_older_than_what_was_written_after_it(tmp_path: Path) -> None:
    unit = tmp_path / "a.service"
    unit.touch()
    assert _is_older(os.getpid(), [unit])
    os.utime(unit, (0, 0))
    assert not _is_older(os.getpid(), [unit])
    assert not _is_older(0, [unit]), "none runs"


def test_the_boot_clock_is_that_of_the_kernel() -> None:
    if not hasattr(time, "CLOCK_BOOTTIME"):
        pytest.skip("Linux only")
    assert SystemClock().boot() == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=60)
