"""Instructions that are typed, where a profile says so, on a running daemon."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Daemon, eventually

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path)
    profile = tmp_path / "config" / "profiles" / "dummy.toml"
    profile.parent.mkdir()
    profile.write_text("[instructions]\ntyped = true\n")
    yield daemon
    daemon.end()


def told(daemon: Daemon) -> list[dict[str, Any]]:
    """The tasks of synapsed's own, once they are over."""
    tasks = daemon.get("/control/tasks?agent=dummy").json
    own = [task for task in tasks if task["metadata"].get("sender", {}).get("sender_id") == "synapse-system"]
    return own if all(task["status"] == "completed" for task in own) else []


def test_once_for_each_conversation(daemon: Daemon) -> None:
    daemon.start()
    daemon.start_agent()
    (task,) = eventually(lambda: told(daemon), "it is told")
    identity = daemon.agent()["id"]
    sender = task["metadata"]["sender"]
    assert (sender["sender_type"], sender["sender_endpoint"]) == ("system", daemon.agent()["endpoint"])
    assert identity in task["message"]["parts"][0]["text"]
    shown = daemon.get("/agents/dummy/status").json["context"]
    assert f"[A2A:{task['id'][:8]}:synapse-system] [Synapse A2A Protocol Instructions]" in shown

    daemon.kill9()
    daemon.start()
    daemon.ready()
    assert daemon.ended(daemon.send("hello"))["status"] == "completed"
    assert len(told(daemon)) == 1, "a new daemon has nothing new to tell"

    assert daemon.ctl("restart", "dummy").code == 0
    eventually(lambda: len(told(daemon)) == 2 or None, "a program that began again is told again")


@pytest.mark.night
@pytest.mark.parametrize("off", ["[instructions]\nenabled = false\n", "[agents.dummy]\ninstructions = false\n"])
def test_it_can_be_switched_off(daemon: Daemon, off: str) -> None:
    daemon.config_file.write_text(daemon.config_file.read_text() + off)
    daemon.start()
    if "agents" in off:
        assert daemon.ctl("restart", "dummy").code == 0
    else:
        daemon.start_agent()
    daemon.ready()
    assert daemon.ended(daemon.send("hello"))["status"] == "completed"
    assert [task["message"]["parts"][0]["text"] for task in daemon.get("/control/tasks").json] == ["hello"]
