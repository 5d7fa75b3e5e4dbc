"""Keepers found again by a daemon that comes back."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

from synapsed.paths import Paths
from synapsed.profiles import Profile
from synapsed.supervisor.launchers import ProcessLauncher
from synapsed.supervisor.pty_factory import LAUNCH_FILE, PtyLinkFactory
from tests.fakes.clock import FakeClock
from tests.store.samples import an_agent


async def test_a_launch_under_way_whose_keeper_does_not_listen_yet_is_ended(tmp_path: Path) -> None:
    """Else it would begin in a moment, and keep the agent's place from every launch to come."""
    paths = Paths(**{name: tmp_path / name for name in ("config", "state", "run", "a2a")})
    record, launch_id = an_agent(), uuid4().hex
    store: Any = None
    factory = PtyLinkFactory(paths=paths, launcher=ProcessLauncher(), store=store, clock=FakeClock())
    noted = {"launch_id": launch_id, "socket": str(tmp_path / "no.sock")}
    paths.agent(record.id).mkdir(parents=True)
    (paths.agent(record.id) / LAUNCH_FILE).write_text(json.dumps(noted))
    environ = {**os.environ, "SYNAPSE_LAUNCH_ID": launch_id}
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=environ) as starting:
        try:
            assert await factory.adopt(record, Profile(name="p", command="p")) is None
            assert starting.wait(timeout=60) == -9
        finally:
            starting.kill()
