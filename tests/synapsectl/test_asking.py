"""What a person types at a question: only what came after it counts. And Ctrl-C instead of it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from synapsectl.commands.send import MANY
from tests.synapsectl.fake_daemon import FakeDaemon, agent, permission
from tests.synapsectl.pty_tool import PtyTool

ROOT = Path(__file__).parents[2]
READS = re.compile(r"stdin\.readline\(\)|\bgetpass\(|(?<![.\w])input\(")
A_LINE_WAITS = "import select; select.select([0], [], [])"
"""Run before the tool: it begins only once a person has typed something."""

NOTED_ONLY = """
import _thread, os, pathlib, sys, threading
from synapsectl.asking import ask_line

stat = pathlib.Path(f"/proc/self/task/{os.getpid()}/stat")

def note():
    while stat.read_text().rpartition(")")[2].split()[0] != "S":
        os.sched_yield()
    _thread.interrupt_main()  # Python has noted it, and no system call is interrupted by it

threading.Thread(target=note, daemon=True).start()
try:
    ask_line(sys.stderr, "")
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


def test_there_is_one_place_that_reads_an_answer() -> None:
    verbs = [
        *ROOT.glob("synapsectl/**/*.py"),
        *ROOT.glob("synapsed/parts/*/ctl/**/*.py"),
        *ROOT.glob("packages/*/*/ctl/*.py"),
    ]
    assert [str(file.relative_to(ROOT)) for file in verbs if READS.search(file.read_text())] == ["synapsectl/asking.py"]


def test_what_was_typed_before_a_yes_or_no_is_no_answer(daemon: FakeDaemon) -> None:
    names = [f"one{number}" for number in range(MANY + 1)]
    for number, name in enumerate(names):
        daemon.agents[name] = agent(name, port=8200 + number)
    tool = PtyTool("send", ",".join(names), "x", before=A_LINE_WAITS, env={**os.environ, "TERM": "xterm"})
    try:
        tool.type(b"y\r")
        tool.until(b"send it? [y/N] ")
        tool.type(b"n\r")
        assert tool.end() == 2
        assert daemon.tasks == {}
    finally:
        tool.close()


def test_what_was_typed_before_the_question_of_an_agent_is_no_answer(daemon: FakeDaemon) -> None:
    daemon.agents["claude"] = agent("claude", prompt=permission(), activity="waiting")
    tool = PtyTool("input", "claude", before=A_LINE_WAITS, env={**os.environ, "TERM": "xterm"})
    try:
        tool.type(b"1\r2")
        tool.until(b"claude: ")
        tool.type(b"3\r")
        assert tool.end() == 0
        posted = [body["input"] for method, path, body in daemon.requests if path.endswith("/input")]
        assert posted == ["3"]
    finally:
        tool.close()
