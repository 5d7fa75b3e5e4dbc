"""A person with a home of their own, who comes by it in different ways: from a login, by cron, through a link."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from synapsed.lockrecord import LockRecord, read_record
from tests.support.daemon import NO_PORTS, PATIENCE_S, Ctl, eventually

CLEAN = ("PATH", "PYTHONPATH", "LANG", "PYTHONDEVMODE")
"""What a test's own environment has to do with it."""


class Person:
    def __init__(self, home: Path, config: str = NO_PORTS) -> None:
        self.home = home
        self.runtime = home / "rt"
        self.runtime.mkdir(parents=True, mode=0o700)
        self.state = home / ".local/state/synapsed"
        (home / ".config/synapsed").mkdir(parents=True)
        (home / ".config/synapsed/config.toml").write_text(config)

    @property
    def login(self) -> dict[str, str]:
        """The environment of a session."""
        return {**self.cron, "XDG_RUNTIME_DIR": str(self.runtime), "TERM": "xterm-256color"}

    @property
    def cron(self) -> dict[str, str]:
        """That of a job, or of ssh without a login."""
        kept = {name: os.environ[name] for name in CLEAN if name in os.environ}
        return {**kept, "HOME": str(self.home), "TMPDIR": str(self.home)}

    def ctl(
        self, *arguments: str, env: Mapping[str, str] | None = None, around: Sequence[str] = (), cwd: Path | None = None
    ) -> Ctl:
        done = subprocess.run(
            [*around, sys.executable, "-m", "synapsectl", *arguments],
            env=self.login if env is None else env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE_S,
            check=False,
            cwd=cwd or self.home,
        )
        return Ctl(done.returncode, done.stdout, done.stderr)

    @property
    def record(self) -> LockRecord | None:
        return read_record(str(self.state / "daemon.lock"))

    @property
    def pid(self) -> int:
        """The daemon's."""
        record = self.record
        assert record is not None
        return record.pid

    def kill(self) -> None:
        """The daemon, as nothing that it could see coming."""
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not is_alive(pid), "it is gone")

    def ready(self, name: str) -> dict[str, object]:
        def look() -> dict[str, object] | None:
            listed = self.ctl("list", "--json")
            rows: list[dict[str, object]] = listed.json if listed.code == 0 else []
            return next((row for row in rows if row["name"] == name and row["activity"] == "ready"), None)

        return eventually(look, f"{name} is ready")


def is_alive(pid: int) -> bool:
    """Also where nobody reaps it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@contextmanager
def living_somewhere(config: str = NO_PORTS) -> Iterator[Person]:
    """A person whose home has a path that is short enough for sockets, and whom nothing is left of."""
    with tempfile.TemporaryDirectory(prefix="ground-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        person = Person(Path(folder) / "home", config)
        try:
            yield person
        finally:
            if person.ctl("shutdown").code != 0 and person.record is not None:
                person.ctl("up", "--take-over")
                person.ctl("shutdown")
