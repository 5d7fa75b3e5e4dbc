"""Two machines, as far as a daemon can tell: network namespaces with a wire between them. Linux, root."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, eventually

__all__ = ["NETWORK", "Housed", "has_address", "inside", "namespaces", "needs_namespaces", "two_houses"]

NEEDED = ("ip", "nsenter", "unshare")
needs_namespaces = pytest.mark.skipif(
    sys.platform != "linux" or os.getuid() != 0 or not all(map(shutil.which, NEEDED)),
    reason="makes network namespaces: Linux, root, iproute2 and util-linux",
)

NETWORK = "10.77.0"


@dataclass
class Housed(Daemon):
    """A daemon in the namespace of the process `house`."""

    house: int = 0

    def run(self, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.home / "daemon.log").open("ab") as log:
            return subprocess.Popen(
                ["nsenter", f"--net=/proc/{self.house}/ns/net", sys.executable, "-m", "synapsed", "run", *arguments],
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )


@contextmanager
def two_houses() -> Iterator[tuple[int, int]]:
    """Two processes, each the only one of its namespace, which are at `.1` and `.2` of one network."""
    with namespaces(seconds=600) as (here, there):
        inside(here, "ip", "link", "add", "wire0", "type", "veth", "peer", "name", "wire1", "netns", str(there))
        for pid, device, address in ((here, "wire0", 1), (there, "wire1", 2)):
            has_address(pid, device, address)
        yield here, there


@contextmanager
def namespaces(*, seconds: int) -> Iterator[tuple[int, int]]:
    """Two processes, each the only one of its namespace, with nothing between them. They end after `seconds`."""
    sleepers = [subprocess.Popen(["unshare", "--net", "sleep", str(seconds)]) for _ in range(2)]
    here, there = (sleeper.pid for sleeper in sleepers)
    own = Path("/proc/self/ns/net").readlink()
    try:
        for pid in (here, there):
            eventually(lambda pid=pid: Path(f"/proc/{pid}/ns/net").readlink() != own, "it is in its namespace")
            inside(pid, "ip", "link", "set", "lo", "up")
        yield here, there
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()


def has_address(pid: int, device: str, address: int) -> None:
    """Gives the device in the namespace of `pid` its address in the network."""
    inside(pid, "ip", "address", "add", f"{NETWORK}.{address}/24", "dev", device)
    inside(pid, "ip", "link", "set", device, "up")


def inside(pid: int, *command: str) -> None:
    done = subprocess.run(
        ["nsenter", f"--net=/proc/{pid}/ns/net", *command], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no wire between namespaces here: {done.stderr.strip()}")
