"""What it costs, and brings, to keep the screens in processes of their own (docs/adr/0033): a look in this process and
in one without rights, its memory, and four programs that write at once, through the daemon and through one tmux.

python -m bench.screens
"""

import asyncio
import json
import math
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.figures import computed, daemon, percentile, pss, report, sized
from bench.output import END, producer
from bench.peers import COLS, ROWS, Terminal, tmux_available, tmux_terminals
from synapsectl.client import Client
from synapsectl.framed import TerminalConnection
from synapsed.clock import SystemClock
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Profile
from synapsed.screens.harmful_output import HarmRecord
from synapsed.screens.pool import SCREENS_EACH, ScreenPool
from synapsed.screens.remote_screen import RemoteStage
from synapsed.terminal.observer import TerminalObserver
from synapsed.terminal.screen_messages import Ask
from tests.support.daemon import Daemon

RECORDINGS = Path(__file__).parents[1] / "tests" / "recordings"
PROGRAMS = {"claude": "claude-2.1.330", "codex": "codex-0.169.0", "gemini": "gemini-0.61.0"}
PIECE = 400
PIECES = sized(1500, 30)
BURST_S = 0.002
"""Between two pieces: a program draws in bursts, and whoever waits for them sleeps."""
LOOK_BYTES = 500
"""An answer to a look, about."""
ECHO = """
import socket
here = socket.socket(fileno=0)
while here.recv(65536):
    here.sendall(bytes({size}))
"""

AGENTS = 4
SIZE = sized(20_000_000, 200_000)
RUNS = sized(3, 1)


def main() -> None:
    looks()
    floods()


# --- looks -----------------------------------------------------------------------------------------------------------


class Elsewhere:
    """Screens in a process of their own, as the daemon has them."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._loop = asyncio.Runner()
        self._pool = self._loop.run(self._begin())
        self._stages: list[RemoteStage] = []
        self._fed: list[int] = []

    async def _begin(self) -> ScreenPool:
        return ScreenPool(1)

    def open(self, profile: Profile) -> int:
        self._loop.run(self._open(profile))
        return len(self._stages) - 1

    async def _open(self, profile: Profile) -> None:
        folder = Path(self._folder.name)
        stage = RemoteStage(
            self._pool,
            agent_id=str(len(self._stages)),
            profile=profile,
            size=(COLS, ROWS),
            launch_start=0,
            checkpoint=None,
            kept=_nothing,
            spool=folder / "spool",
            harms=await HarmRecord.of(folder, "bench"),
            clock=SystemClock(),
        )
        stage.open(lambda _: None)
        self._stages.append(stage)
        self._fed.append(0)
        await stage.look(Ask(now=time.monotonic()))

    def look(self, number: int, data: bytes) -> float:
        """Seconds that it takes to feed it, and look."""
        return self._loop.run(self._look(number, data))

    async def _look(self, number: int, data: bytes) -> float:
        began = time.perf_counter()
        now = time.monotonic()
        self._stages[number].feed(self._fed[number], data, now)
        self._fed[number] += len(data)
        await self._stages[number].look(Ask(now=now))
        return time.perf_counter() - began

    @property
    def pid(self) -> int:
        return self._pool.pids[0]

    @property
    def memory(self) -> int:
        """PSS: the private pages of the process, and its share of the libraries' pages, which the daemon maps too."""
        return pss(self.pid)

    def close(self) -> None:
        self._loop.run(self._pool.close())
        self._loop.close()
        self._folder.cleanup()


class RoundTrip:
    """A process that answers each piece with as many bytes as a look has, and does nothing else: the price of asking
    another process at all, for an event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.Runner()
        ours, its = socket.socketpair()
        with its:
            argv = [sys.executable, "-S", "-E", "-c", ECHO.format(size=LOOK_BYTES)]
            self._process = subprocess.Popen(argv, stdin=its.fileno())
        self._reader, self._writer = self._loop.run(asyncio.open_connection(sock=ours))

    def ask(self, data: bytes) -> float:
        """Seconds that it takes."""
        return self._loop.run(self._ask(data))

    async def _ask(self, data: bytes) -> float:
        began = time.perf_counter()
        self._writer.write(data)
        await self._reader.readexactly(LOOK_BYTES)
        return time.perf_counter() - began

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        self._writer.close()
        self._loop.run(self._writer.wait_closed())
        self._loop.close()
        self._process.wait()


async def _nothing() -> None:
    return None


def _observer(profile: Profile) -> TerminalObserver:
    return TerminalObserver(profile, cols=COLS, rows=ROWS, offset=0)


def pieces() -> Iterator[tuple[str, bytes]]:
    """Of what the programs have written, with the profile's name; again and again."""
    while True:
        for profile, folder in PROGRAMS.items():
            for path in sorted((RECORDINGS / folder).glob("*.raw")):
                data = path.read_bytes()[: 50 * PIECE]
                yield from ((profile, data[start : start + PIECE]) for start in range(0, len(data), PIECE))


