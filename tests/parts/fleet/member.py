"""A member of a fleet as a process of its own, without agents' programs: the store and the fleet of a real daemon, over
a real broker. It has one agent, `codex`, which answers everything by itself. Tests kill it and start it again.

    python -m tests.parts.fleet.member '{"to": ["codex@box"], "count": 100, "classes": ["codex"], …}'

What it sends is numbered, under a key of its number: after a kill it goes on a little before where it was, as a client
does that does not know what was taken. It ends at SIGTERM. Whoever counts reads its store (`Counted`).
"""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from synapsed.clock import SystemClock
from synapsed.config.config_files import load_config
from synapsed.config.paths import Paths
from synapsed.errors import NotKnownYet, QueueFull, TaskNotCancelable, UnknownAgent
from synapsed.interfaces import SendRequest, TaskFilter, task_cursor
from synapsed.model.agent import Activity, AgentView, ProcessState
from synapsed.model.task import Message, Task, TaskState
from synapsed.parts.loading import config_model
from synapsed.store.idempotency import Idempotency
from synapsed.store.store import SqliteStore
from synapsed.tasks import transitions
from synapsed_fleet.fleet_rows import FleetOrigin
from synapsed_fleet.fleet_table import FleetTable
from synapsed_fleet.member_files import Home
from synapsed_fleet.service import Fleet
from tests.parts.fleet.brokers import FleetHome
from tests.parts.fleet.world import as_task

AGENT: Final = "synapse-codex-8120"
AT_ONCE: Final = 64
"""Messages whose commit is awaited."""
OPEN_AT_ONCE: Final = 500
"""Rows under way from one member, beyond which it waits before it sends more: so kills meet all that there is to do."""
PAUSE_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Plan:
    """What a member does: `count` messages to `to` in turn; takes work of `classes`; a turn takes up to `turn_s`. Its
    clock is `ahead` seconds before the machine's."""

    to: list[str] = field(default_factory=list)
    count: int = 0
    classes: list[str] = field(default_factory=list)
    turn_s: float = 0.0
    urls: list[str] = field(default_factory=list)
    ahead: float = 0.0
    size: int = 0
    """Characters that each message has besides."""
    per_second: float = 0.0
    """0: as fast as it goes."""


class AheadClock(SystemClock):
    """The machine's, put forward; what is measured with it is not."""

    def __init__(self, ahead: float) -> None:
        super().__init__()
        self._ahead = ahead

    def wall(self) -> float:
        return super().wall() + self._ahead


class Agents:
    """The directory, and the mailbox of the one agent: what it takes it answers, one after the other."""

    def __init__(self, store: SqliteStore, clock: AheadClock, plan: Plan) -> None:
        self._store = store
        self._clock = clock
        self._plan = plan
        self._once = Idempotency(store)
        self._waiting: asyncio.Queue[str] = asyncio.Queue()
        self._busy = 0

    # --- the directory ---

    def agents(self) -> list[AgentView]:
        return [self.view(AGENT)]

    def view(self, agent_id: str) -> AgentView:
        return AgentView(
            name="codex",
            id=AGENT,
            type="codex",
            port=None,
            pid=None,
            state=ProcessState.RUNNING,
            activity=Activity.BUSY if self._busy else Activity.READY,
            since="2026-01-01T00:00:00.000Z",
            evidence="",
            held=None,
            queue=self._waiting.qsize(),
            task=None,
            restarts=0,
            cwd="/",
            endpoint="",
        )

    def resolve(self, address: str, *, folders: bool = True) -> str:
        if address != "codex":
            raise UnknownAgent(f"no agent {address}", agent=address)
        return AGENT

    def teams(self) -> dict[str, list[str]]:
        return {}

    def profiles(self, names: object = None) -> list[Any]:
        return []

    # --- the mailbox ---

    async def send(self, agent_id: str, request: SendRequest) -> Task:
        async with self._once.once(request, agent_id) as (task_id, known):
            if known is not None:
                return known
            task = as_task(task_id, agent_id, request)
            commit = transitions.accepted(task)
            await self._store.commit(events=commit.events, tasks=[task])
            self._busy += 1
            self._waiting.put_nowait(task.id)
            return task

    async def cancel(self, task_id: str) -> Task:
        task = await self._store.task(task_id)
        if task is None or task.terminal:
            raise TaskNotCancelable("it is over")
        commit = transitions.canceled(task, reason="canceled", now=self._clock.wall())
        await self._store.commit(events=commit.events, tasks=[commit.task])
        return commit.task

    async def work(self) -> None:
        """For ever; what the last process has not answered first."""
        for task in await self._store.open_tasks():
            if task.agent_id == AGENT:
                self._busy += 1
                self._waiting.put_nowait(task.id)
        while True:
            some = [await self._waiting.get()]
            while not self._plan.turn_s and len(some) < AT_ONCE and not self._waiting.empty():
                some.append(self._waiting.get_nowait())
            await asyncio.gather(*map(self._answer, some))

    async def _answer(self, task_id: str) -> None:
        if self._plan.turn_s:
            await asyncio.sleep(self._plan.turn_s * random.random())
        task = await self._store.task(task_id)
        if task is not None and not task.terminal:
            text = task.message.parts[0].text
            commit = transitions.completed(task, answer=f"did {text}", exact=True, now=self._clock.wall())
            await self._store.commit(events=commit.events, tasks=[commit.task])
        self._busy -= 1


