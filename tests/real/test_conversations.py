"""Conversations survive their programs: judged by what the model is sent of earlier messages."""

import pytest

from tests.real.agents import EVERY, RealAgent, StartAgent, nonce
from tests.support.daemon import eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


@pytest.mark.parametrize("cli", EVERY)
def test_a_restart_and_a_kill_go_on_with_the_conversation(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    words = [nonce()]
    agent.ask_exactly(f"First {words[0]}.")
    assert agent.daemon.ctl("restart", agent.name).code == 0
    _asked_with_all_before(agent, words)
    pid = agent.pid
    assert agent.daemon.ctl("kill", agent.name).code == 0
    eventually(lambda: agent.daemon.agent(agent.name)["pid"] not in (None, pid), "a new process")
    _asked_with_all_before(agent, words)
    _asked_with_all_before(agent, words)


def _asked_with_all_before(agent: RealAgent, words: list[str]) -> None:
    words.append(nonce())
    agent.ask_exactly(f"Next {words[-1]}.")
    (request,) = agent.model.turns(words[-1])
    said = "\n".join(request.users)
    assert [word for word in words if word in said] == words, (words, request.users)
    assert agent.model.submissions(words[-1]) == 1
