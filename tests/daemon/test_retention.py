"""A real daemon on a store that has grown old: what is to go goes, and everything else is as before."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from synapsed.clock import iso
from synapsed.interfaces import NewEvent
from synapsed.model.events import TaskStatusChanged
from synapsed.model.task import Message, Task, TaskState
from synapsed.store.store import SqliteStore
from tests.support.daemon import NO_PORTS, Daemon, eventually

AGENT = "synapse-dummy-8190"
OLD = 1_600_000_000.0
TASKS = 300


class _Then:
    """A clock of long ago."""

    def monotonic(self) -> float:
        return OLD

    boot = monotonic

    def wall(self) -> float:
        return OLD

    settled = wall


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path, config=f"{NO_PORTS}\n[store]\nkeep = {{ days = 30 }}\n")
    yield daemon
    daemon.end()


async def fill(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    store = await SqliteStore.open(path, clock=_Then())
    for number in range(TASKS):
        at = iso(OLD + number)
        task = Task(
            agent_id=AGENT,
            status=TaskState.COMPLETED,
            message=Message.of("hi"),
            created_at=at,
            updated_at=at,
        )
        events = [NewEvent(AGENT, TaskStatusChanged(state=state), task.id) for state in ("submitted", "completed")]
        await store.commit(tasks=[task], events=events)
    await store.close()


def test_old_tasks_go_while_the_daemon_works(daemon: Daemon) -> None:
    asyncio.run(fill(daemon.home / "state" / "synapsed.db"))
    daemon.start()
    daemon.start_agent()
    task = daemon.send("echo new")
    assert daemon.ended(task)["status"] == "completed"
    eventually(
        lambda: [found["id"] for found in daemon.get("/control/tasks").json] == [task], "only the new one is left"
    )
    with daemon.sse("/events", last_id=5) as events:
        gap = next(events)
        assert (gap["event"], gap["data"]["data"]) == ("gap", {"from": 6, "to": 2 * TASKS})
        assert next(events)["id"] > 2 * TASKS
    daemon.kill9()
    daemon.start()
    assert [found["id"] for found in daemon.get("/control/tasks").json] == [task]
    out = daemon.spawn("events", "--after", "0")
    assert out.stdout is not None
    assert f"gap from=1 to={2 * TASKS}" in out.stdout.readline()
    out.terminate()
    out.wait()
    out.stdout.close()
    assert out.stderr is not None
    out.stderr.close()
