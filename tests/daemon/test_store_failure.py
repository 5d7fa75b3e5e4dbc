"""A daemon whose store cannot go on ends with an error, and the next one goes on with its agents."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.support.daemon import PATIENCE_S, Daemon, eventually


def test_the_next_one_has_the_agents(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path / "home").start()
    try:
        pid = daemon.start_agent(name="ann")["pid"]
        process = daemon.process
        assert process is not None
        with closing(
            sqlite3.connect(daemon.home / "state/synapsed.db", autocommit=True)
        ) as another:  # ids no longer grow by one
            another.execute("UPDATE sqlite_sequence SET seq = seq + 5 WHERE name = 'events'")
        daemon.request("POST", "/agents/ann/tasks/send", {"message": {"parts": [{"type": "text", "text": "one"}]}})
        assert process.wait(PATIENCE_S) == 1
        assert "the store cannot go on" in daemon.log()
        os.kill(pid, 0)
        daemon.start()
        assert daemon.ready("ann")["pid"] == pid, "it lives on"
        eventually(lambda: all(t["status"] == "completed" for t in daemon.get("/agents/ann/tasks").json), "and works")
    finally:
        daemon.end()
