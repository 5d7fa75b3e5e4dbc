"""Two real daemons over a line that delays, overtakes and drops, and is cut; they and the broker are killed meanwhile.

What is sent goes by HTTP, under a key, as a script sends that goes on until its message is taken: a daemon that comes
up may ask for patience (503), and refuses nothing.
"""

import asyncio
import http.client
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from synapsed.clock import SystemClock
from synapsed.config.paths import Paths
from synapsed.interfaces import TaskFilter, task_cursor
from synapsed.model.external import host_of
from synapsed.model.task import Task, TaskState
from synapsed.store.store import SqliteStore
from synapsed_fleet.fleet_rows import FleetOrigin
from tests.parts.fleet.brokers import FleetHome, needs_broker, until
from tests.support.daemon import NO_PORTS
from tests.support.lossy import BadLine, bad_line, needs_tun
from tests.support.namespaces import NETWORK, Housed, needs_namespaces

pytestmark = [
    needs_broker, needs_namespaces, needs_tun, pytest.mark.night, pytest.mark.system, pytest.mark.slow,
    pytest.mark.timeout(7200),
]  # fmt: skip

MESSAGES: Final = min(int(os.environ.get("FLEET_MESSAGES", "60")), 3000)
KILLS: Final = min(int(os.environ.get("FLEET_KILLS", "6")), 40)
PATIENCE_S: Final = 3600.0
PAUSE_S: Final = 0.2
"""Before a message that was not taken is sent again."""
AWAY_S: Final = (1.0, 5.0)
"""Seconds for which the line is cut, least and most."""
AT_ONCE: Final = 12
"""Messages of one host that are not answered yet: so each kill meets some that are being sent."""
AGENTS: Final = ("ant", "bee", "cat")
CONFIG: Final = NO_PORTS + "".join(f'[agents.{name}]\nprofile = "dummy"\nautostart = true\n' for name in AGENTS)


