"""A line of a person's, and Ctrl-C instead of it."""

import os
import subprocess
import sys

import pytest

NOTED_ONLY = """
import _thread, os, pathlib, threading
from synapsectl.signals import typed_line

stat = pathlib.Path(f"/proc/self/task/{os.getpid()}/stat")

def note():
    while stat.read_text().rpartition(")")[2].split()[0] != "S":
        os.sched_yield()
    _thread.interrupt_main()  # Python has noted it, and no system call is interrupted by it

threading.Thread(target=note, daemon=True).start()
try:
    typed_line()
except KeyboardInterrupt:
    print("seen")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_ctrl_c_that_came_just_before_the_terminal_was_read_is_seen() -> None:
    master, slave = os.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-c", NOTED_ONLY], stdin=slave, capture_output=True, text=True, timeout=60, check=False
        )
    finally:
        os.close(master)
        os.close(slave)
    assert done.stdout == "seen\n", done.stderr
