"""Daemons without the second of computing that importing them takes: forked from a process that did it (`forking`).

A plugin of pytest. Each daemon is a fresh process of its own all the same, with the arguments, environment, folder and
files of a start, and it ends as an interpreter ends; two of them share no more than two that were started by hand.
What differs is its parent, and what /proc says of its command line and its environment. Tests about the start itself
are marked `cold`; they, those on real programs, those of faults, and all outside pytest (`bench`) start by hand.
"""

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.leftovers import OWNER

__all__ = ["Forked", "fork", "kill"]

COLD = ("cold", "real", "faults", "frameworks")
"""The marks of tests whose daemons are started by hand."""

READ_AT_START = ("PYTHON", "LANG", "LC_", "TZ", "SSL_", "OPENSSL_", "AIOHTTP_", "LD_", "MALLOC_", "GLIBC_")
"""How variables begin that an interpreter or a library reads as it starts: if one differs, a daemon starts by hand."""

_on = False


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    global _on  # noqa: PLW0603
    before, _on = _on, not any(item.get_closest_marker(name) for name in COLD)
    try:
        return (yield)
    finally:
        _on = before


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    if _Server.running is not None:
        _Server.running.close()
        _Server.running = None


@dataclass
class Forked:
    """As much of `subprocess.Popen` as tests need of a daemon."""

    server: "_Server"
    pid: int
    owner: str
    returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self.server.ask({"poll": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("synapsed", timeout or 0.0)
            time.sleep(0.01)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:  # nobody else gets its number before its end has been asked for
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


def fork(arguments: Sequence[str], env: Mapping[str, str], files: Sequence[int]) -> Forked | None:
    """`synapsed ARGUMENTS` with `files` as its stdin, stdout and stderr; None where it is to be started by hand."""
    if not _on or _read_at_start(env) != _read_at_start(os.environ):
        return None
    if _Server.running is None:
        _Server.running = _Server()
    return _Server.running.fork(arguments, env, files)


def kill(owner: str) -> None:
    """End the daemons that were forked for an OWNER that begins with `owner`."""
    for forked in [] if _Server.running is None else _Server.running.forked:
        if forked.owner.startswith(owner):
            forked.kill()


def cpu_s() -> float:
    """Seconds of CPU of the daemons that were forked, with their children's, as far as they have ended."""
    return 0.0 if _Server.running is None else float(_Server.running.ask({"cpu": True}))


def _read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    written = "PYTHONDONTWRITEBYTECODE"  # means nothing where everything has been imported
    return {k: v for k, v in env.items() if k.startswith(READ_AT_START) and k != written}


class _Server:
    running: "_Server | None" = None

    def __init__(self) -> None:
        self._sock, theirs = socket.socketpair()
        self._answers = self._sock.makefile("rb")
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self.forked: list[Forked] = []
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.forking", str(theirs.fileno())],
                cwd=Path(__file__).parents[2],
                env={k: v for k, v in os.environ.items() if k != OWNER},  # no test's own: it is there for the next too
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def fork(self, arguments: Sequence[str], env: Mapping[str, str], files: Sequence[int]) -> Forked:
        job = {"arguments": list(arguments), "env": dict(env), "cwd": str(Path.cwd())}
        forked = Forked(self, self.ask(job, files), env.get(OWNER, ""))
        self.forked.append(forked)
        return forked

    def ask(self, question: dict[str, Any], files: Sequence[int] = ()) -> Any:
        with self._lock:
            number = next(self._numbers)
            line = json.dumps(question | {"number": number}).encode() + b"\n"
            sent = socket.send_fds(self._sock, [line], files) if files else 0
            self._sock.sendall(line[sent:])
            while answer := self._answers.readline():
                told = json.loads(answer)
                if told["number"] == number:  # the one before may be that of a test that ran out of time
                    return told["answer"]
        raise AssertionError("the process that daemons are forked from is gone")

    def close(self) -> None:
        self._answers.close()
        self._sock.close()
        self._process.wait()
