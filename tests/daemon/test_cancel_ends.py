"""A program that takes the keys which stop a turn for its end: who has canceled is told what became of it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import ANY_PORTS, Daemon, eventually

PROGRAM = "import time\nwhile True:\n    input('> ')\n    print('at work', flush=True)\n    time.sleep(600)\n"
"""As people write them: Ctrl-C is a KeyboardInterrupt that nobody catches."""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path, config=ANY_PORTS).start()
    daemon.start_agent(profile="generic", name="fragile", args=[sys.executable, "-c", PROGRAM])
    yield daemon
    daemon.end()


@pytest.mark.parametrize("target", ["agent", pytest.param("task", marks=pytest.mark.night)])
def test_a_cancel_that_ended_the_program_says_what_happened(daemon: Daemon, target: str) -> None:
    task = daemon.send("hello", "fragile")
    eventually(lambda: "at work" in daemon.agent("fragile")["screen"], "it works")
    canceled = daemon.ctl("cancel", "fragile" if target == "agent" else task)
    assert (canceled.code, canceled.out) == (6, "")
    words = {
        "agent": "fragile: its program ended when it was interrupted (signal SIGINT)",
        "task": "was not canceled: it failed, the program ended while it worked on this task (signal SIGINT)",
    }
    assert words[target] in canceled.err
    ended = daemon.ended(task)
    assert (ended["status"], ended["error"]["code"]) == ("failed", "AGENT_EXITED")
    daemon.ready("fragile")
