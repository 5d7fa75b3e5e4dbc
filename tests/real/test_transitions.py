"""Work that passes between real programs, and back, as `agentTransition` tells of it."""

import json
from typing import Any

import pytest

from tests.real.agents import EVERY, StartAgent, nonce
from tests.real.test_mcp import call, tools_of
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]


def transitions(daemon: Daemon, count: int) -> list[dict[str, Any]]:
    """All that are told, once there are so many."""

    def now() -> list[dict[str, Any]]:
        told = daemon.ctl("events", "--json", "--after", "0", "--types", "agentTransition")
        return [json.loads(line) for line in told.out.splitlines()]

    return eventually(lambda: (told := now())[count - 1 :] and told, f"{count} are told", patience=120.0)


@pytest.mark.parametrize(("asker", "answerer"), list(zip(EVERY, [*EVERY[1:], EVERY[0]], strict=True)))
def test_a_question_and_its_reply_are_told(asker: str, answerer: str, start_agent: StartAgent) -> None:
    """From whom, to whom, why, and of which task; what a person sends passes from nobody."""
    one, other = start_agent(asker), start_agent(answerer)
    eventually(lambda: tools_of(one), "its model has the tools", patience=120)
    mine, yours = nonce(), nonce()
    done = one.ask(
        f"{mine} {call('send_message', to=other.name, message=f'What of {yours}?', response=True)} say: Asked."
    )
    assert (done.code, done.out) == (0, "Asked.\n"), f"{done.err}\n{one.screen()}"
    passed, back = transitions(one.daemon, 2)
    names = {agent.name: agent.daemon.agent(agent.name)["id"] for agent in (one, other)}
    (request,) = other.tasks()
    own = request["metadata"]["sender_task_id"]
    assert passed["data"] == {
        "from_agent": names[one.name],
        "to_agent": names[other.name],
        "reason": f"What of {yours}?",
        "kind": "message",
        "from_task": own,
        "reported_by": None,
    }
    assert back["data"] == {
        "from_agent": names[other.name],
        "to_agent": names[one.name],
        "reason": "its turn ended: completed",
        "kind": "reply",
        "from_task": request["id"],
        "reported_by": None,
    }
    assert (passed["task"], back["task"]) == (request["id"], own)
    assert passed["id"] < back["id"]