def looks() -> None:
    library, elsewhere, bare = ProfileLibrary.builtin(), Elsewhere(), RoundTrip()
    here = {name: _observer(library.get(name)) for name in PROGRAMS}
    numbers = {name: elsewhere.open(library.get(name)) for name in PROGRAMS}
    alone = elsewhere.memory
    times: tuple[list[float], list[float], list[float]] = ([], [], [])
    cpu: tuple[list[float], list[float], list[float]] = ([], [], [])
    """The same in CPU time, of this process and of the other one."""
    for (profile, data), _ in zip(pieces(), range(PIECES), strict=False):

        def nearby(observer: TerminalObserver = here[profile], data: bytes = data) -> None:
            now = time.monotonic()
            observer.feed(observer.offset, data, now)
            observer.look(now)

        def there(number: int = numbers[profile], data: bytes = data) -> None:
            times[1].append(elsewhere.look(number, data))

        def trip(data: bytes = data) -> None:
            times[2].append(bare.ask(data))

        cpu[0].append(_computed(lambda: times[0].append(_seconds(nearby))))
        cpu[1].append(_computed(there, elsewhere.pid))
        cpu[2].append(_computed(trip, bare.pid))
    bare.close()
    more = percentile(times[1], 0.99) - percentile(times[0], 0.99)
    told = ", ".join(
        f"p50 {statistics.median(seconds) * 1e3:.2f}, p99 {percentile(seconds, 0.99) * 1e3:.2f} ms" for seconds in times
    )
    report("a look here, in a process of its own, a bare round trip", told, "p99 ≤ 1 ms more", held=more <= 0.001)
    beyond = statistics.median(times[1]) - statistics.median(times[0]) - statistics.median(times[2])
    report(
        "a look elsewhere beyond the look here and the round trip",
        f"p50 {beyond * 1e3:.2f} ms",
        "p50 ≤ 0.3 ms",
        held=beyond <= 0.0003,
    )
    middle = [statistics.median(seconds) * 1e3 for seconds in cpu]
    report(
        "the same in CPU time, of both processes",
        f"p50 {middle[0]:.2f}, {middle[1]:.2f}, {middle[2]:.2f}: {middle[1] - middle[0] - middle[2]:.2f} ms beyond",
        "none",
        held=True,
    )
    for _ in range(len(numbers), SCREENS_EACH):
        elsewhere.open(library.get("claude"))
    for number in range(SCREENS_EACH):
        for (_, data), _ in zip(pieces(), range(50), strict=False):
            elsewhere.look(number, data)
    report(
        "memory of that process",
        f"{alone / 2**20:.1f} MB PSS with {len(numbers)} agents, {elsewhere.memory / 2**20:.1f} MB with {SCREENS_EACH}",
        "≤ 30 MB",
        held=elsewhere.memory <= 30 * 2**20,
    )
    elsewhere.close()


def _computed(work: Callable[[], object], other: int | None = None) -> float:
    """Returns the seconds that this thread, and the process `other`, compute for `work`; then waits for a moment."""
    before = computed(other) if other is not None else 0.0
    began = time.thread_time()
    work()
    took = time.thread_time() - began
    time.sleep(BURST_S)
    return took + (computed(other) - before if other is not None else 0.0)


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


# --- four programs that write at once --------------------------------------------------------------------------------


def floods() -> None:
    argv = [sys.executable, "-S", "-c", producer(SIZE)]
    agents = [
        f"[agents.bulk{n}]\nprofile = 'generic'\nautostart = true\nargs = {json.dumps(argv)}" for n in range(AGENTS)
    ]
    with daemon("\n".join(["[api]\nlisten = '127.0.0.1:0'\nagent_ports = false", *agents])) as running:
        ours = through_daemon(running)
    theirs = math.inf
    if tmux_available():
        with tempfile.TemporaryDirectory() as folder, tmux_terminals(Path(folder), argv, AGENTS) as terminals:
            theirs = through_tmux(terminals)
    report(
        f"{AGENTS} x {SIZE // 1_000_000} MB at once, detection, screens, four viewers",
        f"{ours:.2f} s; tmux {theirs:.2f} s: {ours / theirs:.2f} x",
        "≤ 0.8 x tmux",
        held=ours <= 0.8 * theirs,
    )


def through_daemon(running: Daemon) -> float:
    names = [f"bulk{number}" for number in range(AGENTS)]
    for name in names:
        running.ready(name)
    size = {"cols": COLS, "rows": ROWS}
    viewers = [TerminalConnection.open(Client(str(running.socket)), f"/agents/{name}/terminal", size) for name in names]

    def once(viewer: TerminalConnection) -> None:
        viewer.keys(b"\r")
        seen = b""
        for _, data in viewer.frames():
            seen = seen[-len(END) :] + data
            if END in seen:
                return

    def ready() -> None:
        for name in names:
            running.ready(name)

    took = _at_once(viewers, once, ready)
    for viewer in viewers:
        viewer.close(1)
    return took


def through_tmux(terminals: Sequence[Terminal]) -> float:
    def once(terminal: Terminal) -> None:
        terminal.type(b"\r")
        terminal.until(END)

    def ready() -> None:
        for terminal in terminals:
            terminal.drain(0.3)

    for terminal in terminals:
        terminal.until(b"$ ")
    return _at_once(terminals, once, ready)


def _at_once[Seat](seats: Sequence[Seat], once: Callable[[Seat], None], ready: Callable[[], None]) -> float:
    """Seconds (median) until all are through."""
    took = []
    with ThreadPoolExecutor(len(seats)) as threads:
        for _ in range(RUNS):
            ready()
            took.append(_seconds(lambda: list(threads.map(once, seats))))
    return statistics.median(took)


if __name__ == "__main__":
    main()
