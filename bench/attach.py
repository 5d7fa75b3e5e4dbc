"""A keystroke's way to a program that echoes it, and back to the screen; and how long it takes until the screen is
there: attached through synapsectl, and through tmux.

python -m bench attach

Both run in a terminal of their own; the keys alternate between the two, so that both see the same machine.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.figures import daemon, milliseconds, percentile, report, sized
from bench.peers import Terminal, attach_to_tmux, tmux_available, tmux_terminal
from tests.support.daemon import Daemon, eventually

MOST_S = 0.001
"""Seconds that a key may take to be back on the screen, p50."""
KEYS = sized(400, 6)
DRAWS = sized(15, 2)
LETTERS = b"QWYOUV"
"""Letters that no escape sequence here has in it; one after the other, so that none is taken for the one before."""

ECHO = ["sh", "-c", "stty raw -echo; printf 'it echoes '; exec cat"]
CONFIG = f"""
[api]
listen = "127.0.0.1:0"
agent_ports = false
[agents.echo]
profile = "generic"
autostart = true
args = {json.dumps(ECHO)}
"""


def main() -> None:
    if not tmux_available():
        print("      no tmux: nothing to compare with")
        return
    with daemon(CONFIG) as running, tempfile.TemporaryDirectory() as folder, tmux_terminal(Path(folder), ECHO) as tmux:
        eventually(lambda: running.agent("echo")["state"] == "running", "it runs")
        ours = attach(running)
        for terminal in (ours, tmux):
            terminal.until(b"it echoes")
            terminal.drain(0.5)
        took: dict[Terminal, list[float]] = {ours: [], tmux: []}
        for number in range(KEYS):
            for terminal in (ours, tmux) if number % 2 else (tmux, ours):
                took[terminal].append(echo(terminal, LETTERS[number % len(LETTERS) :][:1]))
        ours.close()
        first: dict[str, list[float]] = {"ours": [], "tmux": []}
        for _ in range(DRAWS):
            first["ours"].append(drawn(lambda: attach(running)))
            first["tmux"].append(drawn(lambda: attach_to_tmux(Path(folder))))
    p50 = {terminal: percentile(times, 0.5) for terminal, times in took.items()}
    report(
        "keystroke echo in attach",
        f"{milliseconds(took[ours])}; tmux {milliseconds(took[tmux])}: {p50[ours] / p50[tmux]:.1f} x",
        "p50 ≤ 1 ms and ≤ 6 x tmux",
        held=p50[ours] <= MOST_S and p50[ours] <= 6 * p50[tmux],
    )
    draw = {who: percentile(times, 0.5) for who, times in first.items()}
    report(
        "first draw of attach",
        f"{milliseconds(first['ours'])}; tmux {milliseconds(first['tmux'])}: {draw['ours'] / draw['tmux']:.1f} x",
        "p50 ≤ 3 x tmux",
        held=draw["ours"] <= 3 * draw["tmux"],
    )


def attach(running: Daemon) -> Terminal:
    return Terminal([sys.executable, "-m", "synapsectl", "attach", "echo"], {**running.env, "TERM": "xterm"})


def drawn(start: Callable[[], Terminal]) -> float:
    """Seconds from the start of a client to the program's words on its terminal."""
    began = time.perf_counter()
    terminal = start()
    terminal.until(b"it echoes")
    took = time.perf_counter() - began
    terminal.close()
    return took


def echo(terminal: Terminal, key: bytes) -> float:
    began = time.perf_counter()
    terminal.type(key)
    terminal.until(key)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
