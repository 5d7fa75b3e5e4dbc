"""The installed files are moved, and replaced, under a daemon that runs."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from synapsed.process.installed import GONE, NEWER
from tests.support.daemon import Daemon, eventually

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.night


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    source = tmp_path / "installed"
    for name in ("synapsed", "synapsectl", "profiles", "examples"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    daemon = Daemon(tmp_path / "home", source=source)
    yield daemon.start()
    daemon.end()


def alerts(daemon: Daemon) -> str:
    return "\n".join(daemon.get("/control/status").json["alerts"])


def test_it_says_so_and_agents_that_live_go_on(daemon: Daemon) -> None:
    source = daemon.source
    assert source is not None
    pid = daemon.start_agent(name="ann")["pid"]
    assert alerts(daemon) == ""
    moved = (source / "synapsed").rename(source / "moved")
    eventually(lambda: GONE in alerts(daemon), "it says that they are gone")
    assert daemon.ended(daemon.send("echo still", "ann"))["artifacts"][0]["parts"][0]["text"] == "still"
    client = daemon.home / "state/agents" / daemon.agent("ann")["id"] / "launch/hookclient.py"
    hooks = daemon.home / "hooks"
    (hooks / "tmp").mkdir(parents=True)
    (hooks / "new").mkdir()
    command = [sys.executable, "-S", "-E", "-I", str(client), str(hooks), str(daemon.home / "none.sock"), "ann", "Stop"]
    assert subprocess.run(command, input=b"{}", check=False).returncode == 0, "2 would be an order to block"
    assert len(list((hooks / "new").iterdir())) == 1
    shutil.copytree(moved, source / "synapsed")
    eventually(lambda: NEWER in alerts(daemon), "others are in their place")
    assert GONE not in alerts(daemon), "that is over"
    told = daemon.ctl("doctor", "--json")
    files = [found for found in told.json["checks"] if found["check"] == "installed files"]
    assert (files[0]["status"], told.code) == ("wrong", 1)
    assert daemon.agent("ann")["pid"] == pid
