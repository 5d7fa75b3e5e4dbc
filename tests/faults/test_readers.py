"""Fault 17: readers that do not read, and answers of megabytes.

What the daemon holds follows what there is to read, not how many want it, and nobody else waits for it.
"""

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psutil
import pytest

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
"""What the loop may stand for."""

PATHS = {
    "seeds": "GET /agents/{agent}/tasks/{task}/subscribe",
    "events": "GET /agents/{agent}/events?stream=sse",
    "1.0": ("SubscribeToTask", {"A2A-Version": "1.0"}),
    "0.3": ("tasks/resubscribe", {"A2A-Version": "0.3"}),
}


@dataclass
class Watch:
    """What the daemon holds at the most while it is watched, and how long its loop stands."""

    pid: int
    baseline: int = 0
    peak: int = 0
    lag: float = 0.0

    @property
    def grew(self) -> int:
        return self.peak - self.baseline


@contextlib.contextmanager
def watched(daemon: Daemon) -> Iterator[Watch]:
    process = psutil.Process(daemon.pid)
    watch = Watch(daemon.pid, baseline=process.memory_info().rss)
    over = threading.Event()

    def sample() -> None:
        while not over.wait(0.002):
            watch.peak = max(watch.peak, process.memory_info().rss)

    def ask() -> None:
        """One connection, so that what is measured is the loop and not a socket's making."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.connect(str(daemon.socket))
        while not over.wait(0.005):
            began = time.monotonic()
            sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            sock.recv(65536)
            watch.lag = max(watch.lag, time.monotonic() - began)
        sock.close()

    threads = [threading.Thread(target=sample), threading.Thread(target=ask)]
    for thread in threads:
        thread.start()
    try:
        yield watch
    finally:
        over.set()
        for thread in threads:
            thread.join()


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
    """The daemon has nothing more to do: it used no processor for a while."""
    process = psutil.Process(daemon.pid)

    def idle() -> bool:
        return process.cpu_percent(0.5) < 10

    eventually(idle, "the daemon is done")
