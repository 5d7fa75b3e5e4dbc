"""What a line means that was typed as an answer: pure. And the questions of a task, asked where it is waited for."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from synapsectl import questions
from synapsectl.errors import ApiError
from synapsectl.questions import hint, meant
from synapsed.errors import PromptChanged
from synapsed.model.task import Artifact, Prompt, Task, TaskState
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon, agent, permission
from tests.synapsectl.pty_tool import PtyTool


def prompt(*options: tuple[str, str], kind: str = "permission", **changes: Any) -> dict[str, Any]:
    return {"type": kind, "options": [{"key": key, "label": label} for key, label in options], **changes}


YES_NO = prompt(("y", "Yes"), ("n", "No"))
THREE = prompt(("1", "Yes"), ("2", "Yes, and don't ask again"), ("3", "No"))
COLOURS = prompt(("1", "Red"), ("2", "Blue"), kind="question", own_words=True)
BARE = prompt(kind="confirmation")
WORDS = prompt(kind="text")
CASES = prompt(("a", "This file"), ("A", "All files"), ("d", "Neither"), kind="question")


@pytest.mark.parametrize(
    ("asked", "told"),
    [(YES_NO, "[y/N]"), (BARE, "[y/N]"), (THREE, "[1/2/3, y, n]"), (COLOURS, "[1/2, words]"), (WORDS, "[words]")],
)
def test_what_can_be_typed(asked: dict[str, Any], told: str) -> None:
    assert hint(asked) == told


@pytest.mark.parametrize(
    ("asked", "typed", "answer"),
    [
        (YES_NO, "y", "y"), (YES_NO, "YES", "y"), (YES_NO, "", "n"), (YES_NO, "n", "n"), (YES_NO, "what", None),
        (BARE, "", "n"), (BARE, "y", "y"),
        (THREE, "2", "2"), (THREE, "y", "1"), (THREE, "no", "3"), (THREE, "", None), (THREE, "4", None),
        (COLOURS, "1", "1"), (COLOURS, "teal, please", "teal, please"), (COLOURS, "", None),
        (CASES, "a", "a"), (CASES, "A", "A"), (CASES, "D", "d"),
        (WORDS, "Ann", "Ann"), (WORDS, "  ", None), (WORDS, "y", "y"),
    ],
)  # fmt: skip
def test_what_a_line_means(asked: dict[str, Any], typed: str, answer: str | None) -> None:
    assert meant(asked, typed).answer == answer


def test_a_refusal_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command tells it, when it ends by it."""

    def refuse(*_: object) -> None:
        raise ApiError("KEEPER_LOST", "it does not answer")

    notes: list[str] = []
    asks = SimpleNamespace(prompt={**YES_NO, "prompt_id": "p1"})
    for name, stand_in in {"_who": lambda *_: asks, "_read": lambda *_: "y", "show_prompt": print}.items():
        monkeypatch.setattr(questions, name, stand_in)
    monkeypatch.setattr(questions, "answer", refuse)
    ctx: Any = SimpleNamespace(out=SimpleNamespace(note=notes.append), client=None)
    with pytest.raises(ApiError):
        questions.ask(ctx, "claude", {"id": "t1"})
    assert notes == ["claude asks:"]


# --- at a terminal ---


@pytest.fixture
def asking(daemon: FakeDaemon) -> FakeDaemon:
    def run(fake: FakeDaemon, task: Task) -> None:
        fake.advance(task, TaskState.WORKING)
        fake.advance(task, TaskState.INPUT_REQUIRED, prompt=permission())

    def on_answer(fake: FakeDaemon, task: Task) -> None:
        fake.advance(task, TaskState.WORKING, prompt=None)
        fake.artifact(task, Artifact.answer("done it"))
        fake.advance(task, TaskState.COMPLETED, exact=True)

    daemon.script, daemon.on_answer = run, on_answer
    return daemon


@pytest.fixture
def send(home: Path) -> Iterator[Any]:
    tools: list[PtyTool] = []

    def start(*arguments: str) -> PtyTool:
        tools.append(PtyTool("send", "claude", "x", *arguments, env={**os.environ, "TERM": "xterm"}))
        return tools[-1]

    yield start
    for tool in tools:
        tool.close()


