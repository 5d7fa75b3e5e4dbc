"""Two daemons, each with a home of its own; the one has an agent of the other's under an alias."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import NO_PORTS, Daemon, eventually
from tests.support.threaded import real_one


@pytest.fixture
def there(tmp_path: Path, kind: type[Daemon]) -> Iterator[Daemon]:
    (tmp_path / "there").mkdir()
    daemon = kind(tmp_path / "there", config=NO_PORTS).start()
    daemon.start_agent()
    yield daemon
    assert daemon.end() == 0


@pytest.fixture
def here(tmp_path: Path, kind: type[Daemon], there: Daemon) -> Iterator[Daemon]:
    (tmp_path / "here").mkdir()
    daemon = kind(tmp_path / "here", config=NO_PORTS).start()
    added = daemon.ctl("external", "add", f"http://127.0.0.1:{there.port}/agents/dummy", "--alias", "far")
    assert added.code == 0, added.err
    yield daemon
    assert daemon.end() == 0


def only(daemon: Daemon) -> dict:
    """The one task that there is."""
    (task,) = daemon.get("/control/tasks").json
    return task


def test_a_message_there_and_back(here: Daemon, there: Daemon):
    (listed,) = here.ctl("external", "list", "--json").json
    assert (listed["alias"], listed["name"], listed["protocol_version"]) == ("far", "dummy", "1.0")
    sent = here.ctl("send", "far", "--wait", "hello")
    assert (sent.code, "read off the screen" in sent.err) == (0, True), "how exact it is travels along"
    assert sent.out.strip() == only(there)["artifacts"][0]["parts"][0]["text"]
    row = here.ctl("tasks", "--json").json[0]
    assert (row["agent_id"], row["status"]) == ("external:far", "completed")
    assert here.ctl("external", "remove", "far").code == 0
    gone = here.ctl("send", "far", "hello")
    assert gone.code == 4
    assert "far" in gone.err


def test_what_was_taken_under_a_key_is_answered_while_nobody_is_there(here: Daemon, there: Daemon):
    body = {"message": {"role": "user", "parts": [{"type": "text", "text": "hello"}]}}
    key = {"Idempotency-Key": "once"}
    ways = ("/agents/far/tasks/send", "/external/agents/far/send")
    taken = here.request("POST", ways[0], body, key)
    assert taken.status == 200, taken.json
    task_id = taken.json["task"]["id"]
    here.ended(task_id)
    assert here.ctl("external", "remove", "far").code == 0
    for way in ways:
        again = here.request("POST", way, body, key)
        assert (again.status, again.json["task"]["id"]) == (200, task_id)
        assert here.request("POST", way, body, {"Idempotency-Key": "other"}).status == 404
        assert here.request("POST", way, body).status == 404
    other = {"message": {"role": "user", "parts": [{"type": "text", "text": "another"}]}}
    assert here.request("POST", ways[0], other, key).status == 400
    assert len(here.get("/control/tasks").json) == 1


def test_one_of_several_addresses(here: Daemon, there: Daemon):
    here.start_agent(name="near")
    sent = here.ctl("send", "near,far", "--wait", "--json", "hello")
    assert sent.code == 0, sent.err
    assert sorted(task["agent_id"] for task in here.get("/control/tasks").json) == [
        "external:far",
        here.agent("near")["id"],
    ]
    assert here.ctl("send", "far,nobody", "hello").code == 4
    refused = here.ctl("screen", "far")
    assert (refused.code, "agent elsewhere" in refused.err) == (4, True)


@pytest.mark.parametrize(("verb", "said"), [("approve", "yes"), ("deny", "no")])
def test_its_question_is_answered_from_here(here: Daemon, there: Daemon, verb: str, said: str):
    task_id = here.ctl("send", "far", "ask y/n").out.strip()
    eventually(lambda: here.task(task_id)["prompt"], "it asks")
    answered = here.ctl(verb, task_id)
    assert answered.code == 0, answered.err
    assert f"far ({task_id[:8]}) was answered: {said}" in answered.err.lower()
    assert f"Answered: {said[0]}" in here.task_in(task_id, "completed")["artifacts"][0]["parts"][0]["text"]


def test_it_is_told_why_not(here: Daemon, there: Daemon):
    task_id = here.ctl("send", "far", "ask y/n").out.strip()
    eventually(lambda: here.task(task_id)["prompt"], "it asks")
    answered = here.ctl("deny", task_id, "--because", "use the other one", "--json")
    assert answered.code == 0, answered.err
    because = here.task_in(answered.json[0]["because"], "completed")
    assert "use the other one" in because["artifacts"][0]["parts"][0]["text"]


def test_external_send_means_the_one_elsewhere(here: Daemon, there: Daemon):
    sent = here.ctl("external", "send", "@far", "--json", "--wait", "--", "hello")
    assert sent.code == 0, sent.err
    assert sent.json["task"]["agent_id"] == "external:far"
    assert here.ctl("external", "send", "nobody", "hello").code == 4
    assert here.ctl("external", "remove", "nobody").code == 4


def test_credentials_come_from_variables_and_are_not_told(here: Daemon, there: Daemon):
    url = f"http://127.0.0.1:{there.port}/agents/dummy"
    token = (there.home / "state" / "token").read_text().strip()
    added = here.ctl("external", "add", url, "--as", "near", "--token-env", "KEY", "--json", env={"KEY": token})
    assert added.json["authenticated"]
    assert token not in added.out + here.ctl("external", "list", "--json").out + here.log()
    assert here.ctl("send", "near", "--wait", "hello").code == 0
    wrong = here.ctl("external", "add", url, "--as", "wrong", "--token-stdin", stdin="no-such-token\n")
    assert (wrong.code, "credentials are missing or wrong" in wrong.err) == (6, True), wrong
    assert "no-such-token" not in wrong.err + here.log()


@pytest.mark.night
@real_one
def test_here_is_killed_while_it_works_there(here: Daemon, there: Daemon):
    task_id = here.ctl("send", "far", "sleep 2").out.strip()
    eventually(lambda: here.task(task_id)["metadata"].get("external", {}).get("task_id"), "it is known there")
    here.kill9()
    here.start()
    task = here.ended(task_id)
    assert task["status"] == "completed", task
    assert only(there)["id"] == task["metadata"]["external"]["task_id"]


@pytest.mark.night
@real_one
def test_there_is_killed_while_it_works(here: Daemon, there: Daemon):
    task_id = here.ctl("send", "far", "sleep 2").out.strip()
    eventually(lambda: here.task(task_id)["metadata"].get("external", {}).get("task_id"), "it is known there")
    port = there.port
    there.kill9()
    there.config_file.write_text(NO_PORTS.replace("127.0.0.1:0", f"127.0.0.1:{port}"))
    there.start()
    task = here.ended(task_id)
    assert task["status"] == "completed", task
    assert len(there.get("/control/tasks").json) == 1


def test_nobody_is_there(here: Daemon, there: Daemon):
    there.end()
    refused = here.ctl("send", "far", "hello")
    assert (refused.code, "cannot be reached" in refused.err) == (6, True), refused
    assert here.get("/control/tasks").json == []
