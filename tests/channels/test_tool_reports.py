"""Reports of tool calls, as the real programs were heard to make them."""

from typing import Any

import pytest

from synapsed.channels.tool_reports import tool_fact, tool_line
from synapsed.model.facts import ToolBegan, ToolOver
from synapsed.parts.hooks.channel import HookChannel
from synapsed.profiles.library import ProfileLibrary
from tests.channels.conftest import Launch

CLAUDE = {"tool_name": "Bash", "tool_input": {"command": "ls /x", "description": "d"}, "tool_use_id": "toolu_1"}
CODEX = {"tool_name": "Bash", "tool_input": {"command": "ls /x"}, "tool_use_id": "call_1", "turn_id": "t1"}
GEMINI = {"tool_name": "run_shell_command", "tool_input": {"command": "ls /x", "description": "d"}}


def opencode(**state: Any) -> dict[str, Any]:
    given = {"input": {"command": "ls /x"}, **state}
    return {"part": {"type": "tool", "tool": "bash", "callID": "call_1", "state": given}}


RUNS = opencode(status="running", time={"start": 1_000})
REJECTED = "The user rejected permission to use this specific tool call with the following feedback: no"

type Reported = tuple[str, str, str, dict[str, Any]]

STARTS: list[Reported] = [
    ("claude", "hooks", "PreToolUse", CLAUDE),
    ("codex", "hooks", "PreToolUse", CODEX),
    ("gemini", "hooks", "BeforeTool", GEMINI),
    ("opencode", "server", "message.part.updated", RUNS),
]


def fact_of(library: ProfileLibrary, reported: Reported) -> Any:
    cli, name, event, payload = reported
    line = tool_line(library.get(cli).channels[name].tools, event, payload)
    return line and tool_fact(line, payload, channel=name, at_ns=5, session=None, turn=None)


@pytest.mark.parametrize("reported", STARTS, ids=lambda reported: reported[0])
def test_a_start(library: ProfileLibrary, reported: Reported) -> None:
    fact = fact_of(library, reported)
    assert isinstance(fact, ToolBegan)
    assert fact.tool in ("Bash", "run_shell_command", "bash")
    assert fact.input["command"] == "ls /x"
    assert fact.call == {"claude": "toolu_1", "gemini": None}.get(reported[0], "call_1")


@pytest.mark.parametrize(
    ("reported", "output", "error", "denied", "duration"),
    [
        pytest.param(
            ("claude", "hooks", "PostToolUse", {**CLAUDE, "tool_response": {"stdout": "x"}, "duration_ms": 849}),
            {"stdout": "x"},
            None,
            False,
            849,
            id="claude",
        ),
        pytest.param(
            ("claude", "hooks", "PostToolUseFailure", {**CLAUDE, "error": "Exit code 2\nls: no", "duration_ms": 6.5}),
            None,
            "Exit code 2\nls: no",
            False,
            6,
            id="claude fails",
        ),
        pytest.param(
            ("codex", "hooks", "PostToolUse", {**CODEX, "tool_response": "x\n"}),
            {"text": "x\n"},
            None,
            False,
            None,
            id="codex",
        ),
        pytest.param(
            ("gemini", "hooks", "AfterTool", {**GEMINI, "tool_response": {"llmContent": "x", "returnDisplay": [[]]}}),
            {"text": "x"},
            None,
            False,
            None,
            id="gemini",
        ),
        pytest.param(
            ("gemini", "hooks", "AfterTool", {**GEMINI, "tool_response": {"error": {"message": "no such file"}}}),
            None,
            "no such file",
            False,
            None,
            id="gemini fails",
        ),
        pytest.param(
            ("opencode", "server", "message.part.updated", opencode(status="completed", output="x")),
            {"text": "x"},
            None,
            False,
            None,
            id="opencode",
        ),
        pytest.param(
            ("opencode", "server", "message.part.updated", opencode(status="error", error=REJECTED)),
            None,
            REJECTED,
            True,
            None,
            id="opencode denied",
        ),
    ],
)
def test_an_end(
    library: ProfileLibrary,
    reported: Reported,
    output: dict[str, Any] | None,
    error: str | None,
    denied: bool,
    duration: int | None,
) -> None:
    fact = fact_of(library, reported)
    assert isinstance(fact, ToolOver)
    assert (fact.output, fact.error, fact.denied, fact.duration_ms) == (output, error, denied, duration)


def test_what_is_no_start_and_no_end(library: ProfileLibrary) -> None:
    assert fact_of(library, ("opencode", "server", "message.part.updated", opencode(status="pending"))) is None
    assert fact_of(library, ("opencode", "server", "message.part.updated", {"part": {"type": "text"}})) is None
    assert fact_of(library, ("claude", "hooks", "Stop", {})) is None


@pytest.mark.parametrize("payload", [{}, {"tool_name": 7, "tool_input": [1], "tool_response": 5, "duration_ms": "x"}])
def test_reports_that_are_not_as_expected(library: ProfileLibrary, payload: dict[str, Any]) -> None:
    assert fact_of(library, ("claude", "hooks", "PreToolUse", payload)).input == {}
    fact = fact_of(library, ("claude", "hooks", "PostToolUse", payload))
    assert (fact.tool, fact.call, fact.duration_ms) == ("", None, None)


async def test_hooks_tell_in_their_order(launch: Launch) -> None:
    channel = HookChannel(name="hooks", channel=launch.profile.channels["hooks"], context=launch.context)
    await channel.open(launch.facts.append)
    launch.report("UserPromptSubmit", {"prompt": "hello", "prompt_id": "p1"})
    began = launch.report("PreToolUse", {**CLAUDE, "prompt_id": "p1"})
    over = launch.report("PostToolUse", {**CLAUDE, "prompt_id": "p1", "tool_response": {"stdout": "x"}})
    await channel.poll()
    told = [fact for fact in launch.facts if isinstance(fact, ToolBegan | ToolOver)]
    assert [(type(fact), fact.at_ns, fact.turn, fact.call) for fact in told] == [
        (ToolBegan, began, "p1", "toolu_1"),
        (ToolOver, over, "p1", "toolu_1"),
    ]
    await channel.close()
