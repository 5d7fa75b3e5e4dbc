"""Two daemons, each a host of its own, and a program in place of ssh between them."""

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import NO_PORTS, Daemon, eventually
from tests.support.threaded import real_one
from tests.synapsectl.pty_tool import PtyTool

FAKE_SSH = Path(__file__).parents[2] / "fakes" / "ssh.py"


@dataclass
class Box:
    """The other host, which may fall asleep."""

    daemon: Daemon
    asleep: Path

    def sleep(self) -> None:
        self.asleep.touch()

    def wake(self) -> None:
        self.asleep.unlink()

    def tasks(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.daemon.get("/control/tasks").json
        return found


@pytest.fixture
def box(tmp_path: Path, kind: type[Daemon]) -> Iterator[Box]:
    home = tmp_path / "box"
    home.mkdir()
    (tmp_path / "hosts").mkdir()
    (tmp_path / "hosts" / "box.lan").symlink_to(home)
    daemon = kind(home, config=NO_PORTS).start()
    daemon.start_agent()
    yield Box(daemon, tmp_path / "hosts" / "box.lan.asleep")
    assert daemon.end() == 0


@pytest.fixture
def here(tmp_path: Path, kind: type[Daemon], box: Box) -> Iterator[Daemon]:
    home = tmp_path / "here"
    home.mkdir()
    ssh = [sys.executable, str(FAKE_SSH), str(tmp_path / "hosts")]
    config = f'{NO_PORTS}[hosts]\nname = "laptop"\nssh = {ssh}\n'
    daemon = kind(home, config=config).start()
    synapsectl = home / "synapsectl"
    synapsectl.write_text(f'#!/bin/sh\nexec {sys.executable} -m synapsectl "$@"\n')
    synapsectl.chmod(0o700)
    added = daemon.ctl("host", "add", "box", "ssh://me@box.lan:22", "--synapsectl", str(synapsectl))
    assert added.code == 0, added.err
    is_up(daemon)
    yield daemon
    assert daemon.end() == 0


def host(daemon: Daemon) -> dict[str, Any]:
    (found,) = daemon.get("/hosts").json
    return dict(found)


def is_up(daemon: Daemon) -> None:
    eventually(lambda: host(daemon)["state"] == "up", f"the host is up: {host(daemon)}")


def test_its_agents_are_listed_and_written_to(here: Daemon, box: Box):
    (listed,) = here.ctl("list", "--json").json
    assert (listed["name"], listed["host"], listed["state"]) == ("dummy@box", "box", "running")
    assert here.get("/agents").json == [], "what others ask for is what is here"
    sent = here.ctl("send", "dummy@box", "--wait", "hello")
    assert sent.code == 0, sent.err
    (task,) = box.tasks()
    assert sent.out.strip() == task["artifacts"][0]["parts"][0]["text"]
    assert "sender" not in task["metadata"], "a person on a host of his own is that person"
    row = here.ctl("tasks", "--json").json[0]
    assert (row["agent_id"], row["status"]) == ("dummy@box", "completed")
    unknown = here.ctl("send", "nobody@box", "--wait", "hello")
    assert unknown.code != 0
    assert "nobody" in unknown.err
    nowhere = here.ctl("send", "dummy@nowhere", "hello")
    assert (nowhere.code, "no host 'nowhere'" in nowhere.err) == (4, True)


def test_who_waits_there_is_in_the_inbox_here_and_answered_from_here(here: Daemon, box: Box):
    task = box.daemon.send("ask y/n")
    box.daemon.task_in(task, "input_required")
    (item,) = eventually(lambda: here.ctl("inbox", "--json").json, "it is in the inbox here")
    assert (item["agent"], item["host"], item["question"]) == ("dummy@box", "box", "Proceed? (y/n)")
    assert here.get("/inbox").json == [], "what others ask for is what is here"
    everywhere = here.get("/inbox?hosts=1").json
    assert [one["id"] for one in everywhere["items"]] == [item["id"]]
    assert everywhere["hosts"] == [{"name": "box", "state": "up", "items": 1, "left_out": 0, "error": None}]
    tool = PtyTool("inbox", "--hold", "0", env={**here.env, "TERM": "xterm"})
    try:
        tool.until(b"y yes")
        tool.type(b"y")
        box.daemon.task_in(task, "completed")
        tool.type(b"q")
        assert tool.end() == 0
    finally:
        tool.close()


@pytest.mark.night
def test_who_asks_there_is_answered_by_name_and_all_at_once(here: Daemon, box: Box):
    def asked(verb: str, *words: str) -> None:
        task = box.daemon.send("ask y/n")
        box.daemon.task_in(task, "input_required")
        eventually(lambda: here.get("/inbox?hosts=1").json["items"], "it is in the inbox here")
        done = here.ctl(verb, *words)
        assert done.code == 0, done.err
        assert "@box was answered" in done.err
        box.daemon.task_in(task, "completed")
        eventually(lambda: not here.get("/inbox?hosts=1").json["items"], "it is over")

    asked("approve", "dummy@box")
    asked("deny", "--all")
    asked("input", "dummy@box", "n")
    pressed = here.ctl("keys", "dummy@box", "Space", "BSpace")
    assert pressed.code == 0, pressed.err
    nowhere = here.ctl("approve", "dummy@nowhere")
    assert (nowhere.code, "no host 'nowhere'" in nowhere.err) == (4, True)


@pytest.mark.night
@real_one
def test_a_host_that_does_not_answer_is_named_and_holds_nobody_up(here: Daemon, box: Box):
    here.start_agent(name="scout")
    task = here.send("ask y/n", "scout")
    here.task_in(task, "input_required")
    own = eventually(lambda: here.get("/inbox").json, "it is in the inbox")
    os.kill(box.daemon.pid, signal.SIGSTOP)
    try:
        (said,) = eventually(lambda: _silent(here), "the host does not answer")
        assert "did not answer within" in said["error"] or "box is silent" in said["error"]
        told = here.ctl("inbox", "--json")
        assert (told.code, told.json, "box" in told.err) == (0, own, True)
        tool = PtyTool("inbox", env={**here.env, "TERM": "xterm"})
        try:
            tool.until(b"1 needs you")
            tool.until(b"box: ")
            tool.type(b"q")
            assert tool.end() == 0
        finally:
            tool.close()
    finally:
        os.kill(box.daemon.pid, signal.SIGCONT)
    box.sleep()
    eventually(lambda: host(here)["state"] == "down", "the host is down")
    (said,) = here.get("/inbox?hosts=1").json["hosts"]
    assert (said["state"] in ("down", "connecting"), said["error"].startswith("box is")) == (True, True)
    assert here.ctl("deny", "--all").code == 0
    here.task_in(task, "completed")


def _silent(daemon: Daemon) -> list[dict[str, Any]]:
    return [one for one in daemon.get("/inbox?hosts=1").json["hosts"] if one["error"]]


def test_an_agent_that_writes_is_external_over_there(here: Daemon, box: Box):
    agent = here.start_agent(name="scout")
    sent = here.ctl("send", "dummy@box", "--wait", "--from", agent["id"], "hello")
    assert sent.code == 0, sent.err
    (task,) = box.tasks()
    sender = task["metadata"]["sender"]
    assert (sender["sender_id"], sender["tier"], sender["verified"]) == ("scout@laptop", "external", False)


@pytest.mark.night
@real_one
def test_a_message_to_a_sleeping_host_arrives_once_when_it_is_back(here: Daemon, box: Box):
    box.sleep()
    eventually(lambda: host(here)["state"] == "down", "the host is down")
    task_id = here.send("hello", "dummy@box")
    assert (here.task(task_id)["status"], host(here)["waiting"]) == ("submitted", 1)
    here.kill9()
    here.start()
    assert here.task(task_id)["status"] == "submitted"
    box.wake()
    assert here.ended(task_id)["status"] == "completed"
    assert len(box.tasks()) == 1


@pytest.mark.night
def test_what_waits_can_be_withdrawn(here: Daemon, box: Box):
    box.sleep()
    eventually(lambda: host(here)["state"] == "down", "the host is down")
    task_id = here.send("hello", "dummy@box")
    assert here.ctl("cancel", task_id).code == 0
    other = here.send("hello", "dummy@box")
    assert here.ctl("host", "remove", "box").code == 0
    assert [here.task(one)["status"] for one in (task_id, other)] == ["canceled", "canceled"]
    assert here.ctl("host", "list", "--json").json == []
    box.wake()
    assert here.ctl("send", "dummy@box", "hello").code == 4
    assert box.tasks() == []


@pytest.mark.night
@real_one
def test_here_is_killed_while_it_works_there(here: Daemon, box: Box):
    task_id = here.send("sleep 2", "dummy@box")
    eventually(box.tasks, "it arrived")
    here.kill9()
    here.start()
    assert here.ended(task_id)["status"] == "completed"
    assert len(box.tasks()) == 1


@pytest.mark.night
@real_one
def test_its_daemon_is_killed_while_it_works(here: Daemon, box: Box):
    task_id = here.send("sleep 2", "dummy@box")
    eventually(box.tasks, "it arrived")
    box.daemon.kill9()
    box.daemon.start()
    assert here.ended(task_id)["status"] == "completed"
    assert len(box.tasks()) == 1


@pytest.mark.night
@real_one
def test_a_message_that_may_have_arrived_is_sent_again(here: Daemon, box: Box):
    """The daemon there was killed before it could say that it has it: here nothing is known but that it was sent."""
    key = {"Idempotency-Key": "one-of-many"}
    body = {"message": {"parts": [{"type": "text", "text": "hello"}]}}
    first = box.daemon.request("POST", "/agents/dummy/tasks/send", body, key).json["task"]
    box.daemon.ended(first["id"])
    box.daemon.kill9()
    box.daemon.start()
    again = box.daemon.request("POST", "/agents/dummy/tasks/send", body, key).json["task"]
    assert (again["id"], again["status"]) == (first["id"], "completed")
    other = {**body, "metadata": {"sender": "somebody@else"}}
    assert box.daemon.request("POST", "/agents/dummy/tasks/send", other, key).json["task"]["id"] != first["id"]
    wrong = box.daemon.request("POST", "/agents/dummy/tasks/send", body, {"Idempotency-Key": "k" * 300})
    assert (wrong.status, wrong.json["error"]["details"]["field"]) == (400, "Idempotency-Key")


@pytest.mark.night
@pytest.mark.slow
@real_one
def test_answers_that_are_lost_on_the_way(here: Daemon, box: Box, tmp_path: Path):
    """The message arrives, its answer does not, and both daemons are killed: it is sent again, and is one task."""
    mute = tmp_path / "hosts" / "box.lan.mute"
    mute.touch()
    task_id = here.send("hello", "dummy@box")
    eventually(box.tasks, "it arrived")
    there = here.task(task_id)["metadata"]["external"]
    assert there["sending"]
    assert "task_id" not in there
    here.kill9()
    box.daemon.kill9()
    box.daemon.start()
    mute.unlink()
    here.start()
    assert here.ended(task_id)["status"] == "completed"
    assert [task["id"] for task in box.tasks()] == [here.task(task_id)["metadata"]["external"]["task_id"]]


def test_the_same_key_here_too(here: Daemon, box: Box):
    body = {"message": {"parts": [{"type": "text", "text": "hello"}]}}
    both = [here.request("POST", "/agents/dummy@box/tasks/send", body, {"Idempotency-Key": "k"}).json for _ in "ab"]
    assert both[0]["task"]["id"] == both[1]["task"]["id"]
    here.ended(both[0]["task"]["id"])
    assert len(box.tasks()) == 1


@pytest.mark.night
@pytest.mark.slow
@real_one
def test_attached_to_an_agent_over_there(here: Daemon, box: Box):
    tool = PtyTool("attach", "dummy@box", env=here.env)
    try:
        tool.until(b"dummy>")
        tool.type(b"hello\r")
        tool.until(b"You said: hello")
        here.kill9()
        here.start()
        is_up(here)
        tool.type(b"again\r")
        tool.until(b"You said: again")
        tool.type(b"\x1d")
        assert tool.end() == 0
    finally:
        tool.close()
    assert "You said: again" in here.ctl("screen", "dummy@box").out
    assert here.ctl("status", "dummy@box", "--json").json["pid"] == box.daemon.agent()["pid"]
    box.sleep()
    eventually(lambda: host(here)["state"] == "down", "the host is down")
    away = here.ctl("screen", "dummy@box")
    assert (away.code, "box is" in away.err, "No route to host" in away.err or "Timeout" in away.err) == (6, True, True)


@pytest.mark.night
@real_one
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_ssh_ends_with_its_daemon(here: Daemon, box: Box):
    """A daemon that is killed leaves no ssh behind."""
    (before,) = sshs(here)
    here.kill9()
    eventually(lambda: not Path(f"/proc/{before}").exists() or not sshs(here), "ssh has ended")
    here.start()
    is_up(here)
    assert len(sshs(here)) == 1


def sshs(daemon: Daemon) -> list[int]:
    """The pids of what holds the socket's end here."""
    wanted = str(daemon.socket.parent / "hosts" / "box").encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(word.startswith(wanted + b":") for word in words):
            found.append(int(path.parent.name))
    return found


def asked_while_asleep(here: Daemon, box: Box) -> str:
    """The agent `scout` asks one over there; its own task, which waits for the reply."""
    agent = here.start_agent(name="scout")
    sent = here.ctl("send", "dummy@box", "--response", "--wait", "--from", agent["id"], "hello")
    assert (sent.code, "You said: hello" in sent.out) == (0, True), sent.err
    box.sleep()
    eventually(lambda: host(here)["state"] == "down", "the host is down")
    message = {"parts": [{"type": "text", "text": "later"}]}
    sender = {"sender": {"sender_id": agent["id"]}}
    own = here.post(f"/agents/{agent['id']}/tasks/create", {"message": message, "metadata": sender}).json["task"]
    asks = {"message": message, "metadata": {**sender, "sender_task_id": own["id"], "response_expected": True}}
    assert here.post("/agents/dummy@box/tasks/send", asks).status == 200
    return str(own["id"])


def is_told_of_the_reply(here: Daemon, box: Box, own: str) -> None:
    box.wake()
    here.ended(own)
    told = f"[A2A:reply:{own[:8]}:dummy@box]"
    eventually(lambda: told in here.ctl("screen", "scout").out, "the agent is told of the reply")
    assert len(box.tasks()) == 2


def test_an_agent_asks_one_over_there_and_is_told_of_the_answer(here: Daemon, box: Box):
    is_told_of_the_reply(here, box, asked_while_asleep(here, box))


@real_one
@pytest.mark.night
def test_the_answer_is_told_by_another_daemon_too(here: Daemon, box: Box):
    own = asked_while_asleep(here, box)
    here.kill9()
    here.start()
    is_told_of_the_reply(here, box, own)


@pytest.mark.night
def test_an_agent_over_there_that_would_reply_is_told_how(here: Daemon, box: Box):
    agent = here.start_agent(name="scout")
    sent = here.ctl("send", "dummy@box", "--from", agent["id"], "busy 60")
    assert sent.code == 0, sent.err
    eventually(lambda: [task for task in box.tasks() if task["status"] == "working"], "it is worked on")
    body = {"message": {"role": "agent", "parts": [{"type": "text", "text": "done"}]}, "metadata": {}}
    before = box.daemon.post("/agents/dummy/tasks/reply", body)
    assert (before.status, "nobody waits" in before.json["error"]["message"]) == (400, True), "no reply was wanted"
    here.task_in(sent.out.strip(), "working")  # until it knows the task over there, a cancel is to be tried again
    assert here.ctl("cancel", sent.out.strip()).code == 0
    own = here.post(f"/agents/{agent['id']}/tasks/create", {"message": body["message"] | {"role": "user"}}).json["task"]
    asks = {"message": {"parts": [{"type": "text", "text": "busy 60"}]}, "metadata": {"sender_task_id": own["id"]}}
    asks["metadata"]["sender"] = agent["id"]
    assert here.post("/agents/dummy@box/tasks/send", asks).status == 200
    eventually(lambda: [task for task in box.tasks() if task["status"] == "working"], "it is worked on")
    refused = box.daemon.post("/agents/dummy/tasks/reply", body).json["error"]
    assert (refused["code"], "scout@laptop is elsewhere" in refused["message"]) == ("NOT_WAITING", True)
    assert here.ctl("cancel", own["id"]).code == 0
    eventually(lambda: {task["status"] for task in box.tasks()} == {"canceled"}, "the request is canceled too")
