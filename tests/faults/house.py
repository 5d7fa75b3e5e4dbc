"""A daemon with flooders, and the audit of what became of their bytes, their tasks and their processes."""

import contextlib
import http.client
import json
import os
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from synapsed.keeper.spool import SpoolReader
from tests.faults import flooder
from tests.faults.ledger import Row
from tests.support.daemon import PATIENCE_S, Daemon, eventually

__all__ = ["FLOODER", "PATIENT_S", "House", "Load"]

PATIENT_S = 4 * PATIENCE_S
"""For a house full of agents on a machine that is busy with something else."""

ENDS = ("completed", "failed", "canceled", "rejected")

FLOODER = """
description = "The scripted agent with a flood in it"
command = "{python}"
args = ["-S", "-E", "-I", "{script}", "{notes}"]
ports = [18140, 18239]

[ready]
quiet_ms = 20

[composer]
at_cursor = true
line = '^dummy[>|] ?(?P<text>.*)$'
bracketed_paste = true

[delivery]
settle_ms = 10
settle_max_ms = 1000

[interrupt]
keys = "\\u0003"
screen = '^\\[interrupted\\]'

[[error]]
pattern = '^!! '

[prompts]
generic = true
"""


@dataclass
class House:
    """`daemon` and everything under its home. Agents are flooders unless something else is said."""

    daemon: Daemon
    row: Row
    sent: dict[str, str] = field(default_factory=dict)
    """Task id → the text of its message, of tasks whose acceptance was answered."""
    unsure: set[str] = field(default_factory=set)
    """Texts whose acceptance the daemon did not live to answer."""
    refusal: str = ""
    """The last refusal of a message."""

    @property
    def notes(self) -> Path:
        return self.daemon.home / "notes"

    def prepare(self) -> None:
        self.notes.mkdir(parents=True, exist_ok=True)
        profiles = self.daemon.home / "config" / "profiles"
        profiles.mkdir(parents=True, exist_ok=True)
        script = Path(flooder.__file__)
        text = FLOODER.replace("{python}", sys.executable).replace("{script}", str(script))
        (profiles / "flooder.toml").write_text(text.replace("{notes}", str(self.notes)))

    def start_agents(self, count: int, prefix: str = "f", **wanted: Any) -> list[str]:
        names = [f"{prefix}{number:02d}" for number in range(count)]
        for name in names:
            answer = self.daemon.post("/control/start", {"profile": "flooder", "cwd": "/", "name": name, **wanted})
            assert answer.status == 200, answer.json
        for name in names:
            self.daemon.ready(name)
        return names

    def pids(self) -> dict[str, int]:
        return {agent["name"]: agent["pid"] for agent in self.daemon.get("/agents").json}

    def keeper_of(self, name: str) -> psutil.Process:
        return psutil.Process(psutil.Process(self.daemon.agent(name)["pid"]).ppid())

    def fault(self, times: int = 1) -> None:
        self.row.injected += times

    # --- tasks ---

    def send(self, text: str, agent: str) -> str | None:
        """The task's id; None where the daemon was gone before it could say."""
        message = {"role": "user", "parts": [{"type": "text", "text": text}]}
        try:
            answer = self.daemon.post(f"/agents/{agent}/tasks/send", {"message": message})
        except (OSError, http.client.HTTPException):
            self.unsure.add(text)
            return None
        if answer.status != 200:
            self.refusal = f"{answer.status} {answer.json}"
            return None  # refused, not accepted
        task_id = str(answer.json["task"]["id"])
        self.sent[task_id] = text
        return task_id

    def received(self) -> Counter[str]:
        """How often each message reached a program, by the programs' own receipts."""
        found: Counter[str] = Counter()
        for path in self.notes.glob("*.in"):
            found.update(json.loads(line) for line in path.read_bytes().splitlines())
        return found

    def audit_tasks(self, *, may_fail: frozenset[str] = frozenset()) -> None:
        """Every accepted task completed and was received once; what was perhaps accepted was not received twice.
        `may_fail` are tasks that a fault was meant to end; the daemon has to say so."""
        ended = {task_id: self.daemon.task_in(task_id, *ENDS, patience=PATIENT_S) for task_id in self.sent}
        received = self.received()
        for task_id, text in self.sent.items():
            done = ended[task_id]
            self.row.tasks += 1
            times = received[text]
            self.row.tasks_doubled += times > 1
            if task_id not in may_fail and (done["status"] != "completed" or times == 0):
                self.row.tasks_lost += 1
                self.row.figures[f"lost {task_id[:8]}"] = (
                    f"{text!r} {done['status']}, seen {times}×, {done.get('error')}"
                )
        self.row.tasks_doubled += sum(received[text] > 1 for text in self.unsure)

    # --- bytes ---

    def audit_bytes(self, name: str, pid: int, *, ended: bool = False, start: int = 0) -> int:
        """Compare the spool of `name`, from offset `start` on, with what program `pid` printed: what is kept stands at
        the offset at which it was printed. Returns the size of it all. `ended`: the program may have been killed
        between saying and doing."""
        reader = SpoolReader(str(self.daemon.home / "state" / "agents" / self._id(name) / "spool"))
        at = start
        compared = lost = 0
        for chunk in flooder.stream(self.notes / f"{pid}.out"):
            begin, at = at, at + len(chunk)
            if at <= reader.start:
                continue
            skip = max(0, reader.start - begin)
            kept = _read_exactly(reader, begin + skip, len(chunk) - skip)
            if ended and len(kept) < len(chunk) - skip and chunk[skip:].startswith(kept):
                compared += len(kept)
                at = reader.end
                break
            compared += len(kept)
            if kept != chunk[skip:]:
                lost += len(chunk) - skip
        lost += max(0, reader.end - at) if not ended else 0
        self.row.bytes += compared
        self.row.bytes_lost += lost
        return at

    def _id(self, name: str) -> str:
        return str(self.daemon.agent(name)["id"])

    def audit_events(self) -> int:
        """Ids of the one log have no hole; the newest."""
        connection = sqlite3.connect(f"file:{self.daemon.home}/state/synapsed.db?mode=ro", uri=True)
        try:
            low, high, count = connection.execute("SELECT min(id), max(id), count(*) FROM events").fetchone()
        finally:
            connection.close()
        assert high - low + 1 == count, f"the event log has holes: {low}…{high}, {count} rows"
        return int(high)

    def audit(self, pids: dict[str, int]) -> None:
        """Nothing happened to anybody: the same programs, all tasks done, every byte, every event."""
        self.audit_tasks()
        assert self.pids() == pids
        for name, pid in pids.items():
            self.daemon.ready(name)
            self.audit_bytes(name, pid)
        self.audit_events()
        assert all(agent["restarts"] == 0 for agent in self.daemon.get("/agents").json)

    # --- processes ---

    def left_over(self) -> list[psutil.Process]:
        """Processes that have anything to do with this home, but the daemon itself."""
        own = self.daemon.process.pid if self.daemon.process is not None else 0
        return [process for process in psutil.process_iter() if process.pid != own and self._concerns(process)]

    def _concerns(self, process: psutil.Process) -> bool:
        home = str(self.daemon.home)
        if process.pid == os.getpid():
            return False
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
            if any(home in value for value in process.environ().values()) and process.ppid() != os.getpid():
                return True
            return any(str(link.readlink()).startswith(home) for link in Path(f"/proc/{process.pid}/fd").iterdir())
        except (psutil.Error, OSError):
            return False

    def audit_processes(self) -> None:
        """After the daemon's end."""
        with contextlib.suppress(AssertionError):
            eventually(lambda: not self.left_over(), "nothing is left over", patience=20)
        left = self.left_over()
        self.row.left_over += len(left)
        self.row.figures.update({f"left over {p.pid}": " ".join(p.cmdline())[:200] for p in left})
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()


