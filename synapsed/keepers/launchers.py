"""Launches keepers, finds them again, and cleans up after a keeper that was killed.

A launcher starts a keeper so that it outlives the daemon. `ProcessLauncher` starts a detached process, which works
everywhere; `systemd_launcher` starts a unit per agent.

`LaunchQueue` runs only a few of many launches at a time. Otherwise the keepers' interpreters would compete for the same
processors until the first launches exceed their time limit. The limit of a launch begins when it leaves the queue.
"""

import asyncio
import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import psutil
import ptyprocess

import synapsed.keeper
from synapsed import own_python
from synapsed.config.config import Limits
from synapsed.errors import LaunchError, ProgramNotFound
from synapsed.keeper.processes import is_before_boot, lived_s, start_mark
from synapsed.keeper.spec import FORMAT
from synapsed.keepers.spawning import Child
from synapsed.process.file_owners import private_directory
from synapsed.process.parent_attributes import usable_cpus

KEEPER = Path(synapsed.keeper.__file__).with_name("__main__.py")
"""The keeper's program. It is started by its file, since for a directory Python would import runpy."""

_KEEPER_PROGRAM = os.path.join("keeper", "__main__.py")  # noqa: PTH118 - compared with the end of an argument

LAUNCH_TIMEOUT_S = 30.0
"""Seconds from the start of Python to the program's exec; 50 ms in practice, far more on a machine that swaps."""

SWEEP_TIMEOUT_S = 5.0
"""Seconds in which processes must be gone after KILL was sent to them."""

SWEEP_POLL_S = 0.005
"""Seconds between two looks at the killed processes, in a thread."""

# Read into a variable so that mypy checks both branches on every platform.
_LINUX = sys.platform.startswith("linux")

_SPAWN_ERRORS = {"program_not_found": ProgramNotFound}


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSpec:
    """Specification of a launch. `argv[0]` is looked up on the PATH of `env`, seen from `cwd`. Paths are absolute."""

    launch_id: str
    """Id of the launch, unique for ever; the program has it as SYNAPSE_LAUNCH_ID."""
    agent: str
    """The agent's name."""
    argv: Sequence[str]
    env: Mapping[str, str]
    """The whole environment; only SYNAPSE_LAUNCH_ID is added."""
    cwd: str
    state_dir: Path
    """The agent's directory: `spool/`, `journal`, `exit.json`, `keeper.log`."""
    socket_path: Path
    cols: int = 80
    rows: int = 24
    transport: Literal["pty", "pipes"] = "pty"
    umask: int = 0o022
    nice: int | None = None
    """None, here and for the attributes below: the keeper's own value."""
    oom_score_adj: int | None = None
    """Lowest value for the program: a higher one of the keeper's own stays."""
    cpus: Sequence[int] | Literal["all"] | None = None
    rlimits: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict)
    """Soft and hard limits of the program by their names without `RLIMIT_`; None is unlimited."""
    spool_at_least: int = 0
    """Highest spool offset that the daemon knows: new output gets this offset or a higher one."""
    retention: int = 64 * 1024 * 1024
    """Bytes of output kept at least."""
    sweep_on_exit: bool = True
    """True if descendants that outlive the program are ended after it."""
    term_grace_s: int = 5
    """Seconds between TERM and KILL for a stop that has no grace of its own, such as a service manager's."""
    linger_s: int = 7 * 86400
    """Seconds that a keeper waits for its exit to be acknowledged."""
    open_files: int = 0
    """Soft limit of open files for the keeper, and for the program if `rlimits` has none; 0: the limit stays."""
    limits: Limits = field(default_factory=Limits)
    """Limits for the program and all processes that it starts, if the launcher supports them."""

    def to_json(self) -> bytes:
        """Returns the keeper's launch specification."""
        named = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("limits", "socket_path")}
        spec = {"format": FORMAT, **named, "env": dict(self.env), "socket": self.socket_path}
        return json.dumps(spec, default=str).encode("ascii")


@dataclass(frozen=True, slots=True)
class KeeperAddress:
    """The facts needed to find a keeper again. `keeper_start` is its `start_mark`, since pids are reused."""

    launch_id: str
    socket_path: Path
    keeper_pid: int
    keeper_start: int


