"""The verbs of a person in a real terminal, with scripted agents: typed, read and answered.

Every wait is for what stands on the screen or what the daemon says; nothing is timed.
"""

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Daemon, eventually
from tests.support.pane import UNREAD, Pane
from tests.support.threaded import real_one

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")


@pytest.fixture
def daemon(tmp_path: Path, kind: type[Daemon]) -> Iterator[Daemon]:
    daemon = kind(tmp_path).start()
    for name in ("api", "web"):
        daemon.start_agent(name=name)
    yield daemon
    daemon.end()


@pytest.fixture
def pane(daemon: Daemon, tmp_path: Path) -> Iterator[Pane]:
    path = f"{Path(sys.executable).parent}:{daemon.env['PATH']}"
    with Pane(tmp_path, {**daemon.env, "PATH": path}) as pane:
        yield pane


def asks(daemon: Daemon, agent: str, what: str = "ask y/n") -> str:
    task = daemon.send(what, agent)
    daemon.task_in(task, "input_required")
    eventually(lambda: any(item["task"] == task for item in inbox(daemon)), "it is in the inbox")
    return task


def inbox(daemon: Daemon) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = daemon.get("/inbox").json
    return found


def answer_of(daemon: Daemon, task: str) -> str:
    told: str = daemon.task_in(task, "completed")["artifacts"][0]["parts"][0]["text"]
    return told


def test_each_is_answered_with_one_key(daemon: Daemon, pane: Pane) -> None:
    first, second = asks(daemon, "api"), asks(daemon, "web", "ask 1/2/3")
    pane.run("synapsectl")
    shown = pane.until("2 need you", "> api", "web", gone=[UNREAD])
    assert shown.index("api") < shown.index("web"), "the oldest first"
    assert "Proceed? (y/n)" in shown
    assert pane.says("#{pane_title}") == "(2) synapsed"
    pane.press("y")
    pane.until("> web", gone=[UNREAD])
    pane.press("2")
    assert "Answered: y" in answer_of(daemon, first)
    assert "Answered: 2" in answer_of(daemon, second)
    pane.until("nobody needs you")
    pane.press("q")
    pane.until("shell$")
    assert pane.says("#{alternate_on} #{cursor_flag}") == "0 1"


def test_an_answer_that_is_taken_back_is_never_typed(daemon: Daemon, pane: Pane) -> None:
    task = asks(daemon, "api")
    pane.run("synapsectl", "inbox", "--hold", "600")
    pane.until("> api", gone=[UNREAD])
    pane.press("y")
    pane.until("u takes it back")
    pane.press("u")
    pane.until("y yes", gone=["u takes it back"])
    pane.press("n")
    pane.until("→ no")
    pane.press("q")
    assert "Answered: n" in answer_of(daemon, task)


def test_answers_that_are_held_are_given_on_leaving_and_dropped_at_a_signal(daemon: Daemon, pane: Pane) -> None:
    kept, given = asks(daemon, "api"), asks(daemon, "web")
    pane.run("synapsectl", "inbox", "--hold", "600")
    pane.until("> api", gone=[UNREAD])
    pane.press("y")
    pane.until("u takes it back")
    pane.press("C-c")
    pane.until("api was not answered: yes", "shell$")
    pane.type("clear; synapsectl inbox --hold 600\n")
    pane.until("> api", gone=[UNREAD])
    pane.press("j")
    pane.until("> web", gone=[UNREAD])
    pane.press("y")
    pane.press("q")
    assert "Answered: y" in answer_of(daemon, given)
    assert daemon.task(kept)["status"] == "input_required"


@pytest.mark.night
def test_what_is_answered_elsewhere_says_so_in_every_inbox(daemon: Daemon, pane: Pane) -> None:
    task = asks(daemon, "api")
    pane.run("synapsectl", "inbox")
    pane.until("> api", gone=[UNREAD])
    assert daemon.ctl("approve", task).code == 0
    pane.until("answered by a person", "nobody needs you")
    pane.press("y")
    pane.until("that is over")
    second = asks(daemon, "web", "ask 1/2/3")
    pane.until("> api", "web", "1 needs you")
    pane.press("Down")  # j may be a letter of the words that the y began, which are for nothing
    pane.until("> web", gone=["that is over", UNREAD])
    pane.press("3")
    assert "Answered: 3" in answer_of(daemon, second)


@real_one
def test_it_attaches_and_comes_back(daemon: Daemon, pane: Pane) -> None:
    task = asks(daemon, "api")
    pane.run("synapsectl", "inbox")
    pane.until("> api", gone=[UNREAD])
    pane.press("Enter")
    pane.until("dummy> ask y/n", gone=["needs you"])
    pane.type("y\n")
    assert "Answered: y" in answer_of(daemon, task)
    pane.press("C-]")
    pane.until("synapsed · ", "? help")
    pane.press("?")
    pane.until("take an answer back")
    pane.press("j")
    pane.press("q")
    pane.until("shell$")


