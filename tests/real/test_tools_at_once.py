"""Tools that one answer of the model calls together, and tools that are stopped, as `toolExecution` tells of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.real.agents import EVERY, MAIN, STARTS_S, RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.real.script import expected_answer
from tests.real.test_approvals import TOOLS
from tests.real.test_tool_calls import calls
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

type Allowed = Callable[[str], RealAgent]


@pytest.fixture
def allowed(request: pytest.FixtureRequest, private_dir: Path, model: Model, cli_home: CliHome) -> Allowed:
    """`allowed("claude")`: the program, which may echo and sleep without asking, and touch nothing that is denied."""

    def start(cli: str) -> RealAgent:
        tool = TOOLS[cli]
        allow = [f"{tool}({wanted})" for wanted in ("echo *", "sleep *; echo *", "echo *; sleep *")]
        rules = {"allow": allow, "deny": [f"{tool}(touch denied-*)"]}
        daemon = Daemon(private_dir / "synapsed")
        request.addfinalizer(daemon.end)
        return RealAgent.configured(cli, daemon, model, cli_home(cli), {"approval": rules})

    return start


def answer(agent: RealAgent, message: str) -> str:
    """Waits for the task's end: what a rule allows may be asked for a moment."""
    task = agent.daemon.ended(agent.send(message))
    assert task["status"] == "completed", f"{task}\n{agent.screen()}"
    return str(task["artifacts"][-1]["parts"][0]["text"])


def pairs(events: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """What is told of each command, which has one call's id."""
    told: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        told.setdefault(event["data"]["input"]["command"], []).append(event["data"])
    for one in told.values():
        assert len({data["call_id"] for data in one}) == 1, events
    assert len({data[0]["call_id"] for data in told.values()}) == len(told), events
    return told


@pytest.mark.parametrize("cli", EVERY)
def test_two_at_once_are_told_apart(cli: str, allowed: Allowed) -> None:
    """Each start has its own end, with its own output; also where the later one ends first."""
    agent, word = allowed(cli), nonce()
    slow, quick = f"sleep 2; echo first-{word}", f"echo second-{word}"
    asked = f"{word} [[at-once]] [[tool:shell:{slow}]] [[tool:shell:{quick}]] say: Both."
    assert answer(agent, asked) == "Both."
    assert [request.reply for request in agent.model.turns(word)] == ["tool", "text"], "one request had both"
    told = pairs(calls(agent, 4))
    assert set(told) == {slow, quick}
    for command, own, others in ((slow, "first", "second"), (quick, "second", "first")):
        started, completed = told[command]
        assert (started["status"], completed["status"]) == ("started", "completed"), told
        output = json.dumps(completed["output"])
        assert f"{own}-{word}" in output, told
        assert f"{others}-{word}" not in output, told
        assert completed["duration_ms"] is not None, told
    assert told[slow][1]["duration_ms"] >= 2000, told


@pytest.mark.parametrize("cli", MAIN)
def test_of_two_at_once_one_is_denied(cli: str, allowed: Allowed) -> None:
    """Not on opencode, which refuses both when one of two is denied: see below."""
    agent, word = allowed(cli), nonce()
    refused, kept = f"touch denied-{word}", f"echo kept-{word}"
    asked = f"{word} [[at-once]] [[tool:shell-ask:{refused}]] [[tool:shell:{kept}]] say: One."
    assert answer(agent, asked) == "One."
    told = pairs(calls(agent, 4))
    assert [(data["status"], data["denied"]) for data in told[refused]] == [("started", False), ("failed", True)], told
    assert [data["status"] for data in told[kept]] == ["started", "completed"], told
    assert "denied by the rule" in told[refused][1]["error"]
    assert f"kept-{word}" in json.dumps(told[kept][1]["output"])


def test_a_denial_that_stops_two_at_once_is_told_to_the_model(allowed: Allowed) -> None:
    """opencode refuses the other one, too, which a rule allows, and stops there; its turn goes on."""
    agent, word = allowed("opencode"), nonce()
    refused, kept = f"touch denied-{word}", f"echo kept-{word}"
    asked = f"{word} [[at-once]] [[tool:shell-ask:{refused}]] [[tool:shell-ask:{kept}]] say: One."
    task = agent.daemon.task_in(agent.send(asked), "completed", "failed", "canceled", patience=STARTS_S)
    assert (task["status"], task["error"]) == ("completed", None), f"{task}\n{agent.screen()}"
    told = pairs(calls(agent, 4))
    assert [(data["status"], data["denied"]) for data in told[refused]] == [("started", False), ("failed", True)], told
    assert "denied by the rule" in told[refused][1]["error"]
    assert [data["status"] for data in told[kept]] == ["started", "failed"], told
    note = agent.model.requests()[-1].user
    assert "was denied: do not do it" in note, note
    assert [part["text"] for part in task["artifacts"][-1]["parts"]] == [expected_answer(note)]
    assert not agent.file(f"denied-{word}").exists()
    follows = nonce()
    assert answer(agent, f"{follows} [[tool:shell-ask:echo kept-{follows}]] say: Done.") == "Done."


def told_by_now(agent: RealAgent) -> list[dict[str, Any]]:
    told = agent.daemon.ctl("events", "--json", "--after", "0", "--types", "toolExecution")
    return [json.loads(line) for line in told.out.splitlines()]


def sleeping(seconds: str) -> list[psutil.Process]:
    return [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", seconds]]


@pytest.mark.parametrize("cli", EVERY)
def test_a_tool_that_is_stopped_has_failed(cli: str, allowed: Allowed) -> None:
    """Also where another one was to follow; the next turn's tools are told as ever."""
    agent, word = allowed(cli), nonce()
    seconds = f"900.{int(word[-6:], 16)}"
    stays = f"echo {word}; sleep {seconds}"
    task = agent.send(f"{word} [[at-once]] [[tool:shell:{stays}]] [[tool:shell:echo {word}]] say: Never.")
    eventually(lambda: sleeping(seconds), "its tool runs", patience=150.0)
    assert calls(agent, 1)[0]["data"]["status"] == "started"
    stopped = agent.daemon.ctl("cancel", agent.name)
    assert stopped.code == 0, stopped.err
    assert agent.daemon.ended(task)["status"] == "canceled"
    follows = nonce()
    assert answer(agent, f"{follows} [[tool:shell:echo {follows}]] say: Done.") == "Done."
    told = eventually(
        lambda: (now := pairs(told_by_now(agent))) and len(now.get(f"echo {follows}", [])) == 2 and now,
        "the next turn's call is told",
    )
    started, failed = told[stays]
    assert (started["status"], failed["status"], failed["denied"]) == ("started", "failed", False), told
    assert failed["error"], told
    assert [data["status"] for data in told.pop(f"echo {follows}")] == ["started", "completed"], told
    for data in told.values():  # the other one may have been begun
        assert [one["status"] for one in data] in (["started", "failed"], ["started", "completed"]), told
