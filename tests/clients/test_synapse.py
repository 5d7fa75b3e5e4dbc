"""synapse-a2a itself, from PyPI, as an agent elsewhere: it speaks its own dialect and no A2A. It holds an answer back
for 30 s, to be sure that its program has nothing more to say."""

import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clients.programs import FRAMEWORKS
from tests.support.daemon import ANY_PORTS, Daemon, eventually
from tests.support.ports import free_port

SYNAPSE = FRAMEWORKS["synapse-a2a"]
MISSING = SYNAPSE.missing()
SERVERS = Path(__file__).parent / "servers"
PATIENCE_S = 240.0

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.timeout(600),
    pytest.mark.skipif(MISSING is not None, reason=f"*** synapse-a2a NOT TRIED: {MISSING} ***"),
]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path_factory.mktemp("synapsed"), config=ANY_PORTS).start()
    try:
        yield daemon
    finally:
        daemon.end()


@pytest.fixture
def environ(daemon: Daemon, tmp_path: Path) -> dict[str, str]:
    """Of synapse-a2a: the registry is the one that the daemon writes."""
    home = tmp_path / "home"
    home.mkdir()
    registry = str(daemon.home / "a2a" / "registry")
    return {"HOME": str(home), "PATH": os.defpath, "TERM": "xterm-256color", "SYNAPSE_REGISTRY_DIR": registry}


@pytest.fixture
def far(tmp_path: Path, environ: dict[str, str]) -> Iterator[str]:
    """Its server, around a program that repeats what it is told."""
    shutil.copy(SERVERS / "dummy_agent.py", tmp_path)
    with serving("dummy", tmp_path, environ) as url:
        yield url


@pytest.fixture
def asking(tmp_path: Path, environ: dict[str, str]) -> Iterator[str]:
    """Its server, around a program that asks first. It would say yes to every question by itself."""
    (tmp_path / "claude").write_text(f"#!/bin/sh\nexec {sys.executable} {SERVERS / 'asking_agent.py'}\n")
    (tmp_path / "claude").chmod(0o755)
    path = f"{tmp_path}:{os.defpath}"
    with serving("claude", tmp_path, {**environ, "PATH": path, "SYNAPSE_AUTO_APPROVE": "false"}) as url:
        yield url


