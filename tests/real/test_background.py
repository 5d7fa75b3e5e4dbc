"""Programs that go on in the background: messages go when a person's would, and what runs is told."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.real import versions
from tests.real.agents import RealAgent, StartAgent, nonce
from tests.real.model import Model
from tests.real.programs import Prepared
from tests.real.versions import Version
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

type CliHome = Callable[[str], Prepared]

TURNS = 20
CLOCK = {"statusLine": {"type": "command", "command": "date +'%H:%M:%S %N'", "refreshInterval": 1}}
"""A person's status line that moves each second."""


def shell(command: str) -> str:
    """Has claude's model run that in the background."""
    return _call("Bash", {"command": command, "description": f"Run {command}", "run_in_background": True})


def subagent(prompt: str) -> str:
    """Has claude's model begin a subagent, which it leaves in the background."""
    given = {"description": f"Do {nonce()}", "prompt": prompt, "subagent_type": "general-purpose"}
    return _call("Agent", {**given, "run_in_background": True})


def _call(tool: str, given: dict[str, object]) -> str:
    told = json.dumps(given).replace("[[", r"\u005b\u005b").replace("]]", r"\u005d\u005d")
    return f"[[tool:{tool}:{told}]]"


@pytest.fixture
def start_claude(daemon: Daemon, model: Model, cli_home: CliHome, private_dir: Path) -> Callable[..., RealAgent]:
    """Starts claude, which may run commands unasked; with a clock in its status line, or of an older version."""

    def start(*, clock: bool = False, version: Version | None = None) -> RealAgent:
        prepared = cli_home("claude")
        if version is not None:
            base = private_dir / "older"
            prepared = versions.prepare(version, base / "home", base / "project", model.url)
        settings = prepared.home / ".claude" / "settings.json"
        settings.parent.mkdir(mode=0o700, exist_ok=True)
        settings.write_text(json.dumps({"permissions": {"allow": ["Bash"]}, **(CLOCK if clock else {})}))
        return RealAgent.start("claude", daemon, model, prepared)

    return start


@pytest.mark.parametrize("clock", [False, True], ids=["still", "clock"])
@pytest.mark.parametrize("kind", ["shell", "subagent"])
def test_messages_go_while_something_runs_in_the_background(
    kind: str, clock: bool, start_claude: Callable[..., RealAgent]
) -> None:
    agent, held = start_claude(clock=clock), nonce()
    runs = shell("sleep 600") if kind == "shell" else subagent(f"[[hold:{held}]] say: It is done.")
    agent.ask_exactly(f"{nonce()} {runs} say: I have launched it.")
    for number in range(TURNS):
        word = nonce()
        answer = agent.daemon.ctl("send", agent.name, "--wait", "--", f"{word} say: Answer {number}.")
        assert (answer.code, answer.out) == (0, f"Answer {number}.\n"), (answer, agent.screen())
        assert agent.model.submissions(word) == 1
    agent.model.release(held)


@pytest.mark.parametrize("version", versions.of("claude"), ids=str)
def test_messages_go_while_a_subagent_of_an_older_version_runs(
    version: Version, start_claude: Callable[..., RealAgent]
) -> None:
    if reason := versions.missing(version):
        pytest.skip(reason)
    agent, held = start_claude(version=version), nonce()
    agent.ask_exactly(f"{nonce()} {subagent(f'[[hold:{held}]] say: It is done.')} say: I have launched it.")
    eventually(lambda: _in_background(agent, 1), "one runs in the background")
    for number in range(3):
        agent.ask_exactly(f"{nonce()} say: Answer {number}.")
    agent.model.release(held)
    eventually(lambda: _in_background(agent, 0), "nothing runs in the background")


def test_turns_stop_beside_a_subagent_and_what_it_ends_in_is_seen(start_claude: Callable[..., RealAgent]) -> None:
    agent, held, name = start_claude(), nonce(), "claude"
    daemon = agent.daemon
    launched = daemon.send(f"{nonce()} {subagent(f'[[hold:{held}]] say: It is done.')} say: I have launched it.", name)
    assert daemon.ended(launched)["metadata"]["in_background"] == 1
    view = eventually(lambda: _in_background(agent, 1), "one runs in the background")
    assert len(view["background_tasks"]) == 1
    assert daemon.ctl("park", name).code == 6, "it would end"

    running, waits = nonce(), nonce()
    task = agent.send(f"{running} [[hold:{running}]] say: Late.")
    agent.model.wait_for_turn(running)
    assert daemon.ctl("cancel", task).code == 0, agent.screen()
    agent.model.release(running)
    agent.ask_exactly(f"{nonce()} say: After it was canceled.")
    task = agent.send(f"{waits} [[hold:{waits}]] say: Late.")
    agent.model.wait_for_turn(waits)
    urgent = daemon.ctl("send", name, "--wait", "--priority", "5", "--", f"{nonce()} say: Urgent.")
    assert (urgent.code, urgent.out) == (0, "Urgent.\n"), (urgent, agent.screen())
    assert daemon.ended(task)["status"] == "canceled"
    agent.model.release(waits)

    with daemon.sse("/events?types=turnSeen") as events:
        agent.model.release(held)
        seen = next(iter(events))["data"]["data"]
    assert "<task-notification>" in seen["text"], seen
    eventually(lambda: _in_background(agent, 0), "nothing runs in the background")
    agent.ask_exactly(f"{nonce()} say: At the end.")


def _in_background(agent: RealAgent, count: int) -> dict[str, Any] | None:
    """The agent at rest, with so much in its background."""
    view = agent.daemon.agent(agent.name)
    return view if (view["activity"], view["background"]) == ("ready", count) else None


def test_what_runs_in_the_background_is_stopped(start_claude: Callable[..., RealAgent]) -> None:
    agent, held = start_claude(), nonce()
    begun = f"{shell('sleep 601')} {shell('sleep 602')} {subagent(f'[[hold:{held}]] say: It is done.')}"
    agent.ask_exactly(f"{nonce()} {begun} say: I have launched them.")
    eventually(lambda: _in_background(agent, 3), "three run in the background")
    stopped = agent.daemon.ctl("cancel", agent.name, "--background")
    assert stopped.code == 0, (stopped.err, agent.screen())
    eventually(lambda: _in_background(agent, 0), "nothing runs in the background")
    agent.model.release(held)
    agent.ask_exactly(f"{nonce()} say: Nothing runs any more.")


def test_a_terminal_in_the_background_of_codex_is_told_and_stopped(start_agent: StartAgent) -> None:
    agent = start_agent("codex")
    begun = _call("exec_command", {"cmd": "sleep 600", "yield_time_ms": 1000})
    agent.ask_exactly(f"{nonce()} {begun} say: It runs.")
    view = eventually(lambda: _in_background(agent, 1), "one runs in the background")
    assert view["background_tasks"] == ["background terminal"]
    for number in range(3):
        agent.ask_exactly(f"{nonce()} say: Answer {number}.")
    stopped = agent.daemon.ctl("cancel", agent.name, "--background")
    assert stopped.code == 0, (stopped.err, agent.screen())
    agent.ask_exactly(f"{nonce()} say: Nothing runs any more.")