@dataclass(frozen=True, slots=True)
class LaunchedKeeper(KeeperAddress):
    """A keeper that listens, and whose program was started."""

    pid: int
    """Pid of the program."""
    pid_start: int
    """The program's start mark; 0 if the program had ended before the mark could be read."""
    spool_start: int
    """Offset at which this launch's output begins."""
    started_at: float
    withheld: tuple[str, ...] = ()
    """Attributes that the program could not get."""

    @classmethod
    def told(cls, spec: LaunchSpec, output: bytes) -> "LaunchedKeeper":
        """Returns the keeper that was launched by `spec`, from its JSON on standard output."""
        facts = json.loads(output)
        return cls(
            launch_id=spec.launch_id,
            socket_path=spec.socket_path,
            keeper_pid=facts["keeper_pid"],
            keeper_start=facts["keeper_start"],
            pid=facts["pid"],
            pid_start=facts["pid_start"] or 0,
            spool_start=facts["launch_start"],
            started_at=facts["started_at"],
            withheld=tuple(facts.get("withheld", ())),
        )


class Launcher(Protocol):
    """Starts keepers so that they outlive the daemon."""

    async def launch(self, spec: LaunchSpec) -> LaunchedKeeper:
        """Returns when the keeper listens and the program runs. Raises ProgramNotFound, LaunchError: nothing runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLauncher:
    """Starts the keeper as a detached process of its own session."""

    python: str = sys.executable
    keeper: Path = KEEPER
    """The keeper's program; it may be of another version of synapsed."""
    environ: Mapping[str, str] = field(default_factory=lambda: {"PATH": os.defpath, "LANG": "C.UTF-8"})
    """The environment of the keeper itself, not of its program."""
    open_files: int = 0
    """The soft limit of open files that the daemon was started with: programs that use `select` rely on it."""

    async def launch(self, spec: LaunchSpec) -> LaunchedKeeper:
        private_directory(spec.socket_path.parent)
        # With this variable in its own environment, `sweep_launch` finds the keeper too.
        keeper = Child(
            keeper_command(self.python, keeper=self.keeper), {**self.environ, "SYNAPSE_LAUNCH_ID": spec.launch_id}
        )
        try:
            async with asyncio.timeout(LAUNCH_TIMEOUT_S):
                ended = await keeper.talk(replace(spec, open_files=self.open_files).to_json())
        except TimeoutError:
            await sweep_launch(spec.launch_id)
            raise LaunchError(
                f"the keeper (the process that holds its terminal) did not start within {LAUNCH_TIMEOUT_S:.0f} s:"
                " try again, or see 'synapsectl doctor'"
            ) from None
        except BaseException:  # it was cancelled, or the child's end could not be seen: it may run
            await sweep_launch(spec.launch_id)
            raise
        if ended.code != 0:
            await sweep_launch(spec.launch_id)  # it may have died when the program ran already
            raise launch_error(ended.errors)
        return LaunchedKeeper.told(spec, ended.output)


def keeper_command(python: str, *options: str, keeper: Path = KEEPER) -> list[str]:
    """Returns the command line of a keeper: Python without site packages and without its environment variables, and
    with only the standard library on its path."""
    packages = Path(ptyprocess.__file__).parent.parent
    return own_python.alone(str(keeper), "--ptyprocess", str(packages), *options, python=python)


def launch_error(errors: bytes) -> LaunchError | ProgramNotFound:
    """Returns the error for the standard error output of a keeper that did not start."""
    lines = errors.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
    try:
        report: dict[str, Any] = json.loads(lines[-1])
        code, message = str(report["code"]), str(report["message"])
    except (ValueError, KeyError, TypeError):
        return LaunchError(f"the keeper failed to start: {lines[-1]}", reason="keeper_failed")
    kind = _SPAWN_ERRORS.get(code, LaunchError)
    return kind(message, reason=code)


def find_keepers(addresses: Iterable[KeeperAddress]) -> dict[str, bool]:
    """Returns by launch id if the keeper lives. A zombie, or another process with the same pid, counts as dead; a
    keeper whose socket was removed counts as living. Reads /proc, a few microseconds each. On a system without /proc it
    runs `ps`: call it in a thread then."""
    return {address.launch_id: start_mark(address.keeper_pid) == address.keeper_start for address in addresses}


