"""The same message again is the same task: over every binding, at the same time, and over a kill."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from synapsed.model.task import Prompt
from tests.support.daemon import ANY_PORTS, Daemon
from tests.support.served_world import ServedWorld, served_world

V1 = {"A2A-Version": "1.0"}
QUESTION = Prompt(prompt_id="p1", type="text", prompt="y/n")


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path, config=ANY_PORTS).start()
    daemon.start_agent()
    yield daemon
    daemon.end()


@pytest.fixture
def below(tmp_path: Path) -> Iterator[ServedWorld]:
    with served_world(tmp_path) as world:
        world.start()
        yield world


@pytest.fixture
def daemon(below: ServedWorld) -> Daemon:
    return below.daemon


def rpc(daemon: Daemon, text: str, number: str = "m", **more: Any) -> str:
    answer = asked(daemon, text, number, **more)
    assert "result" in answer, answer
    return str(answer["result"]["task"]["id"])


def refused(daemon: Daemon, text: str, number: str, **more: Any) -> str:
    return str(asked(daemon, text, number, **more)["error"]["message"])


def asked(daemon: Daemon, text: str, number: str, **more: Any) -> Any:
    message = {"messageId": number, "role": "ROLE_USER", "parts": [{"text": text}], **more}
    params = {"message": message, "configuration": {"returnImmediately": True}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
    return daemon.request("POST", "/agents/dummy/a2a", body, V1).json


def rest(daemon: Daemon, text: str) -> str:
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}
    body = {"message": message, "configuration": {"returnImmediately": True}}
    return str(daemon.request("POST", "/agents/dummy/a2a/rest/message:send", body, V1).json["task"]["id"])


def rpc03(daemon: Daemon, text: str) -> str:
    message = {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": text}]}
    params = {"message": message, "configuration": {"blocking": False}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params}
    return str(daemon.request("POST", "/agents/dummy/a2a", body).json["result"]["id"])


def test_the_same_message_is_one_task_over_all_bindings_and_a_kill(real: Daemon) -> None:
    task = rpc(real, "echo once")
    with ThreadPoolExecutor(12) as many:
        sends = [many.submit(send, real, "echo once") for send in (rpc, rest, rpc03) * 4]
        assert {send.result() for send in sends} == {task}
    real.kill9()
    real.start()
    assert {send(real, "echo once") for send in (rpc, rest, rpc03)} == {task}
    assert len(real.get("/control/tasks?agent=dummy").json) == 1


def test_many_at_once_make_one(daemon: Daemon) -> None:
    with ThreadPoolExecutor(12) as many:
        sends = [many.submit(rpc, daemon, "echo once", "first") for _ in range(24)]
        assert len({send.result() for send in sends}) == 1


def test_another_message_is_another_task(daemon: Daemon, below: ServedWorld) -> None:
    """Also where a client begins to number its messages from 1 again; and in another context, or to another agent."""
    other = str(below.start("other")["name"])
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "echo a"}]}
    body = {"message": message, "configuration": {"returnImmediately": True}}
    there = daemon.request("POST", f"/agents/{other}/a2a/rest/message:send", body, V1).json["task"]["id"]
    tasks = [
        rpc(daemon, "echo a"),
        rpc(daemon, "echo b"),
        rpc(daemon, "echo a", "n"),
        rpc(daemon, "echo a", contextId="elsewhere"),
        there,
    ]
    assert len(set(tasks)) == len(tasks)


def test_an_answer_that_comes_again_is_not_typed_again(daemon: Daemon, below: ServedWorld) -> None:
    """It would answer the next question."""
    task = rpc(daemon, "ask y/n\nask y/n")
    below.asks(QUESTION)
    daemon.task_in(task, "input_required")
    assert rpc(daemon, "y", "answer", taskId=task) == task
    below.asks(QUESTION.model_copy(update={"prompt_id": "p2"}))
    first = daemon.task(task)["exchange"]
    assert rpc(daemon, "y", "answer", taskId=task) == task
    assert daemon.task(task)["exchange"][: len(first)] == first
    assert [said["message_id"] for said in daemon.task(task)["exchange"]].count("answer") == 1
    assert below.world.link.answers == [("y", "p1")]


def test_an_answer_that_comes_again_later_is_the_same_task(daemon: Daemon, below: ServedWorld) -> None:
    """The client has not heard that it was taken: by now the task works on, or is over."""
    task = rpc(daemon, "ask y/n\nbusy 600")
    below.asks(QUESTION)
    daemon.task_in(task, "input_required")
    assert rpc(daemon, "y", "answer", taskId=task) == task
    below.works()
    assert daemon.task(task)["status"] == "working"
    assert rpc(daemon, "y", "answer", taskId=task) == task
    assert "waits for nothing" in refused(daemon, "n", "another", taskId=task)
    assert daemon.post(f"/agents/dummy/tasks/{task}/cancel", {}).status == 200
    assert rpc(daemon, "y", "answer", taskId=task) == task
    assert "takes no more messages" in refused(daemon, "n", "another", taskId=task)
    assert [said["message_id"] for said in daemon.task(task)["exchange"]].count("answer") == 1
