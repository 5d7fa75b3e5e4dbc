"""20 MB of output through the emulator and the scanner, next to tmux for the same bytes in the same run.

    python -m bench.emulator [--megabytes 20] [--runs 3]

Prints one line for each way, and ratios to tmux. tmux is given the bytes by a program in a pane of its own server, from
the first byte until it knows the title that the last ones set; the ways of this repository read the same file in pieces
of 64 KiB, as the daemon does.
"""

import argparse
import importlib.util
import math
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.figures import sized
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.scanner import Scanner
from synapsed.terminal.viewer_filter import ViewerFilter
from tests.emulator.candidates import CANDIDATES, PACKAGES
from tests.emulator.tmux import TmuxScreen

COLS, ROWS = 120, 40
CHUNK = 64 * 1024
CHECKPOINT_EVERY = 256 * 1024
_WORDS = [b"foo ", b"barbaz ", b"x=1 ", b"\x1b[32mok\x1b[0m ", b"/usr/lib/thing.py:12: "]


def output(size: int, seed: int = 1) -> bytes:
    """Mixed output of about `size` bytes: coloured lines, a screen drawn over, wide characters, titles."""
    rng = random.Random(seed)
    parts: list[bytes] = []
    length = 0
    while length < size:
        kind = rng.random()
        if kind < 0.6:
            part = b"".join(rng.choice(_WORDS) for _ in range(12)) + b"\r\n"
        elif kind < 0.85:
            place = (rng.randint(1, ROWS), rng.randint(1, COLS - 20), rng.randint(0, 255))
            part = b"\x1b[%d;%dH\x1b[38;5;%dm" % place + b"z" * 30 + b"\x1b[m"
        elif kind < 0.99:
            part = "漢字テスト – ✳ ⠂ ".encode()
        else:
            part = b"\x1b]0;a title\x07\r\n"
        parts.append(part)
        length += len(part)
    return b"".join(parts)


def chunks(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), CHUNK):
        yield data[start : start + CHUNK]


def emulator_alone(data: bytes) -> None:
    screen = Screen(COLS, ROWS)
    for chunk in chunks(data):
        screen.feed(chunk)


def scanner_alone(data: bytes) -> None:
    scanner = Scanner()
    for chunk in chunks(data):
        scanner.feed(chunk)


def viewer_alone(data: bytes) -> None:
    viewer = ViewerFilter()
    for chunk in chunks(data):
        viewer.feed(chunk)


def everything(data: bytes) -> None:
    """What the daemon does: screen, scanner, a viewer, a look after each chunk, a checkpoint each 256 KiB."""
    screen, scanner, viewer = Screen(COLS, ROWS), Scanner(), ViewerFilter()
    since = 0
    for chunk in chunks(data):
        scanner.feed(chunk)
        screen.feed(chunk)
        viewer.feed(chunk)
        screen.snapshot()
        since += len(chunk)
        if since >= CHECKPOINT_EVERY:
            screen.redraw(scrollback=True)
            since = 0


def par_term(data: bytes) -> None:
    terminal = CANDIDATES["par-term"](COLS, ROWS)
    for chunk in chunks(data):
        terminal.feed(chunk)


def seconds(way: Callable[[bytes], None], data: bytes) -> float:
    start = time.perf_counter()
    way(data)
    return time.perf_counter() - start


def tmux_seconds(data: bytes) -> float:
    with tempfile.TemporaryDirectory(prefix="tm") as folder, TmuxScreen(Path(folder), COLS, ROWS) as tmux:
        return seconds(tmux.feed, data)


WAYS: dict[str, Callable[[bytes], None]] = {
    "screen": emulator_alone,
    "scanner": scanner_alone,
    "viewer filter": viewer_alone,
    "screen, scanner, viewer, looks, checkpoints": everything,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=sized(20, 1))
    parser.add_argument("--runs", type=int, default=sized(3, 1), help="the shortest of them counts")
    options = parser.parse_args()
    data = output(options.megabytes * 1_000_000)
    ways = dict(WAYS)
    if importlib.util.find_spec(PACKAGES["par-term"]) is not None:
        ways["par-term-emu-core-rust"] = par_term
    tmux, times = math.inf, dict.fromkeys(ways, math.inf)
    for _ in range(options.runs):
        tmux = min(tmux, tmux_seconds(data))
        for name, way in ways.items():
            times[name] = min(times[name], seconds(way, data))
    print(f"{'tmux':45} {tmux:6.3f} s")
    for name, time_taken in times.items():
        print(f"{name:45} {time_taken:6.3f} s  {time_taken / tmux:5.2f} x tmux")


if __name__ == "__main__":
    main()
