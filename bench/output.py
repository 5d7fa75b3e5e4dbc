"""A program that writes 20 MB, seen by one viewer: through keeper and daemon (detection, screen, frames), and
through tmux; and how long other agents' `/status` takes meanwhile.

python -m bench output
"""

import http.client
import json
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import daemon, percentile, report, sized
from bench.peers import COLS, ROWS, tmux_available, tmux_terminal
from synapsectl.client import Client
from synapsectl.framed import TerminalConnection
from tests.support.daemon import Daemon

SIZE = sized(20_000_000, 500_000)
RUNS = sized(5, 1)
END = b"ALL-IS-WRITTEN"
BETWEEN_ASKS_S = 0.005


def producer(size: int) -> str:
    """A program that writes `size` bytes each time that it reads a line, and `END` behind them."""
    return f"""
import os, sys
line = "\\x1b[32m{{:6d}}\\x1b[0m The quick brown fox jumps over a lazy dog \\u2014 \\x1b[1mand back\\x1b[0m \\u6f22\\n"
block = "".join(map(line.format, range(1000))).encode()
while True:
    print("$ ", end="", flush=True)
    if not sys.stdin.readline():
        break
    left = {size}
    while left > 0:
        left -= os.write(1, block[:left])
    os.write(1, b"\\n{END.decode()}\\n")
"""


PRODUCER = producer(SIZE)
CONFIG = f"""
[api]
listen = "127.0.0.1:0"
agent_ports = false
[agents.other]
profile = "dummy"
autostart = true
[agents.bulk]
profile = "generic"
autostart = true
args = {json.dumps([sys.executable, "-S", "-c", PRODUCER])}
"""


def main() -> None:
    with daemon(CONFIG) as running:
        running.ready("bulk")
        running.ready("other")
        ours, asked = through_daemon(running)
    if not tmux_available():
        print("      no tmux: nothing to compare with")
        return
    with tempfile.TemporaryDirectory() as folder:
        theirs = through_tmux(Path(folder))
    report(
        f"{SIZE // 1_000_000} MB of output, detection, screen, one viewer",
        f"{ours:.2f} s; tmux {theirs:.2f} s: {ours / theirs:.1f} x",
        "≤ 2 x tmux",
        held=ours <= 2 * theirs,
    )
    report(
        "another agent's /status meanwhile",
        f"p99 {percentile(asked, 0.99) * 1e3:.1f} ms of {len(asked)}",
        "p99 < 50 ms",
        held=percentile(asked, 0.99) < 0.05,
    )


def through_daemon(running: Daemon) -> tuple[float, list[float]]:
    """Seconds (median) from Enter to the viewer's having the last line, and those of every `/status` meanwhile."""
    took: list[float] = []
    asked: list[float] = []
    size = {"cols": COLS, "rows": ROWS}
    viewer = TerminalConnection.open(Client(str(running.socket)), "/agents/bulk/terminal", size)
    for _ in range(RUNS):
        with subprocess.Popen(
            [sys.executable, "-m", "bench.output", "--ask", str(running.socket)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as asker:
            assert asker.stdout is not None
            asker.stdout.readline()  # it asks
            began = time.perf_counter()
            viewer.keys(b"\r")
            seen = b""
            for _, data in viewer.frames():
                seen = seen[-len(END) :] + data
                if END in seen:
                    break
            took.append(time.perf_counter() - began)
            asked += json.loads(asker.communicate(b"")[0])
        running.ready("bulk")
    viewer.close(1)
    return statistics.median(took), asked


def through_tmux(folder: Path) -> float:
    took = []
    with tmux_terminal(folder, [sys.executable, "-S", "-c", PRODUCER]) as terminal:
        terminal.until(b"$ ")
        for _ in range(RUNS):
            terminal.drain(0.3)
            began = time.perf_counter()
            terminal.type(b"\r")
            terminal.until(END)
            took.append(time.perf_counter() - began)
    return statistics.median(took)


def ask(path: str) -> None:
    """Ask for the other agent's status again and again, until standard input ends; print how long each took."""
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(path)
    took: list[float] = []
    while not select.select([0], [], [], BETWEEN_ASKS_S)[0]:
        began = time.perf_counter()
        connection.request("GET", "/agents/other/status")
        connection.getresponse().read()
        took.append(time.perf_counter() - began)
        if len(took) == 1:
            print("asking", flush=True)
    print(json.dumps(took))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--ask"]:
        ask(sys.argv[2])
    else:
        main()
