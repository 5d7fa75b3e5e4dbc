"""Fault 17: large answers that were asked for and are not read, each of them another one.

What is on its way at once has one budget, whatever is asked for and in whichever dialect; who finds no room is told to
come again.
"""

import asyncio
import contextlib
import http.client
import json
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from synapsed.clock import SystemClock
from synapsed.documents.budget import BUDGET
from synapsed.model.task import ANSWER_ID, Artifact, Task, TaskState, TextPart
from synapsed.parts.a2a.push.push_record import PushRecord
from synapsed.parts.a2a.push.push_table import PushTable
from synapsed.store.store import SqliteStore
from tests.faults.house import House
from tests.faults.test_readers import MB, SPARE, STANDS_S, settled, watched
from tests.store.samples import a_task
from tests.support.daemon import NO_PORTS, Daemon

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

ANSWER = "Ein Wort, “a quote” and: more\n" * 290_000
"""9.3 MB."""
DISTINCT = 40
LISTED = 30

LISTS = {
    "control": "GET /control/tasks",
    "seeds": "GET /agents/{agent}/tasks",
    "1.0": ("ListTasks", {"A2A-Version": "1.0"}),
    "rest": "GET /agents/{agent}/a2a/rest/tasks",
}
LISTERS = 4


def kept(home: House, count: int) -> list[str]:
    """Tasks of an agent with large answers, and a daemon that has read nothing of them yet."""
    daemon = home.daemon.start()
    (agent,) = home.start_agents(1)
    agent_id = daemon.agent(agent)["id"]
    daemon.kill9()
    answer = Artifact(artifact_id=ANSWER_ID, parts=[TextPart(text=ANSWER)])
    now = int(time.time())
    tasks = [
        a_task(now + number, agent_id=agent_id, status=TaskState.COMPLETED, artifacts=[answer])
        for number in range(count)
    ]
    put(daemon, tasks)
    daemon.start()
    settled(daemon)
    return [task.id for task in tasks]


def put(daemon: Daemon, tasks: list[Task], pushes: Sequence[PushRecord] = ()) -> None:
    """Into the database of a daemon that does not run."""
    asyncio.run(_put(daemon.home / "state" / "synapsed.db", tasks, pushes))


async def _put(path: Path, tasks: list[Task], pushes: Sequence[PushRecord]) -> None:
    store = await SqliteStore.open(path, clock=SystemClock())
    for task in tasks:
        await store.commit(tasks=[task])
    for push in pushes:
        await PushTable(store).put(push)
    await store.close()


@contextlib.contextmanager
def unread(daemon: Daemon, asked: list[tuple[str, dict[str, str], bytes]]) -> Iterator[list[int]]:
    """Requests that are answered, and of whose answers nothing but the head is read; their statuses."""
    with contextlib.ExitStack() as stack:
        waiting = []
        for line, headers, body in asked:
            sock = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(str(daemon.socket))
            told = {"Host": "localhost", **headers}
            if body:
                told |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
            lines = [f"{line} HTTP/1.1", *(f"{name}: {value}" for name, value in told.items()), "", ""]
            sock.sendall("\r\n".join(lines).encode() + body)
            waiting.append(sock)
        statuses = []
        for sock in waiting:
            answer = http.client.HTTPResponse(sock)
            answer.begin()
            statuses.append(answer.status)
        yield statuses


def test_many_large_answers_that_nobody_reads(house: Callable[..., House]):
    home = house("17", f"{DISTINCT} answers, each another one, that nobody reads", config=NO_PORTS)
    tasks = kept(home, DISTINCT)
    daemon = home.daemon
    asked = [(f"GET /control/tasks/{task}", {}, b"") for task in tasks]
    with watched(daemon) as watch, unread(daemon, asked) as statuses:
        settled(daemon)
    home.row.figures["distinct"] = (
        f"{watch.grew / MB:.0f} MB, {watch.lag * 1000:.0f} ms, {statuses.count(200)} of {len(statuses)} at once"
    )
    assert set(statuses) == {200, 503}, "some have room, the others are told to come again"
    assert watch.grew <= 2 * BUDGET + SPARE, home.row.figures
    assert watch.lag <= STANDS_S, home.row.figures
    whole = daemon.get(f"/control/tasks/{tasks[-1]}")
    assert whole.json["task"]["artifacts"][0]["parts"][0]["text"] == ANSWER, "who left takes no room any more"


def test_one_large_answer_that_was_asked_for_by_many(house: Callable[..., House]):
    home = house("17", f"one answer for {DISTINCT} that do not read", config=NO_PORTS)
    (task,) = kept(home, 1)
    daemon = home.daemon
    asked = [(f"GET /control/tasks/{task}", {}, b"")] * DISTINCT
    with watched(daemon) as watch, unread(daemon, asked) as statuses:
        settled(daemon)
    payload = len(ANSWER.encode())
    home.row.figures["same"] = f"{watch.grew / MB:.0f} MB for {payload / MB:.1f} MB, {watch.lag * 1000:.0f} ms"
    assert statuses == [200] * DISTINCT, "what is held already has room"
    assert watch.grew <= 2 * payload + SPARE, home.row.figures
    assert watch.lag <= STANDS_S, home.row.figures


@pytest.mark.parametrize("dialect", LISTS)
def test_lists_of_large_tasks(house: Callable[..., House], dialect: str):
    home = house("17", f"{LISTERS} lists of {LISTED} large answers ({dialect})", config=NO_PORTS)
    kept(home, LISTED)
    daemon = home.daemon
    way = LISTS[dialect]
    if isinstance(way, str):
        asked = [(way.format(agent="f00"), {"A2A-Version": "1.0"}, b"")] * LISTERS
    else:
        method, headers = way
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}).encode()
        asked = [("POST /agents/f00/a2a", headers, body)] * LISTERS
    with watched(daemon) as watch, unread(daemon, asked) as statuses:
        settled(daemon)
    payload = len(ANSWER.encode())
    home.row.figures[dialect] = f"{watch.grew / MB:.0f} MB for {payload / MB:.1f} MB, {watch.lag * 1000:.0f} ms"
    assert statuses == [200] * LISTERS
    assert watch.grew <= 2 * payload + SPARE, home.row.figures
    assert watch.lag <= STANDS_S, home.row.figures
