"""A daemon that launches the keepers of the protocol's oldest version: `python -m tests.faults.older run …`."""

import sys

from synapsed import cli, daemon
from synapsed.keeper import frames
from synapsed.supervisor.launchers import Launcher, ProcessLauncher
from tests.keeper.frozen import frozen


class Older(daemon.Daemon):
    def _launcher(self) -> Launcher:
        return ProcessLauncher(keeper=frozen(frames.OLDEST_VERSION))


if __name__ == "__main__":
    daemon.Daemon = Older  # type: ignore[misc]
    sys.exit(cli.main())
