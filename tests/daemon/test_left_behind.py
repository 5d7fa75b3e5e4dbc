"""A program that is killed in a shell leaves the terminal as it had it: the shell is ready, and answers."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.daemon import ANY_PORTS, Daemon, eventually

SHELLS = {"dash": ["dash", "-i"], "bash": ["bash", "--norc", "-i"]}

LEFT = {
    "progress": r"\033]9;4;1;50\007",
    "progress without a figure": r"\033]9;4;3\007",
    "it works": r"\033]7501;state=working\007",
    "it waits for a person": r"\033]7501;state=blocked\007",
    "a title": r"\033]0;working\007",
    "bracketed paste": r"\033[?2004h",
    "the other screen, no cursor, the mouse": r"\033[?1049h\033[?25l\033[?1h\033=\033[?1000;1006h",
    "the keyboard's modes": r"\033[>31u\033[>4;2m",
    "no wrapping, and insertion": r"\033[?7l\033[4h",
    "another character set": r"\016",
    "concealed": r"\033[8;31;44m",
    "a frame": r"\033[?2026h",
    "a control sequence, half": r"\033[",
    "a letter, half": r"\343\201",
    "a link, protected": r"\033]8;;http://a\007\033[1\042q\033V",
}
IN_THE_GATE = {("bash", "progress")}

ROWS = [
    pytest.param(shell, left, id=f"{shell}, {left}", marks=[] if (shell, left) in IN_THE_GATE else pytest.mark.night)
    for shell in SHELLS
    for left in LEFT
]


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path, config=ANY_PORTS).start()
    yield daemon
    assert daemon.end() == 0


@pytest.mark.parametrize(("shell", "left"), ROWS)
def test_a_shell_answers_after_what_was_killed_in_it(daemon: Daemon, shell: str, left: str) -> None:
    """Stopped by a cancel, and ended by itself without a word."""
    daemon.start_agent(profile="generic", name="shell", args=SHELLS[shell])
    daemon.ready("shell")
    task = daemon.send(f"printf '{LEFT[left]}'; sleep 600", "shell")
    program = psutil.Process(daemon.agent("shell")["pid"])
    eventually(lambda: [child for child in program.children() if child.name() == "sleep"], "it works")
    canceled = daemon.ctl("cancel", task)
    assert canceled.code == 0, canceled
    assert daemon.ctl("task", daemon.send("echo after", "shell"), "--wait").out == "after\n"
    task = daemon.send(f"""sh -c "printf '{LEFT[left]}'; kill -9 \\$\\$\"""", "shell")
    assert daemon.ended(task)["status"] == "completed"
    assert daemon.ctl("task", daemon.send("echo again", "shell"), "--wait").out == "again\n"
