"""A real daemon under a clock that is set."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.clock import DAY_S, JUMPS
from tests.ground.installed import Installed
from tests.ground.person import Person, living_somewhere
from tests.support.daemon import eventually
from tests.support.set_clock import SetClock

pytestmark = [
    pytest.mark.night,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler, and nobody else sets a clock for one process"),
]


@pytest.fixture
def person(installed: Installed) -> Iterator[Person]:
    with living_somewhere(installed) as person:
        yield person


@pytest.fixture
def clock(person: Person, tmp_path: Path) -> SetClock:
    return SetClock(tmp_path, person.login)


def test_work_goes_on_while_the_clock_jumps(person: Person, clock: SetClock) -> None:
    assert person.ctl("start", "dummy", "--name", "d", env=clock.env).code == 0
    person.ready("d")
    assert person.ctl("send", "d", "--wait", "--", "echo first", env=clock.env).out == "first\n"
    for jump in JUMPS:
        clock.to(jump)
        sent = person.ctl("send", "d", "--wait", "--", f"echo {jump:.0f}", env=clock.env)
        assert (sent.code, sent.out) == (0, f"{jump:.0f}\n"), sent
        clock.to(0)
        assert person.ctl("send", "d", "--wait", "--", "echo right", env=clock.env).out == "right\n"
    dates = [one["created_at"][:10] for one in person.ctl("tasks", "--json", env=clock.env).json]
    assert len(dates) == 1 + 2 * len(JUMPS), "no task is lost"
    assert len(set(dates)) > len(JUMPS), "the daemon has seen the clock jump"


@pytest.mark.parametrize("jump", [-DAY_S, -20 * DAY_S])
def test_a_daemon_is_started_after_the_clock_was_set_back(person: Person, clock: SetClock, jump: float) -> None:
    for seconds in (0, jump):
        clock.to(seconds)
        started = person.ctl("start", "dummy", env=clock.env)
        assert started.code == 0, started
        assert person.ctl("shutdown", env=clock.env).code == 0


def test_a_killed_daemon_finds_its_agents_under_another_date(person: Person, clock: SetClock) -> None:
    assert person.ctl("start", "dummy", "--name", "d", env=clock.env).code == 0
    program = person.ready("d")["pid"]
    for jump in JUMPS:
        person.kill()
        clock.to(jump)
        eventually(lambda: person.ctl("up", env=clock.env).code == 0, "another daemon")
        assert person.ready("d")["pid"] == program
    sent = person.ctl("send", "d", "--wait", "--", "echo here", env=clock.env)
    assert (sent.code, sent.out) == (0, "here\n"), sent
