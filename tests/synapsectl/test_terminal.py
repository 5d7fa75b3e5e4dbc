"""What a person sees: every line in the terminal's width."""

import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from synapsectl.output import display_width
from synapsed.model.agent import Conversation
from tests.synapsectl.fake_daemon import WHEN, FakeDaemon, agent, permission
from tests.synapsectl.pty_tool import PtyTool

WIDE = "─" * 120
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
"""Colours, which take no columns."""


@pytest.fixture
def full(daemon: FakeDaemon) -> FakeDaemon:
    """As it is when much is going on."""
    told = Conversation(
        id="01a201b3-ae3d-77b2", context_id="c", said=True, resumed=True, note="goes on with 01a201b3-ae3d-77b2"
    )
    daemon.agents["claude"] = agent("claude", screen=f"{WIDE}\n日本語{WIDE}\n", conversation=told)
    common = {"profile": "dummy", "cwd": "/work/a/folder/of/a/project", "updated_at": "2026-01-01T00:00:00Z"}
    daemon.conversations = [
        common | {"id": f"01a201b3-ae3{digit}-77b2-9490-bfbb9ae43346", "prompt": "a long question " * 9, "agent": None}
        for digit in "de"
    ]
    return daemon


def seen(*arguments: str, cols: int = 80) -> list[str]:
    tool = PtyTool(*arguments, env=dict(os.environ), cols=cols)
    try:
        assert tool.end() == 0
    finally:
        tool.close()
    lines = [_STYLE.sub("", line) for line in tool.shown.decode().splitlines()]
    assert [line for line in lines if display_width(line) > 80] == []
    return lines


@pytest.mark.usefixtures("full")
def test_lines_fit() -> None:
    for arguments in (["-h"], ["list"], ["status"], ["tasks"], ["profiles", "list"], ["adopt"]):
        seen(*arguments)


@pytest.mark.usefixtures("full")
def test_a_narrow_terminal_has_what_is_asked_and_no_folders() -> None:
    wide, narrow = seen("list"), seen("list", cols=40)
    assert wide[0].split()[-1] == "FOLDER"
    assert narrow[0].split() == ["NAME", "STATE", "FOR", "WHAT"]
    assert [line for line in narrow if display_width(line) > 40] == []


@pytest.mark.usefixtures("full")
def test_where_the_answer_will_be_is_said_on_a_terminal() -> None:
    task, told = seen("send", "claude", "hello")
    assert told == f"synapsectl: 'synapsectl task {task[:8]} --wait' prints the answer"


@pytest.mark.usefixtures("full")
def test_a_wide_screen_is_cut() -> None:
    lines = seen("status", "claude")
    assert "  conversation  goes on with 01a201b3-ae3d-77b2" in lines
    assert [line[:5] for line in lines if line.startswith("  |")] == ["  | ─", "  | 日"]


@pytest.mark.usefixtures("full")
def test_as_much_of_an_id_as_tells_it_from_the_others() -> None:
    assert [line.split()[1] for line in seen("adopt")] == ["ID", "01a201b3-ae3d", "01a201b3-ae3e"]


def test_who_asks_about_a_command_is_listed_with_it(daemon: FakeDaemon) -> None:
    asks = "Bash command · Run a scripted command · rm -rf build · Do you want to proceed?"
    asked = (datetime.now(UTC) - timedelta(hours=3, minutes=20)).isoformat()
    for name, port in (("claude", 8100), ("codex", 8120)):
        daemon.agents[name] = agent(name, port=port, activity="waiting", asks=asks)
    daemon.inbox = [
        {"agent_id": daemon.agents["claude"].id, "command": "rm -rf build", "prompt_id": "p1", "since": asked},
        {"agent_id": daemon.agents["codex"].id, "command": None, "prompt_id": "p2", "since": asked},
        {"agent_id": daemon.agents["codex"].id, "command": None, "prompt_id": None, "since": WHEN},
    ]
    shown = seen("list")
    assert [line.split()[2] for line in shown[1:3]] == ["3h", "3h"], "as long as it has asked, over a new daemon too"
    assert "rm -rf build" in shown[1]
    assert "Bash command" not in shown[1]
    assert "Bash command" in shown[2]


def test_a_question_stands_below_the_screen(daemon: FakeDaemon) -> None:
    daemon.agents["claude"] = agent("claude", activity="waiting", prompt=permission(), screen="row\n" * 40)
    shown = seen("status", "claude")
    assert shown[-1] == "answer with: synapsectl input claude 1"
    assert max(n for n, line in enumerate(shown) if line.startswith("  | ")) < shown.index(
        "  asks          Do you want to proceed?"
    )


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_a_terminal_has_no_character_for_is_a_question_mark(daemon: FakeDaemon, encoding: str) -> None:
    """An answer was a traceback, and lost."""
    daemon.agents["claude"] = agent("claude", activity="waiting", asks="日本 → go on?", prompt=permission(), screen="─")
    env = {**os.environ, "PYTHONIOENCODING": encoding}
    for verb in (["list"], ["status", "claude"]):
        tool = PtyTool(*verb, env=env)
        try:
            assert (tool.end(), b"Traceback" in tool.shown) == (0, False), tool.shown
        finally:
            tool.close()
    assert b"?" in tool.shown
    command = [sys.executable, "-m", "synapsectl", "screen", "claude"]
    piped = subprocess.run(command, env=env, capture_output=True, check=True)
    assert piped.stdout.decode("utf-8") == "─\n"
