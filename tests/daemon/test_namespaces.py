"""Two daemons as on two machines: each in a network namespace of its own, with a wire between them."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, eventually

NEEDED = ("ip", "nsenter", "unshare")
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.getuid() != 0 or not all(map(shutil.which, NEEDED)),
    reason="makes network namespaces: Linux, root, iproute2 and util-linux",
)

NETWORK = "10.77.0"
PORT = 8090


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


@pytest.fixture
def houses() -> Iterator[tuple[int, int]]:
    """Two processes, each the only one of its namespace, which are at `.1` and `.2` of one network."""
    sleepers = [subprocess.Popen(["unshare", "--net", "sleep", "600"]) for _ in range(2)]
    here, there = (sleeper.pid for sleeper in sleepers)
    own = Path("/proc/self/ns/net").readlink()
    try:
        for pid in (here, there):
            eventually(lambda pid=pid: Path(f"/proc/{pid}/ns/net").readlink() != own, "it is in its namespace")
        inside(here, "ip", "link", "add", "wire0", "type", "veth", "peer", "name", "wire1", "netns", str(there))
        for pid, device, address in ((here, "wire0", 1), (there, "wire1", 2)):
            inside(pid, "ip", "address", "add", f"{NETWORK}.{address}/24", "dev", device)
            inside(pid, "ip", "link", "set", device, "up")
            inside(pid, "ip", "link", "set", "lo", "up")
        yield here, there
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()


def inside(pid: int, *command: str) -> None:
    done = subprocess.run(
        ["nsenter", f"--net=/proc/{pid}/ns/net", *command], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no wire between namespaces here: {done.stderr.strip()}")


FORWARD = """
import asyncio, sys
listen, port, to = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()
async def serve(reader, writer):
    try:
        there = await asyncio.open_connection("127.0.0.1", to)
    except OSError:
        return writer.transport.abort()
    await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))
async def main():
    server = await asyncio.start_server(serve, listen, port)
    print("listens", flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
"""What stands in front of a daemon that is to be reached from elsewhere: it listens on loopback only."""


@contextlib.contextmanager
def forwarding(house: int, address: str, to: int) -> Iterator[None]:
    command = ["nsenter", f"--net=/proc/{house}/ns/net", sys.executable, "-c", FORWARD, address, str(PORT), str(to)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forward:
        try:
            assert forward.stdout is not None
            assert forward.stdout.readline() == "listens\n"
            yield
        finally:
            forward.kill()


def housed(home: Path, house: int, address: int) -> Housed:
    home.mkdir()
    host = f"{NETWORK}.{address}"
    config = f'[api]\nlisten = "127.0.0.1:{PORT + 1}"\nallowed_hosts = ["{host}"]\nagent_ports = false\n'
    return Housed(home, config=config, house=house)


def test_a_message_to_another_machine_and_one_that_was_away(houses, tmp_path: Path):
    here = housed(tmp_path / "here", houses[0], 1).start()
    there = housed(tmp_path / "there", houses[1], 2).start()
    url = f"http://{NETWORK}.2:{PORT}/agents/dummy"
    try:
        there.start_agent()
        with forwarding(houses[1], f"{NETWORK}.2", PORT + 1):
            refused = here.ctl("external", "add", url, "--as", "far", "--token-env", "KEY", env={"KEY": "x"})
            assert (refused.code, "in the clear" in refused.err) == (2, True), refused
            added = here.ctl("external", "add", url, "--as", "far", "--json")
            assert added.code == 0, added.err
            assert added.json["endpoint"].startswith(f"http://{NETWORK}.2:{PORT}/")
            assert here.ctl("send", "far", "--wait", "hello").code == 0
            # It goes away in the middle, and comes back.
            task = here.ctl("send", "far", "sleep 3").out.strip()
            eventually(lambda: here.task(task)["metadata"].get("external", {}).get("task_id"), "it is known there")
            there.kill9()
            refused = here.ctl("external", "add", url, "--as", "other")
            assert (refused.code, "cannot be reached" in refused.err) == (6, True), refused
            there.start()
            assert here.ended(task)["status"] == "completed", here.task(task)
            assert len(there.get("/control/tasks").json) == 2
    finally:
        assert here.end() == 0
        assert there.end() == 0
