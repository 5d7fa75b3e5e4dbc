"""synapse-a2a itself, from PyPI, as an agent elsewhere: it speaks its own dialect and no A2A. It holds an answer back
for 30 s, to be sure that its program has nothing more to say."""

import json
import os
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.programs import FRAMEWORKS
from tests.support.daemon import ANY_PORTS, Daemon, eventually

SYNAPSE = FRAMEWORKS["synapse-a2a"]
MISSING = SYNAPSE.missing()
PROGRAM = Path(__file__).parent / "servers" / "dummy_agent.py"
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
    shutil.copy(PROGRAM, tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [SYNAPSE.program("python"), "-m", "synapse.server", "--profile", "dummy", "--port", str(port)],
            cwd=tmp_path,
            env={**environ, "SYNAPSE_REGISTRY_DIR": str(tmp_path / "registry")},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    url = f"http://127.0.0.1:{port}"

    def ready() -> bool:
        assert process.poll() is None, (tmp_path / "server.log").read_text()
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
