"""A conversation that a person begins at the terminal is the agent's from then on, whatever is told late of the last
one; and what the next program needs is looked at before the one that runs ends."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.real.agents import EVERY, RealAgent, StartAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.real.programs import Prepared
from tests.support.daemon import Ctl, Daemon, eventually

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


def _a_new_daemon(daemon: Daemon, agent: RealAgent, how: str) -> None:
    if how == "a killed daemon":
        daemon.kill9()
    else:
        assert daemon.ctl("shutdown", "--keep-agents").code == 0
        if daemon.process is not None:
            daemon.process.wait()
    daemon.start()
    daemon.ready(agent.name)


def _parked(daemon: Daemon, agent: RealAgent) -> None:
    eventually(lambda: daemon.ctl("park", agent.name).code == 0, "its screen comes to rest, and it is parked")


def _restarted(daemon: Daemon, agent: RealAgent) -> None:
    restarted = daemon.ctl("restart", agent.name)
    assert (restarted.code, "conversation" in restarted.err) == (0, False), restarted.err


NEXT = {"restart": _restarted, "park": _parked}


@pytest.mark.parametrize("then", NEXT)
@pytest.mark.parametrize("how", [None, "a killed daemon", "an orderly one"])
@pytest.mark.parametrize("cli", EVERY)
def test_a_conversation_that_a_person_began_is_gone_on_with(
    cli: str, how: str | None, then: str, start_agent: StartAgent
) -> None:
    agent = start_agent(cli)
    old, new = _begun_anew(agent)
    if how is not None:
        _a_new_daemon(agent.daemon, agent, how)
    NEXT[then](agent.daemon, agent)
    _goes_on(agent, old, new)


def _without_folder(agent: RealAgent) -> Callable[[], object]:
    folder = agent.prepared.cwd
    renamed = folder.rename(folder.with_name("renamed"))
    return lambda: renamed.rename(folder)


def _without_program(agent: RealAgent) -> Callable[[], object]:
    program = agent.prepared.home / "bin" / agent.prepared.cli
    renamed = program.rename(program.with_name("removed"))
    return lambda: renamed.rename(program)


WITHOUT = {"its folder": _without_folder, "its program": _without_program}


def _with_program_of_its_own(prepared: Prepared) -> Prepared:
    """Found by a link in its home, which can be taken away."""
    own = prepared.home / "bin"
    own.mkdir(mode=0o700)
    (program,) = prepared.argv
    (own / prepared.cli).symlink_to(program)
    path = prepared.env["PATH"].replace(str(Path(program).parent), str(own))
    return replace(prepared, env={**prepared.env, "PATH": path})


def _refused(agent: RealAgent, verb: list[str]) -> Ctl:
    """What is said once the program rests, so that nothing else speaks against it."""

    def refused() -> Ctl | None:
        told = agent.daemon.ctl(verb[0], agent.name, *verb[1:])
        return told if "could not be started" in told.err else None

    return eventually(refused, "it rests, and is not ended")


@pytest.mark.parametrize("what", WITHOUT)
@pytest.mark.parametrize("cli", EVERY)
def test_without_what_a_start_needs_nothing_ends(
    cli: str, what: str, daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    agent = RealAgent.start(cli, daemon, model, _with_program_of_its_own(cli_home(cli)))
    agent.ask_exactly(f"First {nonce()}.")
    pid, back = agent.pid, WITHOUT[what](agent)
    for verb in (["restart"], ["restart", "--when-idle"], ["park"]):
        assert _refused(agent, verb).code == 6
    assert (agent.pid, psutil.pid_exists(pid)) == (pid, True)
    if what != "its folder":  # which the program works in, too
        agent.ask_exactly(f"Still {nonce()}.")
    back()
    assert daemon.ctl("restart", agent.name).code == 0
    agent.ask_exactly(f"Next {nonce()}.")
