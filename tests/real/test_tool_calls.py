"""Tool calls of the real programs, as `toolExecution` tells of them."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from tests.real.agents import EVERY, RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.real.test_approvals import TOOLS
from tests.support.daemon import Daemon

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


def told(agent: RealAgent, kind: str, count: int) -> list[dict[str, Any]]:
    """The first so many events of that type."""
    with agent.daemon.sse(f"/events?types={kind}", last_id=0) as events:
        found = (event["data"] for event in events if event["event"] == kind)
        return list(itertools.islice(found, count))


def calls(agent: RealAgent, count: int) -> list[dict[str, Any]]:
    return told(agent, "toolExecution", count)


@pytest.mark.parametrize("cli", EVERY)
def test_a_call_is_told_with_its_command_output_and_end(
    cli: str, private_dir: Path, model: Model, cli_home: CliHome
) -> None:
    tool = TOOLS[cli]
    daemon = Daemon(private_dir / "synapsed")
    rules = {"allow": [f"{tool}(echo *)", f"{tool}(sleep *)"], "deny": [f"{tool}(touch denied-*)"]}
    agent = RealAgent.configured(cli, daemon, model, cli_home(cli), {"approval": rules})
    printed, denied, refused = nonce(), nonce(), nonce()
    try:
        done = agent.ask(f"{printed} [[tool:shell:echo {printed}]] say: Done.")
        assert done.code == 0, f"{done.err}\n{agent.screen()}"
        (used,) = told(agent, "usage", 1)
        assert used["data"]["input_tokens"] > 0, used
        assert used["data"]["output_tokens"] > 0, used
        assert used["task"] == agent.tasks()[0]["id"], used
        started, completed = calls(agent, 2)
        task = agent.tasks()[0]["id"]
        for event, status in ((started, "started"), (completed, "completed")):
            assert event["task"] == task, event
            assert (event["data"]["status"], event["data"]["tool_name"].casefold()) == (status, tool.casefold()), event
            assert event["data"]["input"]["command"] == f"echo {printed}", event
            assert event["data"]["exact"], event
        assert started["data"]["call_id"] == completed["data"]["call_id"]
        assert completed["data"]["duration_ms"] >= 0, completed
        assert printed in json.dumps(completed["data"]["output"])

        done = agent.ask(f"{denied} [[tool:shell-ask:touch denied-{denied}]] say: Not made.")
        assert done.code == 0, f"{done.err}\n{agent.screen()}"
        started, failed = calls(agent, 4)[2:]
        assert (started["data"]["status"], failed["data"]["status"], failed["data"]["denied"]) == (
            "started",
            "failed",
            True,
        ), failed
        assert started["data"]["call_id"] == failed["data"]["call_id"]
        assert "denied by the rule" in failed["data"]["error"], failed

        task = agent.send(f"{refused} [[tool:shell-ask:touch other-{refused}]] say: Told.")
        daemon.task_in(task, "input_required")
        assert daemon.ctl("deny", task).code == 0
        daemon.ended(task)
        started, failed = calls(agent, 6)[4:]
        assert (failed["data"]["status"], failed["data"]["denied"], failed["task"]) == ("failed", True, task), failed
        assert started["data"]["call_id"] == failed["data"]["call_id"]
    finally:
        daemon.end()
