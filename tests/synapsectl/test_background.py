"""What ends in a program's background is told, and a person is asked."""

import os
from typing import Any

import pytest

from synapsed.model.task import TaskState
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon, agent, ends
from tests.synapsectl.pty_tool import PtyTool

TOLD = "synapsectl: claude: 2 in its background (Serve; Look at it)"


@pytest.fixture
def serving(daemon: FakeDaemon) -> FakeDaemon:
    """A daemon whose claude has two in its background, and whose codex has nothing there."""
    daemon.agents["claude"] = agent("claude", port=8100, background=2, background_tasks=["Serve", "Look at it"])
    return daemon


def posts(daemon: FakeDaemon) -> list[str]:
    return [path for method, path, _ in daemon.requests if method == "POST"]


@pytest.mark.parametrize(
    ("arguments", "done"), [(["stop"], "stopped"), (["restart"], "restarted"), (["kill"], "killed")]
)
@pytest.mark.parametrize("named", [["claude", "codex"], ["--all"]])
def test_what_ends_is_told(serving: FakeDaemon, ctl: Ctl, arguments: list[str], done: str, named: list[str]) -> None:
    result = ctl(*arguments, *named)
    assert (result.code, result.out) == (0, f"claude {done}\ncodex {done}\n")
    assert result.err == f"{TOLD} end with it\n"


def test_a_restart_that_waits_says_for_what(serving: FakeDaemon, ctl: Ctl) -> None:
    result = ctl("restart", "claude", "codex", "--when-idle")
    assert result.out == "claude is restarted when it is idle\ncodex is restarted when it is idle\n"
    assert result.err == (f"{TOLD} go on: it waits for that, and 'synapsectl cancel claude --background' ends it\n")


def test_a_new_conversation_says_what_ends(serving: FakeDaemon, ctl: Ctl) -> None:
    serving.script = ends(TaskState.COMPLETED)
    assert ctl("send", "claude", "x").err == ""
    result = ctl("send", "claude", "x", "--new-conversation")
    assert (result.code, result.err) == (0, f"{TOLD} end with it\n")


def test_an_answer_says_what_goes_on_beside_it(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.script = ends(TaskState.COMPLETED, metadata={"in_background": 1})
    told = ctl("send", "claude", "x", "--wait").err
    assert told == "synapsectl: claude runs 1 in its background: what comes of that is not in this answer\n"


@pytest.mark.parametrize(
    ("arguments", "question", "code", "posted"),
    [
        (["stop", "claude", "codex"], b"stop it? [y/N]", 0, ["/control/agents/codex/stop"]),
        (["kill", "claude"], b"kill it? [y/N]", 0, []),
        (["send", "claude", "x", "--new-conversation"], b"begin another conversation? [y/N]", 2, []),
    ],
    ids=["stop", "kill", "send"],
)
def test_a_person_may_spare_it(
    serving: FakeDaemon, arguments: list[str], question: bytes, code: int, posted: list[str]
) -> None:
    tool = PtyTool(*arguments, cols=200, env={**os.environ, "TERM": "xterm"})
    try:
        tool.until(question)
        tool.type(b"n\r")
        assert tool.end() == code
    finally:
        tool.close()
    assert posts(serving) == posted


def test_a_person_may_end_it(serving: FakeDaemon) -> None:
    tool: Any = PtyTool("stop", "claude", cols=200, env={**os.environ, "TERM": "xterm"})
    try:
        tool.until(b"[y/N]")
        tool.type(b"y\r")
        assert tool.end() == 0
    finally:
        tool.close()
    assert posts(serving) == ["/control/agents/claude/stop"]
