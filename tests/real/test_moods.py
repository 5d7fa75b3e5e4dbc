"""How a person seems to feel, found out from what they write to a real program, typed or sent."""

import json

import pytest

from tests.real.agents import RealAgent, StartAgent, nonce
from tests.support.daemon import eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


def levels(agent: RealAgent) -> list[int]:
    """How frustrated they were found to be."""
    told = agent.daemon.ctl("events", "--json", "--after", "0", "--types", "emotionUpdate", "--agents", agent.name)
    events = [json.loads(line)["data"] for line in told.out.splitlines()]
    return [data["level"] for data in events if data["emotion_type"] == "frustration"]


@pytest.mark.parametrize("cli", ["claude", "codex"])
def test_an_angry_message_is_told_once(cli: str, start_agent: StartAgent) -> None:
    """Sent, then typed at the terminal, where the program's channel tells of it; and nothing twice over a kill."""
    agent, typed = start_agent(cli), nonce()
    agent.ask_exactly(f"{nonce()} [[answer:short]]")
    assert levels(agent) == []
    agent.ask_exactly(f"{nonce()} wtf, this is useless [[answer:short]]")
    eventually(lambda: levels(agent) == [2], "it is told")
    with agent.attached() as person:
        person.submit(f"{typed} stupid. I told you. This is ridiculous")
        agent.model.wait_for_turn(typed, timeout=120)
    eventually(lambda: levels(agent) == [2, 3], "what was typed is told")
    agent.daemon.kill9()
    agent.daemon.start()
    agent.daemon.ready(agent.name)
    agent.ask_exactly(f"{nonce()} [[answer:short]]")
    assert levels(agent) == [2, 3]
