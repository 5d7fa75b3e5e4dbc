"""Fault 18: subscribers of the events that do not read, and a daemon that is killed while others do.

Nobody waits for a subscriber, what the daemon holds for it is bounded in bytes, and no kill costs an event or doubles
one.
"""

import contextlib
import http.client
import selectors
import socket
import sqlite3
import threading
import time
from collections.abc import Callable

import pytest

from tests.faults.house import House
from tests.faults.test_readers import MB, deaf, watched
from tests.support.daemon import NO_PORTS, PATIENCE_S, Daemon, eventually

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

SUBSCRIBERS = 200
EVENTS = 300
OUTPUT = "x" * 7000
"""Characters of each event: together more than what any connection takes unread."""
SPARE = 60 * MB
"""What the daemon may hold for all of them."""
KILLS = 10

STREAM = "GET /events?stream=sse&types=toolExecution"

type MakeHouse = Callable[..., House]


class Readers:
    """Sockets of one thread, which counts the events that each was sent, batches included."""

    def __init__(self, sockets: list[socket.socket]) -> None:
        self.counts = dict.fromkeys(sockets, 0)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> "Readers":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _read(self) -> None:
        rest = dict.fromkeys(self.counts, b"")
        with selectors.DefaultSelector() as selector:
            for sock in self.counts:
                selector.register(sock, selectors.EVENT_READ)
            while not self._over.is_set():
                for key, _ in selector.select(0.1):
                    sock = key.fileobj
                    assert isinstance(sock, socket.socket)
                    data = rest[sock] + sock.recv(1 << 18)
                    # What may be the beginning of a mark stays for the next piece.
                    self.counts[sock] += data.count(MARK)
                    rest[sock] = data[-(len(MARK) - 1) :]


MARK = b'"event":"toolExecution"'


def report(daemon: Daemon, agent: str, number: int) -> None:
    data = {"tool_name": f"t{number}", "status": "completed", "output": {"text": OUTPUT}}
    answer = daemon.post(f"/agents/{agent}/events", {"event": "toolExecution", "data": data})
    assert answer.status == 200, answer.json


def test_many_subscribers_of_which_one_does_not_read(house: MakeHouse):
    home = house("18", f"{SUBSCRIBERS} subscribers, one of them stuck", config=NO_PORTS)
    daemon = home.daemon.start()
    (agent,) = home.start_agents(1)
    headers = {"Accept": "text/event-stream"}
    stuck, *others = (deaf(daemon, STREAM, headers) for _ in range(SUBSCRIBERS))
    with watched(daemon) as watch, Readers(others) as readers:
        for number in range(EVENTS):
            report(daemon, agent, number)
            if number == EVENTS // 2:
                task = daemon.send("echo unmoved", agent)
        assert daemon.ended(task)["status"] == "completed"
        eventually(lambda: set(readers.counts.values()) == {EVENTS}, "all others have had every event", patience=300)
    home.fault()
    home.row.figures["memory"] = f"{watch.grew / MB:.0f} MB for {SUBSCRIBERS} subscribers, {watch.lag * 1000:.0f} ms"
    assert watch.grew <= SPARE, home.row.figures
    for sock in (stuck, *others):
        sock.close()
    log = daemon.home / "daemon.log"
    eventually(lambda: "a subscriber has left" in log.read_text(), "who left events behind is in the daemon's log")


def test_events_over_kills(house: MakeHouse):
    home = house("19", f"events over {KILLS} kills of the daemon", config=NO_PORTS)
    daemon = home.daemon.start()
    agents = home.start_agents(2)
    seen: list[int] = []
    over = threading.Event()

    def follow() -> None:
        while not over.is_set():
            last = seen[-1] if seen else 0
            gone = contextlib.suppress(OSError, http.client.HTTPException, ValueError, KeyError)
            with gone, daemon.sse("/events", last_id=last) as events:
                for event in events:
                    seen.append(event["id"])
                    if over.is_set():
                        return
            time.sleep(0.02)

    follower = threading.Thread(target=follow)
    follower.start()
    try:
        for number in range(KILLS):
            tasks = [daemon.send(f"echo {number} {agent}", agent) for agent in agents]
            daemon.kill9()
            home.fault()
            daemon.start()
            for task in tasks:
                assert daemon.ended(task)["status"] == "completed"
        (last,) = _ids(daemon)[-1:]
        eventually(lambda: seen[-1:] >= [last], "the follower has all")
    finally:
        over.set()
        report(daemon, agents[0], 0)  # wakes the follower
        follower.join(PATIENCE_S)
    assert seen[: last - 1] == list(range(1, last))
    assert _ids(daemon)[:last] == list(range(1, last + 1))


def _ids(daemon: Daemon) -> list[int]:
    connection = sqlite3.connect(f"file:{daemon.home}/state/synapsed.db?mode=ro", uri=True)
    try:
        return [number for (number,) in connection.execute("SELECT id FROM events ORDER BY id")]
    finally:
        connection.close()
