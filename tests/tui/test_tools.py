"""Tool calls that only the screen tells: each once, over frames, scrolling, an interrupt and a kill of the daemon."""

import json
from pathlib import Path
from typing import Any

import pytest

from synapsed.profiles.profile import Profile
from synapsed.pty.tool_screen import ToolScreen
from tests.support.daemon import eventually
from tests.synapsectl.pty_tool import PtyTool
from tests.tui.conftest import Tui


class Watched(Tui):
    """The program, and what was told of its calls."""

    since = 0

    def calls(self) -> list[dict[str, Any]]:
        told = self.daemon.ctl("events", "--json", "--after", str(self.since))
        assert told.code == 0, told.err
        events = [json.loads(line) for line in told.out.splitlines()]
        self.newest = events[-1]["id"]
        return [event for event in events if event["event"] == "toolExecution"]


@pytest.fixture
def tools(tui: Tui) -> Watched:
    watched = Watched(tui.daemon, tui.name, tui._log)
    watched.start("scripted-tools").ready()
    watched.calls()
    watched.since = watched.newest
    return watched


def told(tui: Watched) -> list[str]:
    return [f"{event['data']['status']} {event['data']['input']['command']}" for event in tui.calls()]


def both(*commands: str, end: str = "completed") -> list[str]:
    return [f"{status} {command}" for command in commands for status in ("started", end)]


@pytest.mark.night
def test_a_call_is_told_with_its_task_its_end_and_how_it_is_known(tools: Watched) -> None:
    task = tools.send("tools=make,-rm")
    assert tools.answer(tools.ended(task)) == "You said: tools=make,-rm"
    assert told(tools) == [*both("make"), *both("rm", end="failed")]
    started, completed, _, failed = tools.calls()
    assert {event["task"] for event in tools.calls()} == {task}
    assert started["data"]["call_id"] == completed["data"]["call_id"] != failed["data"]["call_id"]
    assert completed["data"]["duration_ms"] > 0
    assert failed["data"]["error"] == "its screen shows that it failed"
    assert {(e["data"]["tool_name"], e["data"]["exact"], e["data"]["source"]) for e in tools.calls()} == {
        ("run", False, "screen")
    }


@pytest.mark.night
def test_the_same_commands_on_a_screen_that_scrolls_and_in_the_next_turn(tools: Watched) -> None:
    """Words push each call off the screen; what is quick is seen only when it is over."""
    commands = ["ls", "pwd", "ls", "+df", "ls"]
    tools.ask(f"first tools={','.join(commands)} between=12")
    tools.ask("second tools=ls,+df")
    assert told(tools) == both("ls", "pwd", "ls", "df", "ls", "ls", "df")


@pytest.mark.night
def test_a_screen_that_is_drawn_again_in_another_size_tells_nothing_twice(tools: Watched, tmp_path: Path) -> None:
    gate = tmp_path / "go-on"
    task = tools.send(f"tools=ls,pwd,{gate},df")
    eventually(lambda: f"started {gate}" in told(tools), "the third runs")
    person = PtyTool("attach", tools.name, env=tools.daemon.env, rows=20, cols=60)
    person.until(b"go-on")
    person.close()
    tools.becomes(activity="busy")
    gate.touch()
    tools.ended(task)
    assert told(tools) == both("ls", "pwd", str(gate), "df")


@pytest.mark.night
@pytest.mark.slow
def test_a_daemon_that_is_killed_tells_the_rest_and_nothing_twice(tools: Watched, tmp_path: Path) -> None:
    gates = [tmp_path / "one", tmp_path / "two"]
    task = tools.send(f"tools=ls,{gates[0]},ls,{gates[1]},ls between=9")
    for gate in gates:
        eventually(lambda gate=gate: f"started {gate}" in told(tools), "it runs")  # type: ignore[misc]
        tools.daemon.kill9()
        gate.touch()  # it ends while nobody looks
        tools.daemon.start()
    assert tools.ended(task)["status"] == "completed"
    assert told(tools) == both("ls", str(gates[0]), "ls", str(gates[1]), "ls")
    assert len({event["data"]["call_id"] for event in tools.calls()}) == 5


@pytest.mark.night
def test_a_tool_that_is_stopped_has_failed_and_the_next_turn_s_is_told(tools: Watched, tmp_path: Path) -> None:
    task = tools.send(f"tools=ls,{tmp_path}/never")
    eventually(lambda: f"started {tmp_path}/never" in told(tools), "it runs")
    assert tools.daemon.post(f"/control/tasks/{task}/cancel", {}).status == 200
    assert tools.ended(task)["status"] == "canceled"
    tools.ask("tools=pwd")
    assert told(tools) == [*both("ls"), *both(f"{tmp_path}/never", end="failed"), *both("pwd")]
    stopped = tools.calls()[3]
    assert (stopped["data"]["error"], stopped["data"]["denied"]) == ("the turn was interrupted", False)


@pytest.mark.night
def test_a_call_whose_end_is_never_shown_ends_with_its_turn(tools: Watched) -> None:
    tools.ask("tools=ls,?make")
    assert told(tools) == [*both("ls"), *both("make", end="failed")]
    assert tools.calls()[-1]["data"]["error"] == "the turn ended, and its screen showed no end"


def test_a_program_whose_channel_tells_its_calls_is_not_read() -> None:
    """Each would be told twice."""
    shown = {"completed": ["^✓ (?P<tool>.+)$"]}
    hooks = {"adapter": "hooks", "tools": [{"on": "AfterTool", "status": "completed"}]}
    for channels, reads in (({}, True), ({"hooks": {"adapter": "hooks"}}, True), ({"hooks": hooks}, False)):
        profile = Profile.model_validate({"name": "p", "command": "p", "tools": shown, "channels": channels})
        assert ToolScreen(profile, lambda _told: None).reads is reads, channels
