"""Launches a keeper as a transient unit of systemd's user manager, one `synapse-agent-NAME.service` per agent.

The unit is part of `synapse-agents.target`, which `synapsed.service` requires and which stops when no unit needs it: so
agents outlive a crash and a restart of the daemon, and end when the service is stopped (docs/service.md). The launch
specification, with the program's environment, is passed in a file that only this user can read and that the keeper
removes: so no command line and no unit has a secret.
"""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from synapsed.config.config import Limits
from synapsed.errors import LaunchError
from synapsed.keepers.launchers import (
    LAUNCH_TIMEOUT_S,
    LaunchedKeeper,
    LaunchSpec,
    keeper_command,
    launch_error,
    sweep_launch,
)
from synapsed.keepers.spawning import Child
from synapsed.process.file_owners import private_directory

TARGET = "synapse-agents.target"

STOP_MARGIN_S = 10
"""Seconds that a keeper needs beyond the grace: killing the rest, the last output, the record, its farewell."""

OOM_SCORE_ADJUST = 300
"""Makes the kernel end an agent before the daemon and the person's programs if memory runs out."""

UNIT_GONE_S = 10.0
"""Seconds to wait for the last launch's unit to end: its keeper ends within a second after its exit is acknowledged."""

UNIT_POLL_S = 0.02
"""Seconds between two attempts while that unit still exists."""

ALREADY_THERE = "already loaded"
"""Part of systemd-run's error if a unit of the same name exists."""


def unit_name(agent: str) -> str:
    return f"synapse-agent-{agent}.service"


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemdLauncher:
    """The launcher. `systemd_run` is its path, `environ` the environment in which it finds the user manager."""

    systemd_run: str
    environ: Mapping[str, str]
    python: str = sys.executable

    async def launch(self, spec: LaunchSpec) -> LaunchedKeeper:
        private_directory(spec.socket_path.parent)
        files = await asyncio.to_thread(_Files.prepare, spec)
        try:
            async with asyncio.timeout(LAUNCH_TIMEOUT_S):
                code, errors = await self._run(self._command(spec, files))
        except TimeoutError:
            await self._abandon(spec)
            raise LaunchError(f"{unit_name(spec.agent)} did not start within {LAUNCH_TIMEOUT_S:.0f} s") from None
        except BaseException:  # as in `ProcessLauncher.launch`
            await self._abandon(spec)
            raise
        finally:
            files.spec.unlink(missing_ok=True)  # the keeper has removed it already, unless it failed early
        if code != 0:
            raise launch_error(files.complaint() or errors)
        return LaunchedKeeper.told(spec, files.facts.read_bytes())

    async def _run(self, command: list[str]) -> tuple[int, bytes]:
        """Runs systemd-run, which returns when the unit has started or failed; again, while the unit of the last launch
        still exists. Returns systemd-run's exit code and standard error."""
        deadline = time.monotonic() + UNIT_GONE_S
        while True:
            ended = await Child(command, {**self.environ, "LC_ALL": "C.UTF-8"}).talk()
            if ended.code == 0 or ALREADY_THERE.encode() not in ended.errors or time.monotonic() > deadline:
                return ended.code, ended.errors
            await asyncio.sleep(UNIT_POLL_S)

    def _command(self, spec: LaunchSpec, files: "_Files") -> list[str]:
        properties = {
            "Type": "notify",
            "NotifyAccess": "main",
            "TimeoutStartSec": f"{LAUNCH_TIMEOUT_S:.0f}",
            "PartOf": TARGET,
            "KillMode": "mixed",
            "TimeoutStopSec": f"{spec.term_grace_s + STOP_MARGIN_S}",
            "OOMScoreAdjust": f"{OOM_SCORE_ADJUST}",
            "OOMPolicy": "continue",
            "StandardInput": "null",
            "StandardOutput": f"truncate:{files.facts}",
            "StandardError": f"append:{files.log}",
            **_limits(spec.limits),
        }
        # With SYNAPSE_LAUNCH_ID in its own environment, `sweep_launch` finds the keeper too.
        variables = {"SYNAPSE_LAUNCH_ID": spec.launch_id, "LANG": "C.UTF-8"}
        return [
            self.systemd_run,
            "--user",
            "--quiet",
            "--collect",
            f"--unit={unit_name(spec.agent)}",
            f"--description=synapsed agent {spec.agent}",
            *(f"--property={key}={value}" for key, value in properties.items()),
            *(f"--setenv={key}={value}" for key, value in variables.items()),
            "--",
            *_as_written(keeper_command(self.python, "--foreground", "--spec", str(files.spec))),
        ]

    async def _abandon(self, spec: LaunchSpec) -> None:
        """Ends a launch that was cancelled, has failed or is late, so that systemd does not start it later."""
        with contextlib.suppress(OSError):
            stop = [
                str(Path(self.systemd_run).with_name("systemctl")),
                "--user",
                "--no-block",
                "stop",
                unit_name(spec.agent),
            ]
            await Child(stop, self.environ).talk()
        await sweep_launch(spec.launch_id)


def _as_written(command: Sequence[str]) -> list[str]:
    """Returns `command` escaped for systemd-run. In arguments, the manager replaces `${NAME}` (not every version has an
    option against this) and reads `$$` as one `$`. In the path of the program it leaves `$$` as it is; so a shell is
    started that execs a program with such a path."""
    if "$" in command[0]:
        command = ["/bin/sh", "-c", 'exec "$0" "$@"', *command]
    return [word.replace("$", "$$") for word in command]


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a launch, in the agent's directory. All have mode 0600 before data is written to them."""

    spec: Path
    facts: Path
    """The keeper's standard output."""
    log: Path
    """The keeper's standard error; every launcher uses this file."""
    log_begins: int
    """Offset in `log` at which the lines of this launch begin."""

    @classmethod
    def prepare(cls, spec: LaunchSpec) -> "_Files":
        directory = private_directory(spec.state_dir)
        paths = directory / "launch.spec", directory / "launch.out", directory / "keeper.log"
        _write(paths[0], spec.to_json(), os.O_TRUNC)
        _write(paths[1], b"", os.O_TRUNC)
        _write(paths[2], b"", os.O_APPEND)
        return cls(*paths, paths[2].stat().st_size)

    def complaint(self) -> bytes:
        """Returns the standard error of this launch's keeper."""
        return self.log.read_bytes()[self.log_begins :]


def _write(path: Path, data: bytes, flag: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | flag, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(data)


def _limits(limits: Limits) -> dict[str, str]:
    wanted = {
        "MemoryMax": limits.memory,
        "CPUQuota": limits.cpu,
        "TasksMax": None if limits.tasks is None else str(limits.tasks),
    }
    return {name: value for name, value in wanted.items() if value is not None}
