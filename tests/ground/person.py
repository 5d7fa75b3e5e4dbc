"""A person with a home of their own, who has the wheel installed, and comes by it in different ways: from a login, by
cron, through a link."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from synapsed.process.lock_record import LockRecord, read_record
from tests.ground.installed import Installed
from tests.support.daemon import NO_PORTS, PATIENCE_S, Ctl, Daemon, eventually
from tests.support.leftovers import OWNER

PATH = "/usr/local/bin:/usr/bin:/bin"


class Person:
    def __init__(self, home: Path, installed: Installed, config: str = NO_PORTS) -> None:
        self.home = home
        self.installed = installed
        self.runtime = home / "rt"
        self.runtime.mkdir(parents=True, mode=0o700)
        self.state = home / ".local/state/synapsed"
        (home / ".config/synapsed").mkdir(parents=True)
        (home / ".config/synapsed/config.toml").write_text(config)

    @property
    def bare(self) -> dict[str, str]:
        """What no process of a test is without: whose it is, so that it ends where the test runs out of time."""
        return {OWNER: os.environ[OWNER]} if OWNER in os.environ else {}

    @property
    def cron(self) -> dict[str, str]:
        """The environment of a job, or of ssh without a login."""
        return {**self.bare, "PATH": PATH, "LANG": "C.UTF-8", "HOME": str(self.home), "TMPDIR": str(self.home)}

    @property
    def login(self) -> dict[str, str]:
        """That of a session."""
        return {**self.cron, "XDG_RUNTIME_DIR": str(self.runtime), "TERM": "xterm-256color"}

    def ctl(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        around: Sequence[str] = (),
        cwd: Path | str | None = None,
    ) -> Ctl:
        """Runs a verb of the installed tool, below the command `around` if one is given."""
        return self.run(*around, str(self.installed.tool), *arguments, env=env, cwd=cwd)

    def run(self, *command: str, env: Mapping[str, str] | None = None, cwd: Path | str | None = None) -> Ctl:
        done = subprocess.run(
            command,
            env=self.login if env is None else env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
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

    def with_dummy(self, name: str) -> None:
        """The daemon runs, and an agent is ready: also where a machine that is busy takes longer than a verb waits."""
        eventually(lambda: self.ctl("list").code == 0 or self.ctl("up").code == 0, "a daemon answers")
        started = self.ctl("start", "dummy", "--name", name)
        assert started.code == 0, started
        self.ready(name)

    def misplaced(self, *places: Path) -> list[str]:
        """What there is beside the person's home and outside of our folders in it, or is another user's, or may be read
        by others; `places` are the situation's own."""
        ours = (self.state, self.home / ".config/synapsed", self.home / ".a2a", self.runtime / "synapsed")
        above = {parent for place in (*ours, *places) for parent in place.parents}
        found = []
        for path in self.home.parent.rglob("*"):
            status = path.lstat()
            if not any(path.is_relative_to(place) for place in (*ours, *places)) and path not in above:
                found.append(str(path))
            elif status.st_uid != os.geteuid():
                found.append(f"{path} is {status.st_uid}'s")
            elif path.is_relative_to(self.state) and not path.is_symlink() and status.st_mode & 0o077:
                found.append(f"{path} has the mode {status.st_mode & 0o777:o}")
        return found


def is_alive(pid: int) -> bool:
    """Also where nobody reaps it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@contextmanager
def living_somewhere(installed: Installed, config: str = NO_PORTS, home: str = "home") -> Iterator[Person]:
    """A person whose home has a path that is short enough for sockets, and whom nothing is left of."""
    with tempfile.TemporaryDirectory(prefix="ground-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        person = Person(Path(folder) / home, installed, config)
        try:
            yield person
        finally:
            if person.ctl("shutdown").code != 0 and person.record is not None:
                person.ctl("up", "--take-over")
                person.ctl("shutdown")


class Reached(Daemon):
    """The daemon of `person`, asked at its socket: a tool for each question would take much more of the machine."""

    def __init__(self, person: Person) -> None:
        super().__init__(person.home, person.login)

    def __post_init__(self) -> None:
        """What is configured is the person's."""

    @property
    def env(self) -> dict[str, str]:
        return dict(self.environ)

    def answer(self, agent: str, text: str) -> str:
        """To a message, exactly as it is told."""
        task = self.ended(self.send(text, agent))
        assert task["status"] == "completed", task
        (artifact,) = [one for one in task["artifacts"] if one["artifact_id"] == "answer"]
        return "".join(part.get("text", "") for part in artifact["parts"])

    def size(self, agent: str) -> tuple[int, int]:
        """Columns and rows of its window."""
        screen = self.get(f"/agents/{agent}/screen?format=json").json
        return screen["cols"], screen["rows"]
