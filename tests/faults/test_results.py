"""Fault 17: large answers to what was done, which nobody reads: a message's own result, of a call that blocks or not.

The message is in the mailbox by then, so that nobody is refused: who finds no room for the answer waits for it.
"""

import contextlib
import http.client
import json
import select
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from synapsed.documents.budget import BUDGET
from synapsed.interfaces import SendRequest
from synapsed.model.task import ANSWER_ID, Artifact, Message, Task, TaskState, TextPart
from synapsed.store.idempotency import task_id_of
from tests.faults.house import House
from tests.faults.test_readers import MB, SPARE, STANDS_S, settled, watched
from tests.faults.test_unread import ANSWER, DISTINCT, put
from tests.store.samples import a_task
from tests.support.daemon import NO_PORTS, PATIENCE_S, Daemon

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


def sent_before(home: House, count: int) -> None:
    """Messages that were answered at length, and a daemon that has read nothing of the answers yet. Each comes again
    under its `key`, and is the same task."""
    daemon = home.daemon.start()
    (agent,) = home.start_agents(1)
    agent_id = daemon.agent(agent)["id"]
    daemon.kill9()
    answer = Artifact(artifact_id=ANSWER_ID, parts=[TextPart(text=ANSWER)])
    now = int(time.time())
    ids = [task_id_of(SendRequest(message=Message.of("hi"), key=key(number)), agent_id) for number in range(count)]
    tasks: list[Task] = [
        a_task(now + number, id=task_id, agent_id=agent_id, status=TaskState.COMPLETED, artifacts=[answer])
        for number, task_id in enumerate(ids)
    ]
    put(daemon, tasks)
    daemon.start()
    settled(daemon)


def ask(daemon: Daemon, door: str, agent: str, headers: dict[str, str]) -> socket.socket:
    """A client that sends a message, and has not read anything yet."""
    path, body, version = DOORS[door]
    raw = json.dumps(body).encode()
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
        daemon.kill9()  # each begins with a daemon that holds nothing yet
        daemon.start()
        settled(daemon)
        with watched(daemon) as watch:
            clients = [ask(daemon, door, "f00", {"Idempotency-Key": key(number)}) for number in range(DISTINCT)]
            with closing(clients):
                select.select(clients, [], [], PATIENCE_S)  # somebody is answered
                settled(daemon)
                lag, first = watch.lag, answered(clients)
                for client in first:
                    client.close()
                rest = [client for client in clients if client not in first]
                with ThreadPoolExecutor(len(rest)) as pool:
                    assert all(pool.map(says_it, rest)), "who waits is answered when others have left"
        home.row.figures[door] = f"{watch.grew / MB:.0f} MB, {lag * 1000:.0f} ms, {len(first)} at once"
        assert watch.grew <= 2 * BUDGET + SPARE, home.row.figures
        assert lag <= STANDS_S, home.row.figures
