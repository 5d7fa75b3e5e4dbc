"""All that a daemon has the keepers write to its programs, noted by the daemon itself (`keys_written`)."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.daemon import Daemon

__all__ = ["Written", "noting"]


def noting(path: Path) -> Mapping[str, str]:
    """The environment of a daemon that notes in `path` what it writes."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).with_name("keys_written")), "KEYS_WRITTEN": str(path)}


class Written:
    """What `daemon` noted in `path`."""

    def __init__(self, daemon: Daemon, path: Path) -> None:
        self._daemon = daemon
        self._path = path

    def of(self, agent: Mapping[str, Any]) -> list[str]:
        """The keys that the agent's program was given; what answers its queries to a terminal is no key."""
        noted = self._daemon.home / "state" / "agents" / agent["id"] / "launch.json"
        launch = json.loads(noted.read_text())["launch_id"]
        lines = [json.loads(line) for line in self._path.read_text().splitlines()] if self._path.exists() else []
        return [data for one, input_id, data in lines if one == launch and not (input_id or "").startswith("query.")]