def call_keeper(pid: int) -> bool:
    """Asks the keeper `pid`, by SIGHUP, to bind its socket again if it was removed. Returns True if the keeper can do
    so; keepers before 0.2 ignore the signal."""
    if _LINUX and not _catches(pid, signal.SIGHUP):
        return False
    try:
        os.kill(pid, signal.SIGHUP)
    except OSError:
        return False
    return True


def _catches(pid: int, number: int) -> bool:
    """Returns True if the process has a handler for the signal: it neither ignores the signal nor ends by it."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    caught = re.search(r"^SigCgt:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return caught is not None and bool(int(caught[1], 16) >> (number - 1) & 1)


def keeper_of(launch_id: str) -> tuple[int | None, bool]:
    """Returns the pid of that launch's living keeper, or None; and True if any other process of it lives. Blocks."""
    keeper, others = None, False
    for process in _processes_of(launch_id):
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if any(word.endswith(_KEEPER_PROGRAM) for word in words):
            keeper = process.pid
        elif _lives(process):
            others = True
    return keeper, others


def before_boot(keeper_start: int) -> bool:
    """Returns True if a process with that start mark ran before the present boot of the machine."""
    if _LINUX:
        return is_before_boot(keeper_start)
    return keeper_start < psutil.boot_time()


def age_of(pid: int, start: int) -> float | None:
    """Returns the age of the process in seconds, by a clock that cannot be set; None if the system has no such clock,
    or the process is gone."""
    if not _LINUX or start_mark(pid) != start:
        return None
    return max(0.0, lived_s(start))


def environment_of(pid: int) -> dict[str, str] | None:
    """Returns the environment that the program `pid` was started with, without synapsed's own variables; None if it
    cannot be read. Blocks."""
    try:
        found = psutil.Process(pid).environ()
    except psutil.Error:
        return None
    return {name: value for name, value in found.items() if not name.startswith("SYNAPSE_")}


async def sweep_launch(launch_id: str) -> int:
    """Kills the remaining processes of a launch whose keeper is gone: every process of this uid with the launch's
    SYNAPSE_LAUNCH_ID, also the keeper if it lives. Returns their number. Raises LaunchError if one stays."""
    return await asyncio.to_thread(_sweep, launch_id)


def _sweep(launch_id: str) -> int:
    swept: dict[int, psutil.Process] = {}
    while found := [process for process in _processes_of(launch_id) if process.pid not in swept]:
        for process in found:
            swept[process.pid] = process
            try:
                process.kill()  # psutil checks that the pid is still this process
            except psutil.NoSuchProcess:
                continue
    deadline = time.monotonic() + SWEEP_TIMEOUT_S
    while left := [process.pid for process in swept.values() if _lives(process)]:
        if time.monotonic() > deadline:
            raise LaunchError(f"processes of launch {launch_id} cannot be ended: {left}")
        time.sleep(SWEEP_POLL_S)
    return len(swept)


def _lives(process: psutil.Process) -> bool:
    """Returns True if the process lives. Zombies count as dead: their parent may reap them late, or never."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _processes_of(launch_id: str) -> list[psutil.Process]:
    own = os.getuid()
    found = []
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue  # a daemon that was started from an agent's shell carries that agent's variable
        try:
            if process.uids().real == own and process.environ().get("SYNAPSE_LAUNCH_ID") == launch_id:
                found.append(process)
        except (psutil.Error, OSError):
            continue  # it ended, or we may not look at it
    return found


AT_ONCE: Final = min(8, max(2, usable_cpus()))
"""Launches at a time, one for each processor: with more, none would start sooner, and the daemon would slow down. A
launch that hangs ends after `LAUNCH_TIMEOUT_S`."""


class LaunchQueue:
    """A launcher that launches by another one, at most `AT_ONCE` keepers at a time."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._room = asyncio.Semaphore(AT_ONCE)

    async def launch(self, spec: LaunchSpec) -> LaunchedKeeper:
        async with self._room:
            return await self._launcher.launch(spec)
