"""What it would cost, and bring, to keep the screens in a process of their own (docs/adr/0033): a look in this process
and in one without rights, its memory, and four programs that write at once, through the daemon and through one tmux.

python -m bench.screens
"""

import json
import math
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pydantic import JsonValue, TypeAdapter

from bench.elsewhere import FRAME, exactly
from bench.figures import daemon, percentile, pss, report, sized
from bench.output import END, producer
from bench.peers import COLS, ROWS, Terminal, tmux_available, tmux_terminals
from synapsectl.client import Client
from synapsectl.framed import TerminalConnection
from synapsed.library import ProfileLibrary
from synapsed.profiles import Profile
from synapsed.terminal.observer import TerminalObserver
from tests.support.daemon import Daemon

RECORDINGS = Path(__file__).parents[1] / "tests" / "recordings"
PROGRAMS = {"claude": "claude-2.1.330", "codex": "codex-0.169.0", "gemini": "gemini-0.61.0"}
PIECE = 400
PIECES = sized(1500, 30)
BURST_S = 0.002
"""Between two pieces: a program draws in bursts, and whoever waits for them sleeps."""
CROWD = 10

AGENTS = 4
SIZE = sized(20_000_000, 200_000)
RUNS = sized(3, 1)

_TOLD: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)


def main() -> None:
    looks()
    floods()


# --- looks -----------------------------------------------------------------------------------------------------------


class Elsewhere:
    """Observers in a process of their own (`bench.elsewhere`)."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        command = [sys.executable, "-m", "bench.elsewhere"]
        with theirs:
            self._process = subprocess.Popen(command, stdin=theirs)

    def look(self, agent: int, data: bytes) -> JsonValue:
        """Feed it, and look."""
        self._socket.sendall(FRAME.pack(len(data), agent, time.monotonic()) + data)
        (size,) = struct.unpack("<I", exactly(self._socket.fileno(), 4))
        return _TOLD.validate_json(exactly(self._socket.fileno(), size))

    @property
    def memory(self) -> int:
        return pss(self._process.pid)

    def close(self) -> None:
        self._socket.close()
        self._process.wait(60)


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
    library, elsewhere = ProfileLibrary.builtin(), Elsewhere()
    here = {name: _observer(library.get(name)) for name in PROGRAMS}
    numbers = {name: number for number, name in enumerate(PROGRAMS)}
    for name, number in numbers.items():
        elsewhere.look(number, library.get(name).model_dump_json().encode())
    alone = elsewhere.memory
    times: tuple[list[float], list[float]] = ([], [])
    for (profile, data), _ in zip(pieces(), range(PIECES), strict=False):

        def nearby(observer: TerminalObserver = here[profile], data: bytes = data) -> None:
            now = time.monotonic()
            observer.feed(observer.offset, data, now)
            observer.look(now)

        times[0].append(_seconds(nearby))
        times[1].append(_seconds(lambda number=numbers[profile], data=data: elsewhere.look(number, data)))
        time.sleep(BURST_S)
    more = percentile(times[1], 0.99) - percentile(times[0], 0.99)
    told = " and ".join(
        f"p50 {statistics.median(seconds) * 1e3:.2f}, p99 {percentile(seconds, 0.99) * 1e3:.2f} ms" for seconds in times
    )
    report("a look here and in a process of its own", told, "p99 ≤ 1 ms more", held=more <= 0.001)
    for number in range(len(numbers), CROWD):
        elsewhere.look(number, library.get("claude").model_dump_json().encode())
    for number in range(CROWD):
        for (_, data), _ in zip(pieces(), range(50), strict=False):
            elsewhere.look(number, data)
    report(
        "memory of that process",
        f"{alone / 2**20:.1f} MB PSS with {len(numbers)} agents, {elsewhere.memory / 2**20:.1f} MB with {CROWD}",
        "≤ 30 MB",
        held=elsewhere.memory <= 30 * 2**20,
    )
    elsewhere.close()


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