def _read_exactly(reader: SpoolReader, offset: int, size: int) -> bytes:
    pieces = []
    while size > 0:
        start, data = reader.read(offset, size)
        if not data or start != offset:
            reader.refresh()
            start, data = reader.read(offset, size)
            if not data or start != offset:
                break
        pieces.append(data)
        offset += len(data)
        size -= len(data)
    return b"".join(pieces)


class Load:
    """Keeps every agent flooding, and reads the event log all the while, over deaths of the daemon.

    `blocks` of 64 KiB a task; each agent always has a task waiting behind the one that it works on."""

    def __init__(self, house: House, names: list[str], *, blocks: int) -> None:
        self._house = house
        self._names = names
        self._blocks = blocks
        self._numbers: Counter[str] = Counter()
        self._over = threading.Event()
        self.ids: list[int] = []
        """Ids of the events, as one subscriber saw them who comes back with the last id."""
        self.problems: list[str] = []
        self._threads = [threading.Thread(target=self._send), threading.Thread(target=self._follow)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._threads[0].join()
        self._threads[1].join()

    def _send(self) -> None:
        """One thread: the daemon's queue of each agent is filled up again and again."""
        while not self._over.is_set():
            try:
                agents = {agent["name"]: agent for agent in self._house.daemon.get("/agents").json}
            except (OSError, http.client.HTTPException, ValueError):
                self._over.wait(0.05)
                continue
            for name in self._names:
                if self._over.is_set():
                    return
                if agents.get(name, {}).get("queue", 1) == 0:
                    self._numbers[name] += 1
                    self._house.send(f"flood {self._blocks} {name}-{self._numbers[name]}", name)
            self._over.wait(0.05)

    def _follow(self) -> None:
        last = self._house.audit_events()
        while not self._over.is_set():
            try:
                with self._house.daemon.sse("/events", last_id=last) as events:
                    for event in events:
                        if event["id"] != last + 1:
                            self.problems.append(f"event {event['id']} after {last}")
                        last = event["id"]
                        self.ids.append(last)
                        if self._over.is_set():
                            return
            except (OSError, http.client.HTTPException, ValueError, KeyError):
                time.sleep(0.02)


@contextlib.contextmanager
def lag_of(daemon: Daemon) -> Iterator[list[float]]:
    """How long the daemon took to answer, asked all the while, seconds."""
    over = threading.Event()
    took: list[float] = []

    def ask() -> None:
        while not over.wait(0.01):
            began = time.monotonic()
            with contextlib.suppress(OSError, http.client.HTTPException):
                daemon.get("/healthz")
                took.append(time.monotonic() - began)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield took
    finally:
        over.set()
        thread.join()
