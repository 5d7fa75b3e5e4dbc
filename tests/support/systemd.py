"""A systemd user manager of a test's own, where there can be one: beside whatever runs the machine, in a mount
namespace and a cgroup of its own, with its own runtime directory and home.

    python -m tests.support.systemd TAG    # what `UserManager.start` runs; becomes the manager
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.daemon import PATIENCE_S, eventually

__all__ = ["UserManager", "obstacle", "user_manager"]

PROGRAM = Path("/usr/lib/systemd/systemd")
CGROUPS = Path("/sys/fs/cgroup")
USER_CGROUP = "user.slice/user-0.slice/user@0.service"
"""Below the test's own: what a user manager expects to see around itself."""

MS_REC, MS_PRIVATE = 0x4000, 0x40000
"""<sys/mount.h>"""


def obstacle() -> str | None:
    """Why no user manager can be run here; None: it can."""
    if not sys.platform.startswith("linux"):
        return "systemd needs Linux"
    if os.getuid() != 0:
        return "a second user manager needs root"
    if missing := [tool for tool in ("systemctl", "systemd-run", "systemd-analyze") if shutil.which(tool) is None]:
        return f"no {missing[0]} here"
    if not PROGRAM.exists():
        return f"no {PROGRAM} here"
    if not os.access(CGROUPS / "systemd" / "cgroup.procs", os.W_OK) and not os.access(
        CGROUPS / "cgroup.procs", os.W_OK
    ):
        return "no cgroups that could be written to"
    return None


def hierarchies() -> list[Path]:
    """Those in which systemd keeps its units."""
    return [path for path in (CGROUPS / "systemd", CGROUPS / "unified") if path.is_dir()] or [CGROUPS]


class UserManager:
    """`runtime` is its XDG_RUNTIME_DIR, short; `home` its HOME. `env` is what its clients need."""

    def __init__(self, runtime: Path, home: Path) -> None:
        self.runtime = runtime
        self.home = home
        self.tag = f"synapsed-test-{os.getpid()}-{runtime.name}"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def env(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "USER": "root",
            "LOGNAME": "root",
            "SHELL": "/bin/bash",
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(self.runtime),
        }

    def start(self) -> "UserManager":
        with (self.runtime / "manager.log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.systemd", self.tag],
                env={**self.env, "PYTHONPATH": str(Path(__file__).parents[2])},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
            )
        eventually(self._answers, f"the user manager answers: {self.log()[-2000:]}")
        return self

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log()
        return self.systemctl("is-active", "default.target", check=False) == "active"

    def log(self) -> str:
        return (self.runtime / "manager.log").read_text(errors="replace")

    def run(self, *command: str, check: bool = True, env: Mapping[str, str] | None = None) -> str:
        """What `command` prints, run as a client of the manager."""
        done = subprocess.run(
            command,
            env={**self.env, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0 or not check, (command, done.stdout, done.stderr)
        return done.stdout.strip()

    def systemctl(self, *arguments: str, check: bool = True) -> str:
        return self.run("systemctl", "--user", *arguments, check=check)

    def show(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self.systemctl("show", unit, f"--property={name}", "--value")

    def pids(self, units: str = "") -> set[int]:
        """Every process of the manager's units with that in their name; not its own."""
        found: set[int] = set()
        for hierarchy in hierarchies():
            for procs in (hierarchy / self.tag).rglob("cgroup.procs"):
                if units not in str(procs.relative_to(hierarchy / self.tag)):
                    continue
                with contextlib.suppress(OSError):
                    found.update(int(pid) for pid in procs.read_text().split())
        return found - {self._process.pid if self._process is not None else 0}

    def end(self) -> None:
        """End it with all its units, and take away its cgroups. Anything left over is killed: it is in the cgroup of
        this very manager."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(PATIENCE_S)
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        eventually(lambda: not self.pids(), "nothing is left in the manager's cgroup")
        for hierarchy in hierarchies():
            for directory, _, _ in os.walk(hierarchy / self.tag, topdown=False):
                with contextlib.suppress(OSError):
                    Path(directory).rmdir()


@contextlib.contextmanager
def user_manager() -> Iterator[UserManager]:
    """One that runs; nothing of it stays."""
    root = Path(tempfile.mkdtemp(prefix="sd-", dir="/tmp"))
    for name in ("run", "home"):
        (root / name).mkdir(mode=0o700)
    manager = UserManager(root / "run", root / "home")
    try:
        yield manager.start()
    finally:
        manager.end()
        shutil.rmtree(root, ignore_errors=True)


def _become(tag: str) -> None:
    for hierarchy in hierarchies():
        own = hierarchy / tag / USER_CGROUP
        own.mkdir(parents=True)
        (own / "cgroup.procs").write_text(str(os.getpid()))
    os.unshare(os.CLONE_NEWNS)
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
    # A user manager runs only where the machine seems to be systemd's: here it seems so to this one alone.
    Path("/run/systemd").mkdir(exist_ok=True)
    _check(libc.mount(b"tmpfs", b"/run/systemd", b"tmpfs", 0, b"mode=755"))
    Path("/run/systemd/system").mkdir()
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    os.execve(PROGRAM, [str(PROGRAM), "--user", "--log-target=console"], env)


def _check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    _become(sys.argv[1])
