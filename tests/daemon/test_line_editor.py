"""A program with a line editor: what it prints while it works is no prompt, whatever it looks like."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import ANY_PORTS, Daemon, eventually

EDITOR = """
import os, sys, termios, time, tty
lines = termios.tcgetattr(0)
while True:
    tty.setraw(0)
    os.write(1, b"> ")
    typed = b""
    while not typed.endswith(b"\\r"):
        got = os.read(0, 1024)
        os.write(1, got.replace(b"\\r", b"\\r\\n"))
        typed += got
    termios.tcsetattr(0, termios.TCSADRAIN, lines)
    os.write(1, b"> ")
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.01)
    os.write(1, b"done\\n")
"""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path, config=ANY_PORTS)
    daemon.start()
    yield daemon
    assert daemon.end() == 0


def test_a_prompt_that_is_printed_ends_no_turn(daemon: Daemon, tmp_path: Path) -> None:
    program, go = tmp_path / "editor.py", tmp_path / "go"
    program.write_text(EDITOR)
    assert daemon.ctl("start", "generic", "--name", "ed", "--", sys.executable, str(program), str(go)).code == 0
    task = daemon.ctl("send", "ed", "work").out.strip()
    eventually(lambda: "printed, no line editor is up" in daemon.ctl("status", "ed", "--explain").out, "it is at work")
    go.touch()
    assert daemon.ctl("task", task, "--wait").out == "> done\n"
