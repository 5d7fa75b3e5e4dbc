"""Named pipes where programs put files: the daemon waits in none of them, and comes to its end."""

import os
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, eventually


@pytest.mark.night
@pytest.mark.timeout(300)
def test_a_pipe_among_the_files_of_the_registry(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path / "home")
    registry = daemon.home / "a2a" / "registry"
    registry.mkdir(parents=True)
    os.mkfifo(registry / "synapse-dummy-8191.json")
    daemon.start()
    try:
        daemon.start_agent()
        task = daemon.send("hello")  # the registry is looked through for what is left of others
        assert daemon.ended(task)["status"] == "completed"
        assert daemon.ctl("shutdown").code == 0
        eventually(lambda: daemon.process is None or daemon.process.poll() is not None, "it has ended")
    finally:
        daemon.end()
