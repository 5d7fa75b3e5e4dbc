"""A parked program's conversation is gone on with by the message that wakes it: judged by what the model is sent."""

import psutil
import pytest

from tests.real.agents import MAIN, RealAgent, StartAgent, nonce
from tests.support.daemon import eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


@pytest.mark.parametrize("cli", MAIN)
def test_parked_and_woken_by_a_message_and_by_a_terminal(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    words = [nonce()]
    agent.ask_exactly(f"First {words[0]}.")
    shown = _parked(agent)
    assert words[0] in shown, "what it showed last"
    _asked_with_all_before(agent, words)
    _parked(agent)
    with agent.attached() as person:
        person.wait(lambda: words[-1] in person.screen(), "the conversation, in the program that runs again")
    _asked_with_all_before(agent, words)


@pytest.mark.parametrize("cli", ["claude", "codex"])
def test_killed_while_it_wakes(cli: str, start_agent: StartAgent) -> None:
    """The daemon dies as soon as the message is taken; the next one wakes the agent, and the message comes once."""
    agent = start_agent(cli)
    words = [nonce()]
    agent.ask_exactly(f"First {words[0]}.")
    _parked(agent)
    words.append(nonce())
    task = agent.send(f"Next {words[-1]}.")
    agent.daemon.kill9()
    agent.daemon.start()
    done = agent.daemon.ended(task)
    assert done["status"] == "completed", done
    assert agent.model.submissions(words[-1]) == 1
    assert any(words[0] in text for text in agent.model.wait_for_turn(words[-1]).users)


def _parked(agent: RealAgent) -> str:
    """Park it; its program and keeper are gone. What it shows then."""
    program = psutil.Process(agent.pid)
    keeper = program.parent()
    assert keeper is not None
    eventually(lambda: agent.daemon.ctl("park", agent.name).code == 0, "its screen comes to rest, and it is parked")
    eventually(lambda: not program.is_running() and not keeper.is_running(), "program and keeper are gone")
    shown = agent.screen()
    assert agent.daemon.agent(agent.name)["state"] == "parked"
    return shown


def _asked_with_all_before(agent: RealAgent, words: list[str]) -> None:
    """Ask something more; the request to the model has all that was said before, and each of it once."""
    words.append(nonce())
    agent.ask_exactly(f"Next {words[-1]}.")
    sent = agent.model.wait_for_turn(words[-1]).users
    assert [word for word in words if any(word in text for text in sent)] == words
    assert agent.model.submissions(words[-1]) == 1
