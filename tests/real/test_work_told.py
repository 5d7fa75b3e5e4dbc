"""What codex tells of its work beside its words: its plan, what it has changed, and its account's limits."""

import json
from typing import Any

import pytest

from tests.real.agents import RealAgent, StartAgent, nonce
from tests.support.daemon import eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

PATCH = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: {name}\n+one\n+two\n*** End Patch\nEOF"


def told(agent: RealAgent, kind: str) -> list[dict[str, Any]]:
    out = agent.daemon.ctl("events", "--json", "--after", "0", "--types", kind).out
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("cli", ["codex"])
def test_plan_diff_and_limits_are_events(cli: str, start_agent: StartAgent) -> None:
    """Of the task, in the order in which they came; a plan that changes is told again."""
    agent = start_agent(cli, "--", "-c", "tools.update_plan={enabled=true}")
    agent.allow_tools()
    states = ("in_progress", "completed")
    plans = [{"plan": [{"step": "look", "status": state}, {"step": "mend", "status": "pending"}]} for state in states]
    word, name = nonce(), f"made-{nonce()}"
    tools = "".join(f"[[tool:update_plan:{json.dumps(plan)}]]" for plan in plans)
    task = agent.send(f"{word} {tools} [[tool:shell:{PATCH.format(name=name)}]] [[used:37]]")
    done = agent.daemon.ended(task)
    assert (done["status"], agent.file(name).read_text()) == ("completed", "one\ntwo\n"), agent.screen()
    plan = eventually(lambda: (found := told(agent, "plan"))[1:] and found, "both plans are told")
    assert [[(s["text"], s["status"]) for s in event["data"]["steps"]] for event in plan] == [
        [("look", state), ("mend", "pending")] for state in states
    ]
    diff = eventually(lambda: told(agent, "diff"), "the change is told")
    assert name in diff[-1]["data"]["diff"]
    assert "+one\n+two" in diff[-1]["data"]["diff"]
    assert {event["task"] for event in (*plan, *diff)} == {task}
    (window,) = eventually(lambda: told(agent, "rateLimits"), "the limit is told")[-1]["data"]["windows"]
    assert (window["used_percent"], window["minutes"]) == (37.0, 300)
    assert window["resets_at"] is not None
