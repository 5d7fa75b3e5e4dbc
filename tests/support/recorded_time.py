"""Recordings are played in their own time: whatever sees the real one in a test that plays them is an error, and named.

A test of the mark `recorded` may not ask any real clock, wait by one, use a thread, start or look at a process, nor run
an event loop of real time (`FakeLoop` is one of recorded time): on a busy machine each of them comes at another moment
of the recording, which then tells another story. A use that the code under test passes over fails the test too. A
plugin of pytest.
"""

import asyncio
import builtins
import concurrent.futures
import contextlib
import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

__all__ = ["RealTimeUsed", "only_recorded_time"]

OWN = ("synapsed", "tests")
"""Packages that may not ask the time; others (pytest, logging) may."""

CLOCKS = ("clock_gettime", "monotonic", "monotonic_ns", "time", "time_ns", "perf_counter", "perf_counter_ns", "sleep")

OUTSIDE: tuple[tuple[Any, str], ...] = (
    (asyncio.BaseEventLoop, "run_in_executor"),
    (asyncio.BaseEventLoop, "time"),
    (concurrent.futures.ThreadPoolExecutor, "submit"),
    (threading.Thread, "start"),
    (subprocess.Popen, "__init__"),
    (os, "fork"),
    (os, "posix_spawn"),
    (os, "kill"),
)
"""What nobody may use."""

READS: tuple[tuple[Any, str], ...] = tuple(
    [(builtins, "open"), (io, "open")] + [(os, name) for name in ("open", "listdir", "scandir", "readlink")]
)
"""What may not be used for other processes."""

PROCESSES = "/proc"


class RealTimeUsed(AssertionError):
    """A recording that is played would depend on the machine."""


@contextlib.contextmanager
def only_recorded_time() -> Iterator[list[str]]:
    """Refuses real time meanwhile; the list has every use that was refused."""
    used: list[str] = []

    def refuse(what: str) -> None:
        used.append(f"{what}, by {_user()}")
        raise RealTimeUsed(used[-1])

    with pytest.MonkeyPatch.context() as patch:
        for name in CLOCKS:
            patch.setattr(time, name, _unless(getattr(time, name), _is_asked_by_own, f"time.{name}", refuse))
        for holder, name in OUTSIDE:
            patch.setattr(holder, name, _unless(getattr(holder, name), _always, _named(holder, name), refuse))
        for holder, name in READS:
            patch.setattr(holder, name, _unless(getattr(holder, name), _reads_processes, _named(holder, name), refuse))
        yield used


def _unless(
    real: Callable[..., Any], refused: Callable[[tuple[Any, ...]], bool], what: str, refuse: Callable[[str], None]
) -> Callable[..., Any]:
    def used(*args: Any, **options: Any) -> Any:
        if refused(args):
            refuse(what)
        return real(*args, **options)

    return used


def _named(holder: Any, name: str) -> str:
    return f"{holder.__name__}.{name}"


def _always(_args: tuple[Any, ...]) -> bool:
    return True


def _is_asked_by_own(_args: tuple[Any, ...]) -> bool:
    return sys._getframe(2).f_globals.get("__name__", "").partition(".")[0] in OWN


def _reads_processes(args: tuple[Any, ...]) -> bool:
    return bool(args) and isinstance(args[0], str | os.PathLike) and os.fspath(args[0]).startswith(PROCESSES)


def _user() -> str:
    """The innermost line of ours."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        name = frame.f_globals.get("__name__", "")
        if name != __name__ and name.partition(".")[0] in OWN:
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return "the event loop"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    if item.get_closest_marker("recorded") is None:
        return (yield)
    with only_recorded_time() as used:
        try:
            result = yield
        except BaseException as error:
            for use in used:
                error.add_note(f"real time: {use}")
            raise
    if used:
        raise RealTimeUsed("; ".join(used))
    return result