def posted(daemon: FakeDaemon) -> list[Any]:
    return [body for method, path, body in daemon.requests if method == "POST" and path.endswith("/input")]


@pytest.mark.parametrize("option", ["--wait", "--follow"])
def test_the_question_is_asked_there_and_it_goes_on(asking: FakeDaemon, send: Any, option: str) -> None:
    tool = send(option)
    tool.until(b"[1/2/3, y, n] ")
    tool.type(b"maybe\r")
    tool.when(lambda shown: shown.count(b"[1/2/3, y, n] ") == 2)  # what is typed before the sign is dropped
    tool.type(b"y\r")
    assert tool.end() == 0
    assert b"Ctrl-D leaves it as it is" in tool.shown
    assert b"Do you want to proceed?" in tool.shown
    assert tool.shown.rstrip().endswith(b"done it")
    assert posted(asking) == [{"input": "1", "prompt_id": "p1"}]


def test_what_was_typed_before_the_question_is_no_answer(working: FakeDaemon, send: Any) -> None:
    tool = send("--wait")
    tool.until(b"claude: working ")
    tool.type(b"y\r")
    tool.until(b"y\r\n")  # echoed: it waits to be read
    (task,) = working.tasks.values()
    working.on_answer = lambda fake, task: fake.advance(task, TaskState.COMPLETED, exact=True, prompt=None)
    working.advance(task, TaskState.INPUT_REQUIRED, prompt=permission())
    tool.until(b"[1/2/3, y, n] ")
    tool.type(b"n\r")
    assert tool.end() == 0
    assert posted(working) == [{"input": "3", "prompt_id": "p1"}]


def test_a_task_that_was_sent_before_is_asked_about_too(asking: FakeDaemon, ctl: Ctl, home: Path) -> None:
    task = ctl("send", "claude", "x").out.strip()
    tool = PtyTool("task", task, "--wait", env={**os.environ, "TERM": "xterm"})
    try:
        tool.until(b"[1/2/3, y, n] ")
        tool.type(b"y\r")
        assert tool.end() == 0
        assert tool.shown.rstrip().endswith(b"done it")
    finally:
        tool.close()


def test_a_daemon_that_restarts_meanwhile_is_asked_again(asking: FakeDaemon, send: Any) -> None:
    tool = send("--wait")
    tool.until(b"[1/2/3, y, n] ")
    asking.die()
    tool.until(b"no daemon is running")
    asking.start()
    tool.when(lambda shown: shown.count(b"[1/2/3, y, n] ") == 2)
    tool.type(b"y\r")
    assert tool.end() == 0
    assert posted(asking) == [{"input": "1", "prompt_id": "p1"}]


def test_ctrl_c_at_the_question_and_enter_ask_it_again(asking: FakeDaemon, send: Any) -> None:
    tool = send("--wait")
    tool.until(b"[1/2/3, y, n] ")
    tool.type(b"\x03")
    tool.until(b"go on: ")
    tool.type(b"\r")
    daemon_asks = b"[1/2/3, y, n] "
    tool.when(lambda shown: shown.count(daemon_asks) == 2)
    tool.type(b"y\r")
    assert tool.end() == 0
    assert posted(asking) == [{"input": "1", "prompt_id": "p1"}]


def test_the_time_limit_counts_while_it_is_asked(asking: FakeDaemon, send: Any) -> None:
    tool = send("--wait", "--timeout", "3")
    assert tool.end() == 5
    assert b"[1/2/3, y, n] " in tool.shown
    assert b"the question was not answered" in tool.shown
    assert posted(asking) == []


def test_ctrl_d_leaves_the_question_as_it_is(asking: FakeDaemon, send: Any) -> None:
    tool = send("--wait")
    tool.until(b"[1/2/3, y, n] ")
    tool.type(b"\x04")
    assert tool.end() == 7
    assert b"answer with: synapsectl input" in tool.shown
    assert posted(asking) == []


