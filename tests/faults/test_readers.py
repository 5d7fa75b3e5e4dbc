"""Fault 17: readers that do not read, and answers of megabytes.

What the daemon holds follows what there is to read, not how many want it, and nobody else waits for it.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psutil
import pytest

from tests.faults import prober
from tests.faults.house import House
from tests.support.daemon import NO_PORTS, Daemon, eventually

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

READERS = int(os.environ.get("FAULT_READERS", "300"))
ANSWER = "Ein Wort, “a quote” and: more\n" * 160_000
"""4.8 million characters."""
MB = 1024 * 1024
SPARE = 100 * MB
"""What the daemon may hold beyond twice the payload."""
STANDS_S = 0.1
"""What the loop may stand for, while it has a processor."""
IDLE_PERCENT = 25.0
"""Of a processor: below it the daemon is done. The prober's questions alone take 10 to 14 on an undisturbed machine."""

PATHS = {
    "seeds": "GET /agents/{agent}/tasks/{task}/subscribe",
    "events": "GET /agents/{agent}/events?stream=sse",
    "1.0": ("SubscribeToTask", {"A2A-Version": "1.0"}),
    "0.3": ("tasks/resubscribe", {"A2A-Version": "0.3"}),
}


@dataclass
class Watch:
    """What the daemon holds at the most while it is watched, and how long its loop stands."""

    prober: "subprocess.Popen[str]"
    baseline: int = 0
    peak: int = 0
    stood: float = 0.0

    @property
    def grew(self) -> int:
        return self.peak - self.baseline

    @property
    def lag(self) -> float:
        """Up to now."""
        if self.prober.poll() is None:
            assert self.prober.stdin is not None
            assert self.prober.stdout is not None
            self.prober.stdin.write("\n")
            self.prober.stdin.flush()
            self.stood = float(self.prober.stdout.readline())
        return self.stood


@contextlib.contextmanager
def watched(daemon: Daemon) -> Iterator[Watch]:
    process = psutil.Process(daemon.pid)
    command = [sys.executable, "-I", prober.__file__, str(daemon.socket), str(daemon.pid)]
    over = threading.Event()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asking:
        watch = Watch(asking)
        assert watch.lag > 0.0, "it asks"
        watch.baseline = process.memory_info().rss

        def sample() -> None:
            while not over.wait(0.002):
                watch.peak = max(watch.peak, process.memory_info().rss)

        sampling = threading.Thread(target=sample)
        sampling.start()
        try:
            yield watch
        finally:
            over.set()
            sampling.join()
            _ = watch.lag
            asking.communicate()


def deaf(daemon: Daemon, asked: str, headers: dict[str, str], body: bytes = b"") -> socket.socket:
    """A client that asks, and reads nothing."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.connect(str(daemon.socket))
    lines = [f"{asked} HTTP/1.1", "Host: localhost", *(f"{name}: {value}" for name, value in headers.items())]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    sock.sendall("\r\n".join([*lines, "", ""]).encode() + body)
    sock.recv(1)  # it is being answered
    return sock


def subscriber(daemon: Daemon, dialect: str, agent: str, task: str) -> socket.socket:
    way = PATHS[dialect]
    if isinstance(way, str):
        return deaf(daemon, way.format(agent=agent, task=task), {"Accept": "text/event-stream"})
    method, headers = way
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"id": task}}
    return deaf(daemon, f"POST /agents/{agent}/a2a", headers, json.dumps(body).encode())


def working(house: House, agent: str) -> str:
    """A task that is worked on until its agent is stopped."""
    task = house.daemon.post(
        f"/agents/{agent}/tasks/send", {"message": {"parts": [{"type": "text", "text": "deaf"}]}}
    ).json["task"]["id"]
    house.daemon.task_in(task, "working")
    return str(task)


def hand_over(daemon: Daemon, agent: str, task: str, text: str, name: str = "a") -> Any:
    return daemon.post(
        f"/agents/{agent}/tasks/{task}/artifacts", {"artifact_id": name, "parts": [{"type": "text", "text": text}]}
    )


@pytest.mark.parametrize("dialect", [*PATHS, "all"])
def test_one_large_answer_for_many_that_do_not_read(house: Callable[..., House], dialect: str):
    home = house("17", f"{READERS} readers that do not read ({dialect})", config=NO_PORTS)
    daemon = home.daemon.start()
    (agent,) = home.start_agents(1)
    task = working(home, agent)
    kinds = list(PATHS) if dialect == "all" else [dialect]
    readers = [subscriber(daemon, kinds[number % len(kinds)], agent, task) for number in range(READERS)]
    payload = len(ANSWER.encode())
    with watched(daemon) as watch:
        answer = hand_over(daemon, agent, task, ANSWER)
        assert answer.status == 200, answer.json
        settled(daemon)
    for reader in readers:
        reader.close()
    home.row.figures[dialect] = f"{watch.grew / MB:.0f} MB for {payload / MB:.1f} MB, {watch.lag * 1000:.0f} ms"
    assert watch.grew <= 2 * payload + SPARE, home.row.figures
    assert watch.lag <= STANDS_S, home.row.figures


def settled(daemon: Daemon) -> None:
    """The daemon has nothing more to do: for a while it used little of a processor."""
    process = psutil.Process(daemon.pid)

    def idle() -> bool:
        return process.cpu_percent(0.5) < IDLE_PERCENT

    eventually(idle, "the daemon is done")
