"""The kernel with no part at all, and with each part alone: it starts, and an agent takes a message."""

import shutil
from pathlib import Path

import pytest

from synapsed.parts.list import NAMES
from tests.parts.test_removal import copied, environment, tool
from tests.support.daemon import Daemon

pytestmark = [pytest.mark.night, pytest.mark.slow]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return environment(tmp_path_factory.mktemp("without") / "venv")


@pytest.mark.parametrize("alone", [None, *NAMES])
def test_it_takes_a_message(alone: str | None, python: str, tmp_path: Path) -> None:
    source = copied(tmp_path / "source")
    shutil.rmtree(source / "packages")
    for name in NAMES:
        if name != alone:
            shutil.rmtree(source / "synapsed" / "parts" / name)
    daemon = Daemon(tmp_path / "home", source=source, python=python)
    daemon.start()
    try:
        assert daemon.get("/control/status").json["alerts"] == []
        daemon.start_agent()
        done = daemon.task_in(daemon.send("echo exactly this"), "completed")
        assert done["artifacts"][0]["parts"][0]["text"].strip() == "exactly this"
        assert daemon.get("/control/automation").json == []
        assert "send" in tool(daemon, "--help").stdout
    finally:
        assert daemon.end() == 0
    assert "Traceback" not in daemon.log()