@pytest.mark.night
@real_one
def test_it_goes_on_over_a_daemon_that_was_killed(daemon: Daemon, pane: Pane) -> None:
    task = asks(daemon, "api")
    pane.run("synapsectl", "inbox")
    pane.until("> api", gone=[UNREAD])
    daemon.kill9()
    pane.until("no daemon is running")
    daemon.start()
    pane.until("1 needs you", "> api")
    pane.resize(50, 12)
    pane.until("1 needs you", "Proceed?")
    pane.press("y")
    assert "Answered: y" in answer_of(daemon, task)


def test_words_are_typed_for_a_question_without_options(daemon: Daemon, pane: Pane) -> None:
    task = asks(daemon, "api", "ask password")
    pane.run("synapsectl", "inbox", "--hold", "600")
    pane.until("> api", gone=[UNREAD])
    pane.press("a")
    pane.type("hunter2q")
    shown = pane.until("••••••••")
    assert "hunter" not in shown
    pane.press("Enter")
    pane.until("→ (hidden)")
    pane.press("q")
    answer_of(daemon, task)
    assert "hunter2q" not in pane.screen


def test_no_and_why_over_other_sizes_and_ctrl_c(daemon: Daemon, pane: Pane) -> None:
    task = asks(daemon, "api")
    pane.run("synapsectl", "inbox")
    pane.until("> api", gone=[UNREAD])
    pane.press("b")
    pane.type("世界")
    pane.until("no, because: 世界")
    pane.resize(30, 8)
    pane.type(" y")
    pane.until("no, because: 世界 y", "Enter gives it")
    pane.press("C-c")
    pane.until("shell$")
    assert daemon.task(task)["status"] == "input_required"
    pane.resize(80, 24)
    pane.type("clear; synapsectl inbox --hold 600\n")
    pane.until("> api", gone=[UNREAD])
    pane.press("b")
    pane.type("echo 世界")
    pane.press("Enter")
    pane.until("→ no, because echo 世界")
    pane.press("q")
    assert "Answered: n" in answer_of(daemon, task)
    eventually(lambda: [one for one in daemon.get("/control/tasks").json if "世界" in str(one)], "the reason is a task")


def test_a_reason_is_not_sent_for_what_is_answered_elsewhere(daemon: Daemon, pane: Pane) -> None:
    task = asks(daemon, "api")
    pane.run("synapsectl", "inbox")
    pane.until("> api", gone=[UNREAD])
    pane.press("b")
    pane.type("not that")
    pane.until("no, because: not that")
    assert daemon.ctl("approve", task).code == 0
    pane.until("what you typed was not sent", gone=["no, because:"])
    assert "Answered: y" in answer_of(daemon, task)
    assert len(daemon.get("/control/tasks").json) == 1


def test_next_attaches_to_the_oldest(daemon: Daemon, pane: Pane) -> None:
    pane.run("synapsectl", "next")
    pane.until("nobody needs you")
    asks(daemon, "web")
    asks(daemon, "api")
    pane.run("synapsectl", "next")
    pane.until("dummy> ask y/n")
    pane.press("C-]")
    pane.until("detached from web")


@pytest.mark.night
@real_one
def test_hostile_words_are_shown_and_not_obeyed(daemon: Daemon, pane: Pane) -> None:
    daemon.start_agent(profile="generic", name="sh", args=["sh"], env={"PS1": "% "})
    task = daemon.send(r"printf '\033]0;owned\007\033[2J\342\200\256evil? (y/n) '; read x", "sh")
    daemon.task_in(task, "input_required")
    pane.run("synapsectl", "inbox")
    pane.until("> sh", "evil? (y/n)")
    assert "owned" not in pane.says("#{pane_title}")


@pytest.mark.parametrize("command", [("inbox",), ("list",), ("inbox", "--json")])
def test_a_pipe_gets_lines(daemon: Daemon, command: tuple[str, ...]) -> None:
    task = asks(daemon, "api")
    done = daemon.ctl(*command)
    assert done.code == 0
    assert "api" in done.out
    assert "\x1b" not in done.out
    if command == ("inbox",):
        (line,) = done.out.splitlines()
        assert line.split("\t")[:2] == ["api", "question"]
    assert daemon.ctl().code == 2, "bare, in a pipe, it is the usage"
    daemon.ctl("cancel", task)


def test_killed_with_its_terminal_it_leaves_nothing(daemon: Daemon, pane: Pane) -> None:
    task = asks(daemon, "api")
    pane.run("synapsectl", "inbox", "--hold", "600")
    pane.until("> api", gone=[UNREAD])
    pane.press("y")
    pane.until("u takes it back")
    pid = int(pane.says("#{pane_pid}"))
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    os.kill(int(child), signal.SIGKILL)
    pane.until("Killed")
    assert daemon.task(task)["status"] == "input_required"
