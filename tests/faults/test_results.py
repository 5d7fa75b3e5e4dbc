"""Fault 17: large answers to what was done, which nobody reads: a message's own result, of a call that blocks or not.

The message is in the mailbox by then, so that nobody is refused: who finds no room for the answer waits for it.
"""

import contextlib
import http.client
import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from synapsed.documents.budget import BUDGET
from synapsed.interfaces import SendRequest
from synapsed.model.task import ANSWER_ID, Artifact, Message, Task, TaskState, TextPart
from synapsed.parts.a2a.push.push_record import PushRecord
from synapsed.store.idempotency import task_id_of
from tests.faults.house import PATIENT_S, House
from tests.faults.test_readers import ANSWER as SMALLER
from tests.faults.test_readers import MB, SPARE, STANDS_S, hand_over, settled, watched
from tests.faults.test_unread import ANSWER, DISTINCT, put
from tests.store.samples import a_task
from tests.support.daemon import NO_PORTS, PATIENCE_S, Daemon, eventually

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

MESSAGE = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
OLD = {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}
WRITTEN = json.dumps(ANSWER, ensure_ascii=False).encode()
SEEDS = {"role": "user", "parts": [{"type": "text", "text": "hi"}]}


def rpc(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


DOORS: dict[str, tuple[str, dict[str, Any], str]] = {
    "seeds": ("/agents/{agent}/tasks/send", {"message": SEEDS}, ""),
    "1.0": ("/agents/{agent}/a2a", rpc("SendMessage", {"message": MESSAGE}), "1.0"),
    "1.0 stream": ("/agents/{agent}/a2a", rpc("SendStreamingMessage", {"message": MESSAGE}), "1.0"),
    "0.3": ("/agents/{agent}/a2a", rpc("message/send", {"message": OLD}), "0.3"),
    "rest": ("/agents/{agent}/a2a/rest/message:send", {"message": MESSAGE}, "1.0"),
}


def key(number: int) -> str:
    return f"key-{number}"


def sent_before(home: House, count: int) -> list[Task]:
    """The tasks of messages that were answered at length, of a daemon that does not run. Each message comes again under
    its `key`, and is the same task."""
    daemon = home.daemon.start()
    (agent,) = home.start_agents(1)
    agent_id = daemon.agent(agent)["id"]
    daemon.kill9()
    answer = Artifact(artifact_id=ANSWER_ID, parts=[TextPart(text=ANSWER)])
    now = int(time.time())
    ids = [task_id_of(SendRequest(message=Message.of("hi"), key=key(number)), agent_id) for number in range(count)]
    tasks = [
        a_task(
            now + number,
            id=task_id,
            agent_id=agent_id,
            message=Message.of("hi"),
            status=TaskState.COMPLETED,
            artifacts=[answer],
        )
        for number, task_id in enumerate(ids)
    ]
    put(daemon, tasks)
    return tasks


def ask(daemon: Daemon, door: str, agent: str, headers: dict[str, str], text: str = "hi") -> socket.socket:
    """A client that sends a message, and has not read anything yet."""
    path, body, version = DOORS[door]
    raw = json.dumps(body).replace('"hi"', json.dumps(text)).encode()
    told = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": str(len(raw)), **headers}
    told |= {"A2A-Version": version} if version else {}
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(PATIENCE_S)
    sock.connect(str(daemon.socket))
    lines = [f"POST {path.format(agent=agent)} HTTP/1.1", *(f"{name}: {value}" for name, value in told.items()), "", ""]
    sock.sendall("\r\n".join(lines).encode() + raw)
    return sock


def answered(clients: list[socket.socket]) -> list[socket.socket]:
    """Those of them who have the beginning of an answer."""
    return [client for client in clients if select.select([client], [], [], 0)[0]]


def says_it(client: socket.socket) -> bool:
    """Whether the agent's answer is in what the client is told, read whole."""
    answer = http.client.HTTPResponse(client)
    answer.begin()
    raw = answer.read()
    client.close()
    return answer.status == 200 and WRITTEN in raw


@contextlib.contextmanager
def closing(clients: list[socket.socket]) -> Iterator[list[socket.socket]]:
    try:
        yield clients
    finally:
        for client in clients:
            client.close()


def test_results_that_nobody_reads(house: Callable[..., House]):
    home = house("17", f"{DISTINCT} results of a message, each another one, that nobody reads", config=NO_PORTS)
    sent_before(home, DISTINCT)
    daemon = home.daemon
    for door in DOORS:
        daemon.start()
        settled(daemon)
        with watched(daemon) as watch:
            clients = [ask(daemon, door, "f00", {"Idempotency-Key": key(number)}) for number in range(DISTINCT)]
            with closing(clients):
                select.select(clients, [], [], PATIENCE_S)  # somebody is answered
                settled(daemon)
                first = answered(clients)
                for client in first:
                    client.close()
                rest = [client for client in clients if client not in first]
                with ThreadPoolExecutor(max(len(rest), 1)) as pool:  # on a busy machine all may be answered by now
                    assert all(pool.map(says_it, rest)), "who waits is answered when others have left"
        home.row.figures[door] = f"{watch.grew / MB:.0f} MB, {watch.lag * 1000:.0f} ms, {len(first)} at once"
        assert watch.grew <= 2 * BUDGET + SPARE, home.row.figures
        assert watch.lag <= STANDS_S, home.row.figures
        daemon.kill9()  # the next door begins with a daemon that holds nothing


def test_keys_of_large_results_that_come_with_another_message(house: Callable[..., House]):
    home = house("17", f"{DISTINCT} keys of large results, each with another message", config=NO_PORTS)
    sent_before(home, DISTINCT)
    daemon = home.daemon.start()
    settled(daemon)
    with watched(daemon) as watch:
        headers = [{"Idempotency-Key": key(number)} for number in range(DISTINCT)]
        with closing([ask(daemon, "seeds", "f00", each, "another") for each in headers]) as clients:
            said = [client.recv(100).split(b"\r\n")[0] for client in clients]
    assert set(said) == {b"HTTP/1.1 400 Bad Request"}
    home.row.figures["seeds"] = f"{watch.grew / MB:.0f} MB, {watch.lag * 1000:.0f} ms"
    assert watch.grew <= 2 * BUDGET + SPARE, home.row.figures


def test_one_result_that_many_wait_for(house: Callable[..., House]):
    home = house("17", f"one result for {DISTINCT} that wait for the turn's end", config=NO_PORTS)
    daemon = home.daemon.start()
    (agent,) = home.start_agents(1)
    clients = [ask(daemon, "1.0", agent, {"Idempotency-Key": "one"}, "deaf") for _ in range(DISTINCT)]
    with closing(clients):
        (task,) = eventually(lambda: daemon.get("/control/tasks").json, "it is sent")
        daemon.task_in(task["id"], "working")
        assert hand_over(daemon, agent, task["id"], SMALLER).status == 200
        settled(daemon)
        with watched(daemon) as watch:
            assert daemon.post(f"/control/tasks/{task['id']}/cancel", {}).status == 200
            settled(daemon)
            assert answered(clients) == clients
        payload = len(SMALLER.encode())
        home.row.figures["blocking"] = f"{watch.grew / MB:.0f} MB for {payload / MB:.1f} MB, {watch.lag * 1000:.0f} ms"
        assert watch.grew <= 2 * payload + SPARE, home.row.figures
        assert watch.lag <= STANDS_S, home.row.figures


class Hooks:
    """Receivers of notifications, each at a port of its own, that take connections and read nothing; until they
    `read`."""

    def __init__(self, count: int) -> None:
        self.sockets = [socket.socket() for _ in range(count)]
        self.told: set[int] = set()
        for sock in self.sockets:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.bind(("127.0.0.1", 0))
            sock.listen()

    def url(self, number: int) -> str:
        return f"http://127.0.0.1:{self.sockets[number].getsockname()[1]}/{number}"

    def read(self) -> None:
        for number in range(len(self.sockets)):
            threading.Thread(target=self._serve, args=(number,), daemon=True).start()

    def _serve(self, number: int) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                connection, _ = self.sockets[number].accept()
                with connection, contextlib.suppress(OSError, ValueError):  # an attempt that was given up
                    self._take(number, connection)

    def _take(self, number: int, connection: socket.socket) -> None:
        with connection.makefile("rb") as told:
            head = http.client.parse_headers(told) if told.readline() else None
            if head is not None and WRITTEN in told.read(int(head["Content-Length"])):
                connection.sendall(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
                self.told.add(number)

    def close(self) -> None:
        for sock in self.sockets:
            sock.close()


BEGIN_S = 20.0
"""Until the receivers are told."""
PUSHES = NO_PORTS + '[a2a.push]\nallow = ["127.0.0.0/8"]\nmaximum = 2\n'


def to_be_told(task: Task, url: str) -> PushRecord:
    """Tried once before, so that what is measured is not the daemon's start."""
    now = time.time()
    return PushRecord(
        task_id=task.id,
        id="p",
        agent_id=task.agent_id,
        url=url,
        cursor=0,
        attempt=1,
        failing_since=now,
        retry_at=now + BEGIN_S,
    )


def test_notifications_that_nobody_reads(house: Callable[..., House]):
    home = house("17", f"{DISTINCT} notifications of a result each, that nobody reads", config=PUSHES)
    tasks, daemon = sent_before(home, DISTINCT), home.daemon
    with contextlib.closing(Hooks(DISTINCT)) as hooks:
        put(daemon, [], [to_be_told(task, hooks.url(number)) for number, task in enumerate(tasks)])
        daemon.start()
        with closing([ask(daemon, "1.0", "f00", {}, "hi")]) as (client,):
            select.select([client], [], [], PATIENCE_S)  # what A2A needs is loaded
        settled(daemon)
        with watched(daemon) as watch:
            select.select(hooks.sockets, [], [], PATIENCE_S)  # it begins
            settled(daemon)
            grew, lag = watch.grew, watch.lag
            hooks.read()
            eventually(lambda: len(hooks.told) == DISTINCT, "everybody is told", patience=PATIENT_S)
        home.row.figures["unread"] = f"{grew / MB:.0f} MB, {lag * 1000:.0f} ms"
        home.row.figures["read"] = f"{watch.grew / MB:.0f} MB, {watch.lag * 1000:.0f} ms"
    assert watch.grew <= 2 * BUDGET + SPARE, home.row.figures
    assert watch.lag <= STANDS_S, home.row.figures
