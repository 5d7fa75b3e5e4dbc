"""A conversation that a person begins at the terminal is the agent's from then on, whatever is told late of the last
one; and what the next program needs is looked at before the one that runs ends."""

import psutil
import pytest

from tests.real.agents import EVERY, RealAgent, StartAgent, nonce
from tests.support.daemon import eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

NEW = {"claude": "/clear", "codex": "/new", "gemini": "/clear", "opencode": "/new"}


def _begun_anew(agent: RealAgent) -> tuple[str, str]:
    """What was said before a person began a new conversation by hand, and what they said in it."""
    old, new = nonce(), nonce()
    agent.ask_exactly(f"First {old}.")
    with agent.attached() as person:
        person.settle(1)
        person.send(NEW[agent.prepared.cli])
        person.settle(1)
        person.send("\r")
        person.wait_gone(old)
        person.settle(1)
        person.send(f"By hand {new}.")
        person.settle(1)
        person.send("\r")
        person.wait_screen(f"Answer to {new}")
    agent.daemon.ready(agent.name)
    return old, new


def _goes_on(agent: RealAgent, old: str, new: str) -> None:
    word = nonce()
    agent.ask_exactly(f"Next {word}.")
    (request,) = agent.model.turns(word)
    said = "\n".join(request.users)
    assert (old in said, new in said) == (False, True), request.users


@pytest.mark.parametrize("how", ["restart", "park", "a killed daemon", "an orderly one"])
@pytest.mark.parametrize("cli", EVERY)
def test_a_conversation_that_a_person_began_is_gone_on_with(cli: str, how: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    daemon = agent.daemon
    old, new = _begun_anew(agent)
    if how == "a killed daemon":
        daemon.kill9()
        daemon.start()
        daemon.ready(agent.name)
    elif how == "an orderly one":
        assert daemon.ctl("shutdown", "--keep-agents").code == 0
        if daemon.process is not None:
            daemon.process.wait()
        daemon.start()
        daemon.ready(agent.name)
    if how == "park":
        eventually(lambda: daemon.ctl("park", agent.name).code == 0, "its screen comes to rest, and it is parked")
    else:
        restarted = daemon.ctl("restart", agent.name)
        assert (restarted.code, "conversation" in restarted.err) == (0, False), restarted.err
    _goes_on(agent, old, new)


@pytest.mark.parametrize("cli", EVERY)
def test_a_restart_without_its_folder_ends_nothing(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    word = nonce()
    agent.ask_exactly(f"First {word}.")
    pid, folder = agent.pid, agent.prepared.cwd
    renamed = folder.rename(folder.with_name("renamed"))
    for verb in (["restart"], ["restart", "--when-idle"], ["park"]):
        refused = agent.daemon.ctl(verb[0], agent.name, *verb[1:])
        assert refused.code == 6, refused
        assert str(folder) in refused.err
    assert (agent.pid, psutil.pid_exists(pid)) == (pid, True)
    renamed.rename(folder)
    assert agent.daemon.ctl("restart", agent.name).code == 0
    agent.ask_exactly(f"Next {nonce()}.")
