"""What a service manager is told, and what it hands over."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import pytest

from synapsed.process.service_manager import ServiceNotifier, inherited_sockets

INTERVAL_S = 0.1
"""The watchdog's; a sign of life comes in less than half of it."""


@pytest.fixture
def made() -> Iterator[list[ServiceNotifier]]:
    made: list[ServiceNotifier] = []
    yield made
    for manager in made:
        manager.close()


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The service manager's side of NOTIFY_SOCKET."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(f"{folder}/notify")
        sock.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", f"{folder}/notify")
        yield sock


def told(listener: socket.socket) -> dict[str, str]:
    return dict(line.split("=", 1) for line in listener.recv(4096).decode().split("\n"))


async def test_a_life(listener: socket.socket, made: list[ServiceNotifier]) -> None:
    manager = ServiceNotifier({**os.environ, "WATCHDOG_USEC": "100000", "WATCHDOG_PID": str(os.getpid())})
    made.append(manager)
    status = "1 agent"
    async with manager.beating():
        starting = await asyncio.to_thread(told, listener)
        assert starting["WATCHDOG"] == "1"
        assert int(starting["EXTEND_TIMEOUT_USEC"]) > 1_000_000
        manager.ready(lambda: status)
        while (ready := await asyncio.to_thread(told, listener)).get("READY") != "1":
            assert "EXTEND_TIMEOUT_USEC" in ready
        assert ready == {"READY": "1", "STATUS": "1 agent"}
        assert await asyncio.to_thread(told, listener) == {"WATCHDOG": "1"}, "what is known is not told again"
        status = "2 agents\nand a line"
        while "STATUS" not in (news := await asyncio.to_thread(told, listener)):
            assert news == {"WATCHDOG": "1"}
        assert news["STATUS"] == "2 agents and a line"
        manager.stopping()
        while "STOPPING" not in (ending := await asyncio.to_thread(told, listener)):
            pass
        assert int(ending["EXTEND_TIMEOUT_USEC"]) > 1_000_000
        assert "EXTEND_TIMEOUT_USEC" in await asyncio.to_thread(told, listener), "for as long as it takes"


async def test_a_loop_that_is_stuck_gives_no_sign_of_life(listener: socket.socket, made: list[ServiceNotifier]) -> None:
    manager = ServiceNotifier({**os.environ, "WATCHDOG_USEC": str(int(INTERVAL_S * 1e6))})
    made.append(manager)
    manager.ready(str)
    async with manager.beating():
        await asyncio.to_thread(told, listener)
        await asyncio.to_thread(told, listener)
        listener.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while listener.recv(4096):
                pass
        listener.settimeout(5 * INTERVAL_S)
        with pytest.raises(TimeoutError):
            told(listener)  # the loop stands in this very call


async def test_a_reload(listener: socket.socket, made: list[ServiceNotifier]) -> None:
    manager = ServiceNotifier(os.environ)
    made.append(manager)
    with manager.reloading():
        begun = told(listener)
        assert begun["RELOADING"] == "1"
        assert int(begun["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
    assert told(listener) == {"READY": "1"}


async def test_without_a_service_manager_nothing_happens(made: list[ServiceNotifier]) -> None:
    manager = ServiceNotifier({"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"})
    made.append(manager)
    async with manager.beating():
        manager.ready(str)
        manager.stopping()


def test_sockets_of_another_process_are_left_alone() -> None:
    assert inherited_sockets({"LISTEN_PID": "1", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "control"}) == {}
    assert inherited_sockets({}) == {}
    assert inherited_sockets({"LISTEN_PID": "junk"}) == {}


SCRIPT = """
import os
from synapsed.process.service_manager import inherited_sockets
os.environ["LISTEN_PID"] = str(os.getpid())
found = inherited_sockets(os.environ)
print({name: [sock.getsockname() for sock in socks] for name, socks in sorted(found.items())})
print([os.get_inheritable(sock.fileno()) for socks in found.values() for sock in socks])
"""


def test_sockets_are_told_apart_by_name() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as one:
        one.bind(f"{folder}/s")
        with socket.create_server(("127.0.0.1", 0)) as two:
            port = two.getsockname()[1]

            def place() -> None:
                os.dup2(two.fileno(), 60)
                os.dup2(one.fileno(), 61)
                os.dup2(60, 3)
                os.dup2(61, 4)

            done = subprocess.run(
                [sys.executable, "-c", SCRIPT],
                env={**os.environ, "LISTEN_FDS": "2", "LISTEN_FDNAMES": "http:control"},
                preexec_fn=place,
                pass_fds=(3, 4),
                capture_output=True,
                text=True,
                check=True,
            )
    assert done.stdout.splitlines() == [
        str({"control": [f"{folder}/s"], "http": [("127.0.0.1", port)]}),
        "[False, False]",
    ]
