"""A real daemon under a clock that is set, by a library that stands before libc: a machine has one wall clock."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.clock import DAY_S, JUMPS
from tests.ground.installed import Installed
from tests.ground.person import Person, living_somewhere
from tests.support.daemon import eventually

SHIM = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long ahead(void) {
    const char *path = getenv("AHEAD_FILE");
    FILE *file = path ? fopen(path, "re") : NULL;
    long found = 0;
    if (file) { if (fscanf(file, "%ld", &found) != 1) found = 0; fclose(file); }
    return found;
}
int clock_gettime(clockid_t id, struct timespec *to) {
    int done = (int)syscall(SYS_clock_gettime, id, to);
    if (done == 0 && id == CLOCK_REALTIME) to->tv_sec += ahead();
    return done;
}
time_t time(time_t *to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to) *to = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *to, void *zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    to->tv_sec = now.tv_sec;
    to->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""

pytestmark = [
    pytest.mark.night,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler, and nobody else sets a clock for one process"),
]


class Set:
    """The clock of all that `env` is the environment of."""

    def __init__(self, person: Person, folder: Path) -> None:
        source, library = folder / "ahead.c", folder / "ahead.so"
        source.write_text(SHIM)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
        self._file = folder / "ahead"
        self.env = {**person.login, "LD_PRELOAD": str(library), "AHEAD_FILE": str(self._file)}
        self.to(0)

    def to(self, seconds: float) -> None:
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{seconds:.0f}\n")
        fresh.replace(self._file)


@pytest.fixture
def person(installed: Installed) -> Iterator[Person]:
    with living_somewhere(installed) as person:
        yield person


@pytest.fixture
def clock(person: Person, tmp_path: Path) -> Set:
    return Set(person, tmp_path)


def test_work_goes_on_while_the_clock_jumps(person: Person, clock: Set) -> None:
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
def test_a_daemon_is_started_after_the_clock_was_set_back(person: Person, clock: Set, jump: float) -> None:
    for seconds in (0, jump):
        clock.to(seconds)
        started = person.ctl("start", "dummy", env=clock.env)
        assert started.code == 0, started
        assert person.ctl("shutdown", env=clock.env).code == 0


def test_a_killed_daemon_finds_its_agents_under_another_date(person: Person, clock: Set) -> None:
    assert person.ctl("start", "dummy", "--name", "d", env=clock.env).code == 0
    program = person.ready("d")["pid"]
    for jump in JUMPS:
        person.kill()
        clock.to(jump)
        eventually(lambda: person.ctl("up", env=clock.env).code == 0, "another daemon")
        assert person.ready("d")["pid"] == program
    sent = person.ctl("send", "d", "--wait", "--", "echo here", env=clock.env)
    assert (sent.code, sent.out) == (0, "here\n"), sent