@contextmanager
def serving(profile: str, cwd: Path, environ: dict[str, str]) -> Iterator[str]:
    port = free_port()
    with (cwd / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [SYNAPSE.program("python"), "-m", "synapse.server", "--profile", profile, "--port", str(port)],
            cwd=cwd,
            env={**environ, "SYNAPSE_REGISTRY_DIR": str(cwd / "registry")},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    url = f"http://127.0.0.1:{port}"

    def ready() -> bool:
        assert process.poll() is None, (cwd / "server.log").read_text()
        try:
            with urllib.request.urlopen(f"{url}/status", timeout=10) as answer:
                return json.load(answer)["status"] == "READY"
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    try:
        eventually(ready, "synapse-a2a is ready", patience=PATIENCE_S)
        yield url
    finally:
        process.terminate()
        process.wait()


def run(program: str, *arguments: str, env: dict[str, str]) -> str:
    """What one of its programs prints."""
    done = subprocess.run(
        [SYNAPSE.program(program), *arguments],
        cwd=env["HOME"],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize(("verb", "said"), [("approve", "Done."), ("deny", "Left undone.")])
def test_its_question_is_asked_here_and_answered(daemon: Daemon, asking: str, verb: str, said: str) -> None:
    alias = f"asking-{verb}"
    assert daemon.ctl("external", "add", asking, "--alias", alias).code == 0
    task_id = daemon.ctl("send", alias, "make the house").out.strip()
    asked = eventually(lambda: daemon.task(task_id)["prompt"], "it asks", patience=PATIENCE_S)
    assert (asked["type"], "Run it? [y/N]" in asked["prompt"]) == ("permission", True)
    assert [option["key"] for option in asked["options"]] == ["approve", "deny"]
    answered = daemon.ctl(verb, task_id)
    assert answered.code == 0, answered.err
    task = eventually(lambda: over(daemon, task_id), "it is over", patience=PATIENCE_S)
    assert (task["status"], said in answer_of(task)) == ("completed", True), task


CLIENT = """
import json, sys
from synapse.a2a_client import A2AClient

client = A2AClient()
client.discover(sys.argv[1], alias="here")
done = client.send_message("here", "hello", wait_for_completion=True, timeout=200)
running = client.send_message("here", "!sleep 600")
print(json.dumps({
    "status": done.status,
    "text": done.artifacts[0]["parts"][0]["text"],
    "canceled": client.cancel_task("here", running.id),
    "after": client.get_task("here", running.id).status,
}))
"""


@pytest.mark.parametrize("own_port", [True, False], ids=["own port", "main port"])
def test_its_client_finds_an_agent_by_the_card(daemon: Daemon, environ: dict[str, str], own_port: bool) -> None:
    """It appends its paths to the card's `url`, which is the endpoint of JSON-RPC."""
    view = agent(daemon)
    url = view["endpoint"] if own_port else f"http://127.0.0.1:{daemon.port}/agents/{view['name']}"
    told = json.loads(run("python", "-c", CLIENT, url, env=environ))
    assert told == {"status": "completed", "text": "You said: hello", "canceled": True, "after": "canceled"}


def test_its_command_line_finds_an_agent_by_the_registry(daemon: Daemon, environ: dict[str, str]) -> None:
    agent_id = agent(daemon)["id"]
    assert agent_id in run("synapse", "list", env=environ)
    told = run("synapse", "send", agent_id, "hello there", "--wait", "--force", env=environ)
    assert "Status: completed" in told
    assert "[text] You said: hello there" in told
    assert told.count("You said") == 1, "the answer, and none of what it is made of"
    (task_id,) = (line.split()[-1] for line in told.splitlines() if "Task ID" in line)
    assert answer_of(daemon.task(task_id)) == "You said: hello there"


def agent(daemon: Daemon) -> dict[str, Any]:
    """A scripted agent, started once."""
    for view in daemon.ctl("list", "--json").json:
        if view["name"] == "dummy":
            return dict(view)
    return daemon.start_agent()


def test_it_is_an_agent_elsewhere(daemon: Daemon, far: str) -> None:
    added = daemon.ctl("external", "add", far, "--alias", "far", "--json")
    assert added.code == 0, added.err
    assert (added.json["binding"], added.json["name"], added.json["endpoint"]) == ("SYNAPSE", "Synapse Dummy", far)
    first = daemon.ctl("send", "far", "hello there", "--from", "somebody").out.strip()
    eventually(lambda: there(daemon, first), "it is taken")
    second = daemon.ctl("send", "far", "and again").out.strip()
    eventually(lambda: external(daemon, second).get("sending") is False, "one at a time: the second is refused")

    daemon.kill9()
    daemon.start()
    for task_id, said in ((first, "hello there"), (second, "and again")):
        task = eventually(lambda task_id=task_id: over(daemon, task_id), "it is over", patience=PATIENCE_S)
        assert task["status"] == "completed", task
        assert f"You said: A2A: {said}" in answer_of(task) or said in answer_of(task)
        assert task["exact"] is False, "read off its screen"
    with urllib.request.urlopen(f"{far}/tasks", timeout=30) as listed:
        assert len(json.load(listed)) == 2, "neither is sent twice"


def test_a_task_there_is_canceled(daemon: Daemon, far: str) -> None:
    assert daemon.ctl("external", "add", far, "--alias", "gone").code == 0
    task_id = daemon.ctl("send", "gone", "hello").out.strip()
    there_id = eventually(lambda: there(daemon, task_id), "it is taken")
    canceled = daemon.ctl("cancel", task_id)
    assert canceled.code == 0, canceled.err
    assert daemon.task(task_id)["status"] == "canceled"
    with urllib.request.urlopen(f"{far}/tasks/{there_id}", timeout=30) as found:
        assert json.load(found)["status"] == "canceled"


def external(daemon: Daemon, task_id: str) -> dict[str, Any]:
    found: dict[str, Any] = daemon.task(task_id)["metadata"].get("external", {})
    return found


def there(daemon: Daemon, task_id: str) -> str | None:
    """The id over there, once it is known."""
    return external(daemon, task_id).get("task_id")


def over(daemon: Daemon, task_id: str) -> dict[str, Any] | None:
    task: dict[str, Any] = daemon.task(task_id)
    return task if task["status"] in ("completed", "failed", "canceled") else None


def answer_of(task: dict[str, Any]) -> str:
    return str(task["artifacts"][0]["parts"][0]["text"])
