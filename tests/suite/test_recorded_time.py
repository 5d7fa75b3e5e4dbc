"""Tests that play recordings see no real time: each use of it is an error that names who uses it."""

import asyncio
import contextlib
import os
import re
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from synapsed.clock import SystemClock
from tests.fakes.clock import FakeClock
from tests.fakes.loop import FakeLoop
from tests.support.recorded_time import RealTimeUsed, only_recorded_time

TESTS = Path(__file__).parents[1]

PLAYS = re.compile(r"golden\.replay|recorded_links|emulator\.streams|real\.record import|\"recordings\"")
"""In the source of a test that plays recordings."""

IN_REAL_TIME = {
    "parts/profile_tools/reports/test_from_report.py": "a process of its own plays them",
    "parts/profile_tools/test_taking.py": "bundles' recordings are played by a process of their own",
    "parts/profile_tools/test_proving.py": "a process of its own plays them",
    "parts/profile_tools/test_recordings.py": "a process of its own plays them",
    "parts/approvals/test_each_profile.py": "single questions are taken from them, and nothing is played",
    "drift/test_gather.py": "a process of its own plays them",
    "parts/session_server/test_channel.py": "the events are told by a server, over a socket; it waits for named facts",
    "emulator/test_tmux.py": "tmux, another process, shows what is to be seen",
    "web/test_cells.py": "a real browser measures where each cell of their screens stands",
    "web/test_daemon.py": "a real daemon draws them, for a real browser",
}
"""Modules that may play them so, each with its reason."""

USES: dict[str, tuple[Callable[[], object], str]] = {
    "clock": (SystemClock().monotonic, r"time\.monotonic, by synapsed\.clock:"),
    "wall clock": (SystemClock().wall, r"time\.time, by synapsed\.clock:"),
    "boot clock": (SystemClock().boot, r"time\.clock_gettime, by synapsed\.clock:"),
    "sleep": (lambda: time.sleep(0), r"time\.sleep, by tests\.suite"),
    "thread": (lambda: threading.Thread(target=int).start(), r"Thread\.start, by tests\.suite"),
    "program": (lambda: subprocess.run(["true"], check=True), r"Popen\.__init__, by tests\.suite"),
    "signal": (lambda: os.kill(os.getpid(), 0), r"kill, by tests\.suite"),
    "process": ((Path("/proc") / "self" / "stat").read_text, r"open, by tests\.suite"),
    "processes": (lambda: list(Path("/proc").iterdir()), r"scandir, by tests\.suite"),
}


@pytest.mark.parametrize("use", USES)
def test_real_time_is_refused(use: str) -> None:
    call, named = USES[use]
    with only_recorded_time() as used, pytest.raises(RealTimeUsed, match=named):
        call()
    assert used
    call()


def test_a_loop_of_real_time_does_not_run() -> None:
    loop = asyncio.new_event_loop()
    begun: list[int] = []
    loop.call_soon(begun.append, 1)
    with only_recorded_time(), pytest.raises(RealTimeUsed, match=r"BaseEventLoop\.time, by tests\.suite"):
        loop.run_forever()
    loop.close()
    assert begun == []


def test_a_use_that_is_passed_over_is_known() -> None:
    with only_recorded_time() as used, contextlib.suppress(RealTimeUsed):
        time.time()
    assert used[0].startswith("time.time, by tests.suite.test_recorded_time:")


def plays(awaited: Callable[[], Awaitable[object]], clock: FakeClock) -> None:
    async def play() -> None:
        await awaited()

    with asyncio.Runner(debug=True, loop_factory=lambda: FakeLoop(clock)) as runner:
        runner.run(play())


@pytest.mark.recorded
def test_timers_are_due_when_the_clock_is_turned() -> None:
    clock = FakeClock()

    async def sleeps() -> None:
        sleeping = asyncio.create_task(asyncio.sleep(5))
        await asyncio.sleep(0)
        clock.advance(4.9)
        for _ in range(10):
            await asyncio.sleep(0)
        assert not sleeping.done()
        clock.advance(0.2)
        await sleeping

    plays(sleeps, clock)


@pytest.mark.recorded
def test_who_waits_for_what_does_not_come_is_named() -> None:
    async def waits_long() -> None:
        await asyncio.sleep(5)

    with pytest.raises(AssertionError, match=r"only real time .* in .*sleep:\d+"):
        plays(waits_long, FakeClock())


def test_threads_of_a_loop_are_refused_too() -> None:
    with only_recorded_time() as used, pytest.raises(RealTimeUsed, match=r"run_in_executor, by tests\.suite"):
        plays(lambda: asyncio.to_thread(print), FakeClock())
    assert len(used) == 1


def test_all_that_play_recordings_are_marked() -> None:
    playing = {
        str(path.relative_to(TESTS)): "pytest.mark.recorded" in text
        for path in TESTS.rglob("test_*.py")
        if path != Path(__file__) and PLAYS.search(text := path.read_text())
    }
    assert {name for name, marked in playing.items() if not marked} == IN_REAL_TIME.keys()
    assert any(playing.values())
