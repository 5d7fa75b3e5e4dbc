"""A laboratory for real keepers: launches, connects, and leaves nothing behind."""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest

from synapsed.keeper.processes import start_mark
from synapsed.keepers.client import KeeperClient
from synapsed.keepers.keeper_messages import Exited, ExitRecord, KeeperEvent, Lost, Output, OutputGap
from synapsed.keepers.launchers import LaunchedKeeper, LaunchSpec, ProcessLauncher, sweep_launch
from tests.support.patience import PATIENCE_S

DEADLINE_S = PATIENCE_S
"""Generous: what it bounds takes milliseconds on an idle machine."""


class Told:
    """Events in the order in which they came, for one reader; it is what a client passes them to."""

    def __init__(self) -> None:
        self._events: deque[KeeperEvent] = deque()
        self._came = asyncio.Event()

    def __call__(self, event: KeeperEvent) -> None:
        self._events.append(event)
        self._came.set()

    async def events(self) -> AsyncIterator[KeeperEvent]:
        """Ends after Lost."""
        while True:
            while self._events:
                yield (event := self._events.popleft())
                if isinstance(event, Lost):
                    return
            self._came.clear()
            await self._came.wait()


class Watcher:
    """Everything a client was told, and a way to wait for some of it."""

    def __init__(self, client: KeeperClient, told: Told) -> None:
        self.client = client
        self._told = told
        self.events: list[KeeperEvent] = []
        self.output = bytearray()
        self.start: int | None = None
        self._changed = asyncio.Condition()
        self._task = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        async for event in self._told.events():
            async with self._changed:
                self.events.append(event)
                if isinstance(event, Output) and event.channel != "stderr":
                    self.start = event.offset if self.start is None else self.start
                    self.output += event.data
                self._changed.notify_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Fails when the deadline is over, or if the connection ends before; it shows what the client was told."""
        try:
            async with asyncio.timeout(DEADLINE_S), self._changed:
                await self._changed.wait_for(lambda: condition() or self._lost)
        except TimeoutError:
            pass
        assert condition(), self._heard

    @property
    def _heard(self) -> str:
        return f"told {bytes(self.output[-2000:])!r} and {self.events[-20:]}"

    @property
    def _lost(self) -> bool:
        return bool(self.events) and isinstance(self.events[-1], Lost)

    async def until_output(self, text: bytes) -> bytes:
        """Fails at once when the program has ended without it: the exit is told behind the last output."""
        await self.until(lambda: text in self.output or any(isinstance(event, Exited) for event in self.events))
        assert text in self.output, self._heard
        return bytes(self.output)

    async def until_exit(self) -> ExitRecord:
        await self.until(lambda: any(isinstance(event, Exited) for event in self.events))
        return next(event.record for event in self.events if isinstance(event, Exited))

    async def until_lost(self) -> str:
        await self.until(lambda: any(isinstance(event, Lost) for event in self.events))
        return next(event.reason for event in self.events if isinstance(event, Lost))

    @property
    def gaps(self) -> list[OutputGap]:
        return [event for event in self.events if isinstance(event, OutputGap)]


class Lab:
    """Launches keepers in a directory of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.launched: list[LaunchedKeeper] = []
        self.told: dict[KeeperClient, Told] = {}
        """What each client was told."""

    def spec(self, *argv: str, launch_id: str | None = None, **options: object) -> LaunchSpec:
        # Unique on the machine, as in life: `sweep_launch` ends whatever carries the id.
        launch_id = f"{self.root.name}-{launch_id or len(self.launched)}"
        fields: dict[str, object] = {
            "launch_id": launch_id,
            "agent": "lab",
            "argv": argv,
            "env": {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "LAB": "yes"},
            "cwd": str(self.root),
            "state_dir": self.root / "state",
            "socket_path": self.root / "run" / f"{launch_id}.sock",
            **options,
        }
        return LaunchSpec(**fields)  # type: ignore[arg-type]

    async def launch(self, *argv: str, **options: object) -> LaunchedKeeper:
        keeper = await ProcessLauncher().launch(self.spec(*argv, **options))
        self.launched.append(keeper)
        return keeper

    async def shell(self, script: str, **options: object) -> LaunchedKeeper:
        return await self.launch("sh", "-c", script, **options)

    async def python(self, code: str, **options: object) -> LaunchedKeeper:
        return await self.launch(sys.executable, "-S", "-E", "-c", code, **options)

    async def connect(self, keeper: LaunchedKeeper) -> KeeperClient:
        told = Told()
        client = await KeeperClient.connect(keeper.socket_path, on_event=told, timeout=DEADLINE_S)
        self.told[client] = told
        return client

    def watcher(self, client: KeeperClient) -> Watcher:
        return Watcher(client, self.told[client])

    async def watch(self, keeper: LaunchedKeeper, offset: int | None = 0) -> Watcher:
        client = await self.connect(keeper)
        await client.subscribe(offset)
        return self.watcher(client)

    async def close(self) -> None:
        for client in self.told:
            client.close()
        for keeper in self.launched:
            await sweep_launch(keeper.launch_id)


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    # Not tmp_path: its name is too long for a Unix socket on some systems.
    root = Path(tempfile.mkdtemp(prefix="keeper-", dir="/tmp"))
    laboratory = Lab(root)
    try:
        yield laboratory
    finally:
        await laboratory.close()
        shutil.rmtree(root, ignore_errors=True)


async def until_gone(pid: int, mark: int) -> None:
    """Waits for the process to be dead."""
    async with asyncio.timeout(DEADLINE_S):
        while start_mark(pid) == mark:
            await asyncio.sleep(0.01)


async def until_file(path: Path) -> str:
    """The text of a file that some program writes and then renames into place."""
    async with asyncio.timeout(DEADLINE_S):
        while not path.exists():
            await asyncio.sleep(0.01)
    return path.read_text()


def living(launch_id: str) -> list[int]:
    """Pids of the launch's processes, its keeper aside."""
    found = []
    for process in psutil.process_iter():
        try:
            ours = process.environ().get("SYNAPSE_LAUNCH_ID") == launch_id
            if ours and process.status() != psutil.STATUS_ZOMBIE and "--ptyprocess" not in process.cmdline():
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