def test_a_question_that_is_answered_elsewhere_is_said_to_be(asking: FakeDaemon, send: Any) -> None:
    tool = send("--wait")
    tool.until(b"[1/2/3, y, n] ")
    (task,) = asking.tasks.values()
    asking.on_answer(asking, task)
    assert tool.end() == 0
    assert b"it was answered elsewhere" in tool.shown
    assert posted(asking) == []


def test_an_answer_to_what_is_not_asked_any_more_is_not_typed(asking: FakeDaemon, send: Any) -> None:
    tool = send("--wait")
    tool.until(b"[1/2/3, y, n] ")
    (task,) = asking.tasks.values()
    asking.refuse("POST", f"/control/tasks/{task.id}/input", PromptChanged("another prompt is on the screen"))
    tool.type(b"y\r")
    tool.until(b"it was answered elsewhere")
    asking.errors.clear()
    tool.when(lambda shown: shown.count(b"[1/2/3, y, n] ") == 2)
    tool.type(b"n\r")
    assert tool.end() == 0


def test_a_question_before_the_task_has_begun(asking: FakeDaemon, send: Any) -> None:
    asking.script = lambda fake, task: None
    asking.agents["claude"] = agent("claude", port=8100, activity="waiting", prompt=permission())

    def on_answer(fake: FakeDaemon, task: Task) -> None:
        fake.agents["claude"] = agent("claude", port=8100)
        for waiting in list(fake.tasks.values()):
            fake.artifact(waiting, Artifact.answer("done it"))
            fake.advance(waiting, TaskState.COMPLETED, exact=True)

    asking.on_answer = on_answer
    tool = send("--wait")
    tool.until(b"[1/2/3, y, n] ")
    tool.type(b"1\r")
    assert tool.end() == 0
    assert posted(asking) == [{"input": "1", "prompt_id": "p1"}]


def test_what_only_its_terminal_can_answer_ends_the_waiting(asking: FakeDaemon, send: Any) -> None:
    screen = Prompt(prompt_id="s1", type="screen", prompt="The gate is closed.")
    asking.script = lambda fake, task: fake.advance(task, TaskState.INPUT_REQUIRED, prompt=screen)
    tool = send("--wait")
    assert tool.end() == 7
    assert b"attach answers it" in tool.shown


@pytest.fixture
def working(daemon: FakeDaemon) -> FakeDaemon:
    daemon.script = lambda fake, task: fake.advance(task, TaskState.WORKING)
    return daemon


def test_ctrl_c_asks_and_cancels(working: FakeDaemon, send: Any) -> None:
    tool = send("--follow")
    tool.until(b"claude: working ")
    tool.type(b"\x03")
    tool.until(b"[c] cancel the task, [s] stop watching, [Enter] go on: ")
    tool.type(b"c\r")
    assert tool.end() == 1
    assert b"canceled" in tool.shown


def test_ctrl_c_and_enter_go_on(working: FakeDaemon, send: Any) -> None:
    tool = send("--wait")
    tool.until(b"claude: working ")
    tool.type(b"\x03")
    tool.until(b"[c] cancel the task, [s] stop watching, [Enter] go on: ")
    tool.type(b"\r")
    (task,) = working.tasks.values()
    working.artifact(task, Artifact.answer("in the end"))
    working.advance(task, TaskState.COMPLETED, exact=True)
    assert tool.end() == 0
    assert tool.shown.rstrip().endswith(b"in the end")


@pytest.mark.parametrize("typed", [b"s\r", b"\x04", b"\x03"])
def test_ctrl_c_and_stop_leave_the_task(working: FakeDaemon, send: Any, typed: bytes) -> None:
    tool = send("--wait")
    tool.until(b"claude: working ")
    tool.type(b"\x03")
    tool.until(b"go on: ")
    tool.type(typed)
    assert tool.end() == 130
    tool.until(b"which goes on")
    assert not any(path.endswith("/cancel") for _, path, _ in working.requests)


def test_markdown_is_coloured_as_it_comes(daemon: FakeDaemon, send: Any) -> None:
    tool = send("--follow")
    assert tool.end() == 0
    assert b"the \x1b[1m**answer**\x1b[0m" in tool.shown
    assert b"\x1b[36mcode\x1b[0m" in tool.shown