@dataclass(frozen=True, slots=True)
class Control:
    """`interfaces.Control`, as far as a fleet uses it."""

    directory: Any
    tasks: Any


async def _serve(plan: Plan) -> None:
    paths = Paths.from_environ(dict(os.environ))
    whole: Any = await asyncio.to_thread(load_config, paths, config_model())
    config = whole.fleet
    assert config is not None
    work = config.work.model_copy(update={"classes": plan.classes})
    config = config.model_copy(update={"work": work, **({"urls": plan.urls} if plan.urls else {})})
    clock = AheadClock(plan.ahead)
    store = await SqliteStore.open(paths.database, clock=clock)
    agents = Agents(store, clock, plan)
    control: Any = Control(agents, agents)
    fleet = Fleet(
        config, Home(paths), store=store, table=FleetTable(store), control=control, clock=clock, version="test"
    )
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    try:
        await fleet.restore()
        await fleet.start()
        async with asyncio.TaskGroup() as group:
            loops = [group.create_task(agents.work()), group.create_task(_send(fleet, store, plan, config.name))]
            await ended.wait()
            for each in loops:
                each.cancel()
    finally:
        await fleet.close()
        await store.close()


async def _send(fleet: Fleet, store: SqliteStore, plan: Plan, name: str) -> None:
    if not plan.to:
        return
    for address in plan.to:
        while not _reached(fleet, address):
            await asyncio.sleep(PAUSE_S)
    sent = await store.database.read(
        lambda connection: connection.execute("SELECT count(*) FROM tasks WHERE agent_id <> ?", (AGENT,)).fetchone()[0]
    )
    table = fleet.table
    for begin in range(max(0, sent - AT_ONCE), plan.count, AT_ONCE):
        while sum(sum(states.values()) for states in (await table.counts()).values()) > OPEN_AT_ONCE:
            await asyncio.sleep(PAUSE_S)
        await asyncio.gather(
            *(_send_one(fleet, plan, name, number) for number in range(begin, min(begin + AT_ONCE, plan.count)))
        )
        if plan.per_second:
            await asyncio.sleep(AT_ONCE / plan.per_second)


def _reached(fleet: Fleet, address: str) -> bool:
    try:
        return fleet.carrier.find(address) is not None
    except NotKnownYet:
        return False


async def _send_one(fleet: Fleet, plan: Plan, name: str, number: int) -> None:
    request = SendRequest(message=Message.of(f"{name} {number}" + plan.size * "x"), key=str(number))
    while True:
        try:
            await fleet.carrier.send(plan.to[number % len(plan.to)], request)
        except QueueFull:
            await asyncio.sleep(PAUSE_S)
        else:
            return


# --- from the outside ------------------------------------------------------------------------------------------------


