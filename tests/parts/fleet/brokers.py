"""A fleet's home for tests: `synapsed broker` with a real nats-server, started and killed at will, and what is asked of
it by `synapsed fleet`."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client

from synapsed.config.paths import Paths
from synapsed.errors import ProgramNotFound
from synapsed_fleet.broker import BrokerFolder
from synapsed_fleet.dial import connect, options
from synapsed_fleet.member_files import Home
from synapsed_fleet.natsserver import find
from tests.support.daemon import eventually
from tests.support.ports import free_port

__all__ = ["FleetHome", "Refused", "needs_broker"]


def _missing() -> str | None:
    try:
        find()
    except ProgramNotFound as error:
        return error.message
    return None


needs_broker = pytest.mark.skipif(_missing() is not None, reason=f"THE BROKER WAS NOT TESTED: {_missing()}")


class Refused(Exception):
    """`synapsed fleet` said no; the message is what it said."""


class FleetHome:
    """One home of synapsed in a fleet. `inside`: words before each command, as `nsenter …`."""

    def __init__(self, folder: Path, *, inside: Sequence[str] = (), environ: dict[str, str] | None = None) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder = folder
        self.inside = list(inside)
        self.environ = {
            "SYNAPSED_HOME": str(folder),
            "HOME": str(folder),
            "SYNAPSED_A2A_HOME": str(folder / "a2a"),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(__file__).parents[3]),
            **(environ or {}),
        }
        self.paths = Paths.from_environ(self.environ)
        self.home = Home(self.paths)
        self.broker_folder = BrokerFolder(self.home.broker)
        self.port = 0
        self._broker: subprocess.Popen[bytes] | None = None

    def do(self, what: str, **body: Any) -> dict[str, Any]:
        """`synapsed fleet WHAT`. Raises Refused."""
        done = subprocess.run(
            [*self.inside, sys.executable, "-m", "synapsed", "fleet", what],
            input=json.dumps(body),
            capture_output=True,
            text=True,
            env=self.environ,
            timeout=90,
            check=False,
        )
        told = json.loads(done.stdout) if done.stdout else {"error": {"message": done.stderr}}
        if "error" in told:
            assert done.returncode != 0
            raise Refused(told["error"]["message"])
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = told
        return found

    def create(self, name: str = "box", **body: Any) -> "FleetHome":
        """A fleet whose broker runs here."""
        self.port = free_port()
        self.do("create", name=name, **{"listen": f"127.0.0.1:{self.port}", **body})
        self.start()
        self.do("settle")
        return self

    def joined(self, folder: Path, name: str) -> "FleetHome":
        """Another home, a member of this one's fleet."""
        other = FleetHome(folder)
        other.do("join", line=self.do("invite", name=name)["line"])
        return other

    # --- the broker ---

    @property
    def url(self) -> str:
        return f"tls://127.0.0.1:{self.port}"

    def start(self) -> None:
        """`synapsed broker`; returns at once."""
        with (self.folder / "broker.log").open("ab") as log:
            self._broker = subprocess.Popen(
                [*self.inside, sys.executable, "-m", "synapsed", "broker"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environ,
            )

    def up(self) -> None:
        """Started, and healthy."""
        self.start()
        self.healthy()

    def healthy(self) -> None:
        eventually(lambda: self.do("status")["broker"]["healthy"], "the broker is healthy")

    @property
    def broker_pid(self) -> int:
        assert self._broker is not None
        return self._broker.pid

    @property
    def server_pid(self) -> int:
        """Of nats-server."""
        found: list[int] = []

        def told() -> bool:
            found[:] = [int(path.stem.rpartition("_")[2]) for path in self.home.broker.glob("*.ports")]
            return len(found) == 1

        eventually(told, "nats-server tells its ports")
        return found[0]

    def stop(self) -> int:
        """In order; the exit code."""
        assert self._broker is not None
        self._broker.terminate()
        code = self._broker.wait(60)
        self._broker = None
        return code

    def kill(self) -> None:
        """Both processes, at once, as a loss of power does."""
        server = self.server_pid
        if self._broker is not None:
            self._broker.kill()
            self._broker.wait()
            self._broker = None
        with contextlib.suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)

    def signal_broker(self, number: int) -> None:
        assert self._broker is not None
        self._broker.send_signal(number)

    def close(self) -> None:
        if self._broker is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.stop()
        if self._broker is not None:
            self._broker.kill()
            self._broker.wait()

    # --- connections ---

    async def connect(self, urls: Sequence[str] = (), **more: Any) -> Client:
        """As this host."""
        mine = self.home.identity()
        return await connect(**{**mine.options(list(urls) or [self.url]), "allow_reconnect": False, **more})

    async def connect_admin(self, *, system: bool = False) -> Client:
        token, pair = self.home.keyring.admin(system=system)
        ca = self.home.keyring.certificate
        asked = options([self.url], token=token, pair=pair, ca=ca, inbox="_INBOX__admin")
        return await connect(**asked, allow_reconnect=False)


@contextlib.contextmanager
def fleet(folder: Path, name: str = "box", **body: Any) -> Iterator[FleetHome]:
    """A fleet with its broker, ended afterwards."""
    home = FleetHome(folder / name)
    try:
        yield home.create(name, **body)
    finally:
        home.close()


def until(condition: Any, what: str, seconds: float = 60.0) -> float:
    """Seconds until it held."""
    began = time.monotonic()
    eventually(condition, what, patience=seconds)
    return time.monotonic() - began
