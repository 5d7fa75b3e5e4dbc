"""Approval policies on the real programs: what is allowed runs without a dialog, what is denied the model is told."""

import itertools
from pathlib import Path

import pytest

from tests.real.agents import EVERY, RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.support.daemon import Daemon

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

TOOLS = {"claude": "Bash", "codex": "Bash", "gemini": "run_shell_command", "opencode": "bash"}
"""How each calls its shell."""


def decisions(agent: RealAgent, count: int) -> list[tuple[str, str | None]]:
    with agent.daemon.sse("/events", last_id=0) as events:
        told = (event["data"]["data"] for event in events)
        found = (data for data in told if data["type"] == "permissionDecided")
        return [(data["verdict"], data["rule"]) for data in itertools.islice(found, count)]


@pytest.mark.parametrize("cli", EVERY)
def test_rules_decide_without_a_person(cli: str, private_dir: Path, model: Model, cli_home: CliHome) -> None:
    tool, prepared = TOOLS[cli], cli_home(cli)
    allowed, denied, compound = nonce(), nonce(), nonce()
    allow, deny = f"{tool}(touch allowed-*)", f"{tool}(touch denied-*)"
    daemon = Daemon(private_dir / "synapsed")
    agent = RealAgent.configured(cli, daemon, model, prepared, {"approval": {"allow": [allow], "deny": [deny]}})
    try:
        done = agent.ask(f"{allowed} [[tool:shell-ask:touch allowed-{allowed}]] say: Made.")
        assert (done.code, done.out) == (0, "Made.\n"), f"{done.err}\n{agent.screen()}"
        assert agent.file(f"allowed-{allowed}").exists()

        before = len(model.requests())
        done = agent.ask(f"{denied} [[tool:shell-ask:touch denied-{denied}]] say: Not made.")
        assert (done.code, done.out) == (0, "Not made.\n"), f"{done.err}\n{agent.screen()}"
        assert not agent.file(f"denied-{denied}").exists()
        told = "\n".join(result.text for request in model.requests()[before:] for result in request.results)
        assert f"denied by the rule {deny}" in told

        asked = agent.ask(f"{compound} [[tool:shell-ask:touch allowed-{compound}; touch {compound}]] say: Both.")
        assert asked.code == 7, f"{asked.out}{asked.err}\n{agent.screen()}"
        assert not agent.file(compound).exists()
        assert agent.daemon.ctl("input", agent.name, "yes").code == 0
        task = agent.tasks()[0]
        assert agent.daemon.task_in(task["id"], "completed", "failed", "canceled")["status"] == "completed"
        assert agent.file(compound).exists()
        assert decisions(agent, 3) == [("allow", allow), ("deny", deny), ("escalate", None)]
    finally:
        daemon.end()