@dataclass
class Member:
    """The process, for tests."""

    home: FleetHome
    plan: dict[str, Any]
    process: subprocess.Popen[bytes] | None = None
    kills: int = 0

    def start(self) -> None:
        with (self.home.folder / "member.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*self.home.inside, sys.executable, "-m", "tests.parts.fleet.member", json.dumps(self.plan)],
                env=self.home.environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        assert self.process is not None
        assert self.process.poll() is None, self.log()
        self.kills += 1
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                code = self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise AssertionError(f"it did not end: {self.log()}") from None
            assert code == 0, self.log()

    def log(self) -> str:
        return (self.home.folder / "member.log").read_text(errors="replace")[-4000:]

    def open_rows(self) -> int:
        """What has no receipt, or is not decided."""
        rows: int = self._ask("SELECT (SELECT count(*) FROM fleet_out) + (SELECT count(*) FROM fleet_work)")
        return rows

    def sent(self) -> int:
        sent: int = self._ask(f"SELECT count(*) FROM tasks WHERE agent_id <> '{AGENT}'")
        return sent

    def undone(self) -> int:
        """Tasks, here sent or here taken, that have not ended."""
        undone: int = self._ask("SELECT count(*) FROM tasks WHERE open = 1")
        return undone

    def _ask(self, query: str) -> Any:
        import sqlite3
        from contextlib import closing

        try:
            with closing(sqlite3.connect(f"file:{self.home.paths.database}?mode=ro", uri=True, timeout=20)) as db:
                return db.execute(query).fetchone()[0]
        except sqlite3.OperationalError:  # it is not made yet
            return -1


@dataclass
class Counted:
    """What the stores of all members say, once they have ended: nothing is asked of who has sent it."""

    completed: Counter[str] = field(default_factory=Counter)
    """Messages whose sender has the right answer, by text."""
    otherwise: list[str] = field(default_factory=list)
    """Messages that ended in another way, and how."""
    taken: Counter[str] = field(default_factory=Counter)
    """Messages that became a task at an agent, by text."""
    by_host: Counter[str] = field(default_factory=Counter)
    open_rows: int = 0
    quarantined: list[str] = field(default_factory=list)

    def faults(self, sent: Sequence[str]) -> dict[str, Any]:
        """Empty if each of the messages was taken once and answered, and nothing is open."""
        lost = [text for text in sent if self.taken[text] == 0]
        twice = [text for text, times in (self.taken + self.completed).items() if times > 2]
        unanswered = [text for text in sent if self.completed[text] != 1]
        told = {
            "lost": lost[:5],
            "twice": twice[:5],
            "without an answer": unanswered[:5],
            "otherwise": self.otherwise[:5],
            "open rows": self.open_rows,
            "quarantined": self.quarantined[:5],
            "of nobody": [text for text in self.taken if text not in set(sent)][:5] if len(sent) < 5000 else [],
        }
        return {what: found for what, found in told.items() if found}


async def counted(members: Sequence[Member]) -> Counted:
    found = Counted()
    for member in members:
        store = await SqliteStore.open(member.home.paths.database, clock=SystemClock())
        table = FleetTable(store)
        found.open_rows += len(await table.open_rows()) + len(await table.candidates())
        found.quarantined += [f"{one.subject}: {one.reason}" for one in await table.quarantined()]
        before: str | None = None
        while True:
            page, _ = await store.tasks(TaskFilter(limit=1000, before=before))
            for task in page:
                _count(found, member.home.home.identity().name, task)
            if not page:
                break
            before = task_cursor(page[-1])
        await store.close()
    return found


def _count(found: Counted, host: str, task: Task) -> None:
    text = task.message.parts[0].text  # type: ignore[union-attr]
    named = text.rstrip("x")
    if task.agent_id == AGENT:
        assert FleetOrigin.of(task.metadata) is not None
        found.taken[named] += 1
        found.by_host[host] += 1
    elif task.status is TaskState.COMPLETED and task.answer == f"did {text}":
        found.completed[named] += 1
    else:
        found.otherwise.append(f"{named}: {task.status.value} {task.error and task.error.message}")


if __name__ == "__main__":
    asyncio.run(_serve(Plan(**json.loads(sys.argv[1]))))