@dataclass
class House:
    """One host: its member's files, its daemon, and what a script there sends to the agents of `other`."""

    name: str
    home: FleetHome
    daemon: Housed
    other: str
    refused: list[str] = field(default_factory=list)
    asked_for_patience: int = 0
    unanswered: int = 0
    taken: int = 0

    def texts(self) -> list[str]:
        return [f"{self.name} {number}" for number in range(MESSAGES // 2)]

    def send(self, ended: threading.Event) -> None:
        """Sends all, a few at a time; each until it is taken or refused."""
        for number, text in enumerate(self.texts()):
            agent = f"{AGENTS[number % len(AGENTS)]}@{self.other}"
            body = {"message": {"role": "user", "parts": [{"type": "text", "text": text}]}}
            while self.taken - _done(self) >= AT_ONCE or not self._sent(agent, text, body):
                if ended.wait(PAUSE_S):
                    return
            self.taken += 1

    def _sent(self, agent: str, text: str, body: Any) -> bool:
        try:
            answer = self.daemon.request("POST", f"/agents/{agent}/tasks/send", body, {"Idempotency-Key": text})
        except (OSError, http.client.HTTPException):  # it was killed
            self.unanswered += 1
            return False
        if answer.status == 503 and "retry-after" in answer.headers:
            self.asked_for_patience += 1
            return False
        if answer.status != 200:
            self.refused.append(f"{text}: {answer.status} {answer.body[:300]!r}")
        return True


@contextmanager
def houses(folder: Path, line: BadLine) -> Iterator[list[House]]:
    """`box` has the broker, and `laptop` reaches it over the line."""
    inside = [["nsenter", f"--net=/proc/{pid}/ns/net"] for pid in (line.here, line.there)]
    box = FleetHome(folder / "box", inside=inside[0])
    daemons: list[Housed] = []
    try:
        box.create("box", listen="0.0.0.0:4222", addresses=[f"{NETWORK}.1"])
        laptop = FleetHome(folder / "laptop", inside=inside[1])
        laptop.do("join", line=box.do("invite", name="laptop")["line"])
        daemons = [
            Housed(one.folder, config=CONFIG, house=pid) for one, pid in ((box, line.here), (laptop, line.there))
        ]
        for daemon in daemons:
            daemon.start()
        yield [House("box", box, daemons[0], "laptop"), House("laptop", laptop, daemons[1], "box")]
    finally:
        for daemon in daemons:
            daemon.end()
        box.close()


def test_nothing_is_lost_doubled_or_refused(tmp_path: Path) -> None:
    random, ended = Random(40), threading.Event()
    with bad_line(40, seconds=7200) as line:
        with houses(tmp_path, line) as both:
            for house in both:
                until(lambda house=house: _knows(house), f"{house.name} knows the other's agents", PATIENCE_S)
            senders = [threading.Thread(target=house.send, args=(ended,), daemon=True) for house in both]
            for sender in senders:
                sender.start()
            began, cuts = time.monotonic(), 0
            try:
                for kill in range(KILLS):
                    goal = MESSAGES * kill // KILLS
                    until(lambda goal=goal: sum(map(_done, both)) >= goal, f"{goal} are answered", PATIENCE_S)
                    _harm(random, kill, line, both)
                    cuts += kill % 4 == 3
                until(lambda: not any(one.is_alive() for one in senders), "all is sent", PATIENCE_S)
                until(lambda: sum(map(_done, both)) >= MESSAGES, "all is answered", PATIENCE_S)
            finally:
                ended.set()
                for sender in senders:
                    sender.join(60)
            took = time.monotonic() - began
        counts = line.counts()
    print(
        f"{MESSAGES} messages in {took:.0f} s, {KILLS} kills and cuts, {cuts} of them cuts; asked for patience "
        f"{[one.asked_for_patience for one in both]}, unanswered {[one.unanswered for one in both]}; packets {counts}"
    )
    assert [text for house in both for text in house.refused] == []
    assert min(counts.values()) > 0
    assert asyncio.run(_faults(both)) == {}


def _harm(random: Random, kill: int, line: BadLine, both: list[House]) -> None:
    """Kills the broker or one of the daemons, which is started again at once, or cuts the line for a while."""
    time.sleep(random.random() * 0.5)  # the moment of it
    if kill % 4 == 0:
        both[0].home.kill()
        both[0].home.start()
    elif kill % 4 == 3:
        line.cut()
        time.sleep(random.uniform(*AWAY_S))  # so long it is cut
        line.mend()
    else:
        victim = both[kill // 2 % 2].daemon
        victim.kill9()
        victim.start()


def _knows(house: House) -> bool:
    rows = house.daemon.get("/agents?hosts=1").json
    return {f"{name}@{house.other}" for name in AGENTS} <= {row["name"] for row in rows}


def _done(house: House) -> int:
    """How many messages of the house have ended."""
    path = Paths.from_environ(house.daemon.env).database
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20)) as database:
        query = "SELECT count(*) FROM tasks WHERE open = 0 AND agent_id LIKE ?"
        found: int = database.execute(query, (f"%@{house.other}",)).fetchone()[0]
    return found


async def _faults(both: list[House]) -> dict[str, list[str]]:
    """What the stores say that should not be so, once both have ended."""
    answered: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    otherwise: list[str] = []
    for house in both:
        for task in await _tasks(house):
            text = task.message.text
            if host_of(task.agent_id) is None:
                if FleetOrigin.of(task.metadata) is not None:
                    taken[text] += 1
            elif task.status is TaskState.COMPLETED and task.answer == f"You said: {text}":
                answered[text] += 1
            else:
                otherwise.append(f"{text}: {task.status.value} {task.answer!r} {task.error and task.error.message}")
    sent = [text for house in both for text in house.texts()]
    told = {
        "lost": [text for text in sent if taken[text] == 0],
        "twice": [text for text in sent if taken[text] > 1 or answered[text] > 1],
        "without an answer": [text for text in sent if answered[text] == 0],
        "otherwise": otherwise,
        "of nobody": [text for text in taken if text not in set(sent)],
    }
    return {what: found[:5] for what, found in told.items() if found}


async def _tasks(house: House) -> list[Task]:
    store = await SqliteStore.open(Paths.from_environ(house.daemon.env).database, clock=SystemClock())
    found: list[Task] = []
    try:
        before: str | None = None
        while page := (await store.tasks(TaskFilter(limit=1000, before=before)))[0]:
            found += page
            before = task_cursor(page[-1])
    finally:
        await store.close()
    return found
