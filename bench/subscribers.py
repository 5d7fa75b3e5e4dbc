"""A thousand SSE subscribers on one task: how late an event comes to them, and what each costs the daemon in memory.

python -m bench subscribers

The agent that works hands over small artifacts, some a second; a process of its own holds all connections (over TCP)
and notes for every frame how long after the hand-over it was there.
"""

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench.figures import daemon, percentile, pss, report, sized
from tests.support.daemon import Daemon

SUBSCRIBERS = sized(1000, 50)
EVENTS = sized(50, 3)
EVERY_S = 0.4
CONNECTING = 50
"""At a time."""
CONFIG = '[api]\nlisten = "127.0.0.1:0"\nagent_ports = false\n'
MARK = b"at="
DELAY_MS, MEMORY_KB = 250, 100
"""What is thought bearable; the design names no bar."""


# --- the subscribers -------------------------------------------------------------------------------------------------


class Subscriber(asyncio.Protocol):
    """Reads one stream; every mark is noted with the delay since it was made."""

    def __init__(self, request: bytes, delays: list[float]) -> None:
        self._request = request
        self._delays = delays
        self._rest = b""
        self.open = asyncio.get_running_loop().create_future()
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        if not self.open.done():
            assert data.startswith(b"HTTP/1.1 200"), data[:300]
            self.open.set_result(None)
        *pieces, self._rest = (self._rest + data).split(b"\n\n")
        for piece in pieces:
            if (at := piece.find(MARK)) >= 0:
                self._delays.append(now - float(piece[at + len(MARK) : piece.index(b";", at)]))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


async def subscribe(port: int, path: str) -> None:
    """Says `open` when all are, and what they saw when the task has ended."""
    delays: list[float] = []
    loop = asyncio.get_running_loop()
    request = (
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nConnection: close\r\n\r\n".encode()
    )
    everyone: list[Subscriber] = []
    for _ in range(0, SUBSCRIBERS, CONNECTING):
        some = [
            (await loop.create_connection(lambda: Subscriber(request, delays), "127.0.0.1", port))[1]
            for _ in range(CONNECTING)
        ]
        await asyncio.gather(*(one.open for one in some))
        everyone += some
    print("open", flush=True)
    await asyncio.wait([one.ended for one in everyone], timeout=EVENTS * EVERY_S + 60)
    print(len(delays), percentile(delays, 0.5), percentile(delays, 0.99), max(delays), flush=True)


# --- the task --------------------------------------------------------------------------------------------------------


def main() -> None:
    with daemon(CONFIG) as running:
        running.start_agent()
        task = running.send(f"sleep {int(EVENTS * EVERY_S) + 60}")
        running.task_in(task, "working")
        before = pss(running.pid)
        path = f"/agents/dummy/tasks/{task}/subscribe"
        command = [sys.executable, __file__, "--subscribe", str(running.port), path]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as subscribers:
            assert subscribers.stdout is not None
            assert subscribers.stdout.readline() == "open\n"
            memory = (pss(running.pid) - before) / SUBSCRIBERS
            _hand_over(running, task)
            threading.Timer(1.0, lambda: running.post(f"/control/tasks/{task}/cancel", {})).start()
            count, p50, p99, last = map(float, subscribers.stdout.readline().split())
    times = f"p50 {p50 * 1e3:.0f} ms, p99 {p99 * 1e3:.0f} ms, last {last * 1e3:.0f} ms"
    seen = f"{count:.0f} of {SUBSCRIBERS * EVENTS} frames; {times}"
    report(
        f"{SUBSCRIBERS} subscribers on one task, {1 / EVERY_S:.1f} events a second",
        seen,
        f"all, p99 ≤ {DELAY_MS} ms",
        held=count == SUBSCRIBERS * EVENTS and p99 <= DELAY_MS / 1e3,
    )
    report(
        "memory of the daemon per subscriber",
        f"{memory / 1024:.0f} KB",
        f"≤ {MEMORY_KB} KB",
        held=memory <= MEMORY_KB * 1024,
    )


def _hand_over(running: Daemon, task: str) -> None:
    due = time.monotonic()
    for _ in range(EVENTS):
        text = f"at={time.monotonic():.6f};"
        answer = running.post(f"/agents/dummy/tasks/{task}/artifacts", {"parts": [{"type": "text", "text": text}]})
        assert answer.status == 200, answer.json
        due += EVERY_S
        time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--subscribe"]:
        asyncio.run(subscribe(int(sys.argv[2]), sys.argv[3]))
    else:
        main()
