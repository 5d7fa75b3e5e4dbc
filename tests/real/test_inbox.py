"""The inbox on real programs: the very command that is asked about, as the program itself tells it; gone once it is
answered."""

from typing import Any

import pytest

from tests.real.agents import RealAgent, StartAgent, nonce
from tests.support.daemon import eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


def inbox(agent: RealAgent) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = agent.daemon.request("GET", "/inbox").json
    return [item for item in items if item["agent"] == agent.name]


@pytest.mark.parametrize("cli", ["claude", "codex"])
@pytest.mark.parametrize("answer", ["approve", "deny"])
def test_the_very_command_until_it_is_answered(cli: str, answer: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    word = nonce()
    command = f"touch {word}"
    task = agent.send(f"{word} [[tool:shell-ask:{command}]] say: Told.")
    (item,) = eventually(lambda: [item for item in inbox(agent) if item["command"]], "it is in the inbox")
    assert (item["kind"], item["command"], item["task"]) == ("permission", command, task), item
    assert command in item["question"]
    assert item["options"]
    assert agent.daemon.ctl(answer, agent.name).code == 0
    eventually(lambda: all(other["id"] != item["id"] for other in inbox(agent)), "it is gone")
    agent.daemon.ended(task)
    assert agent.file(word).exists() is (answer == "approve")
