"""Conversations survive their programs: judged by what the model is sent of earlier messages."""

import contextlib
import shutil
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.real.agents import EVERY, MAIN, RealAgent, StartAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.real.programs import Prepared
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


@pytest.mark.parametrize("cli", EVERY)
def test_a_restart_and_a_kill_go_on_with_the_conversation(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    words = [nonce()]
    agent.ask_exactly(f"First {words[0]}.")
    assert agent.daemon.ctl("restart", agent.name).code == 0
    _asked_with_all_before(agent, words)
    pid = agent.pid
    eventually(lambda: _on_disk(agent, words[-1]), "the program has written what was said: a kill loses the rest")
    assert agent.daemon.ctl("kill", agent.name).code == 0
    eventually(lambda: agent.daemon.agent(agent.name)["pid"] not in (None, pid), "a new process")
    _asked_with_all_before(agent, words)
    _asked_with_all_before(agent, words)


@pytest.mark.parametrize("cli", EVERY)
def test_a_shutdown_and_a_reboot_go_on_with_the_conversation(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    daemon = agent.daemon
    words = [nonce()]
    agent.ask_exactly(f"First {words[0]}.")
    assert daemon.ctl("shutdown").code == 0
    if daemon.process is not None:
        daemon.process.wait()
    daemon.start()
    daemon.ready(agent.name)
    _asked_with_all_before(agent, words)
    eventually(lambda: _on_disk(agent, words[-1]), "the program has written what was said: a kill loses the rest")
    program = psutil.Process(agent.pid)
    everything = [psutil.Process(daemon.pid), program.parent(), program, *program.children(recursive=True)]
    for process in everything:
        if process is not None:
            with contextlib.suppress(psutil.NoSuchProcess):  # one that the death of another has ended
                process.kill()
    if daemon.process is not None:
        daemon.process.wait()
    shutil.rmtree(daemon.home / "run")
    daemon.start()
    daemon.ready(agent.name)
    assert daemon.agent(agent.name)["conversation"]["resumed"] is True
    _asked_with_all_before(agent, words)


MOVED_BY = {"claude": ("CLAUDE_CONFIG_DIR", ".claude.json"), "codex": ("CODEX_HOME", ".codex/config.toml")}


def _moved(prepared: Prepared) -> Prepared:
    """With its files elsewhere than below its home."""
    name, configuration = MOVED_BY[prepared.cli]
    elsewhere = prepared.home / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    file = prepared.home / configuration
    file.rename(elsewhere / file.name)
    return replace(prepared, env={**prepared.env, name: str(elsewhere)})


@pytest.mark.parametrize(
    ("cli", "moved"), [*((cli, False) for cli in MAIN), *((cli, True) for cli in MOVED_BY)], ids=str
)
def test_a_conversation_on_disk_is_adopted(
    cli: str, moved: bool, daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    prepared = cli_home(cli)
    agent = RealAgent.start(cli, daemon, model, _moved(prepared) if moved else prepared)
    cwd = agent.prepared.cwd
    words = [nonce()]
    agent.ask_exactly(f"First {words[0]}.")
    assert daemon.ctl("stop", agent.name, "--remove").code == 0
    env = {**daemon.env, **agent.prepared.env}
    (found,) = daemon.ctl("adopt", cli, "--json", env=env).json
    assert (found["profile"], found["agent"]) == (cli, None)
    assert Path(found["cwd"]) == cwd.resolve()
    assert found["prompt"] == f"First {words[0]}."
    started = daemon.ctl("adopt", found["id"], "--json", env=env)
    assert started.code == 0, started.err
    again = RealAgent(started.json["name"], daemon, agent.model, agent.prepared)
    assert started.json["cwd"] == found["cwd"]
    daemon.ready(again.name)
    _asked_with_all_before(again, words)
    assert daemon.agent(again.name)["conversation"]["id"] == found["id"]
    (found,) = daemon.ctl("adopt", cli, "--json", env=env).json
    assert found["agent"] == again.name
    assert daemon.ctl("adopt", found["id"], env=env).code == 6


def _on_disk(agent: RealAgent, word: str) -> bool:
    """Whether the program's own record has the answer to `word`."""
    paths = (path for path in agent.prepared.home.rglob("*") if path.is_file() and path.suffix != ".lock")
    return any(f"Answer to {word}".encode() in path.read_bytes() for path in paths)


def _asked_with_all_before(agent: RealAgent, words: list[str]) -> None:
    words.append(nonce())
    agent.ask_exactly(f"Next {words[-1]}.")
    (request,) = agent.model.turns(words[-1])
    said = "\n".join(request.users)
    assert [word for word in words if word in said] == words, (words, request.users)
    assert agent.model.submissions(words[-1]) == 1


OWN_CHOICE = {
    "claude": ["--continue"],
    "codex": ["resume", "--last"],
    "gemini": ["--resume", "latest"],
    "opencode": ["--continue"],
}


@pytest.mark.parametrize("cli", EVERY)
def test_a_persons_own_arguments_choose_the_conversation(cli: str, start_agent: StartAgent) -> None:
    """Beside ours they were refused, in a loop; a restart goes on with what they chose, and asks nobody again."""
    agent = start_agent(cli)
    words = [nonce()]
    agent.ask_exactly(f"First {words[0]}.")
    eventually(lambda: _on_disk(agent, words[0]), "the program has written what was said")
    assert agent.daemon.ctl("stop", agent.name, "--remove").code == 0
    again = RealAgent.start(cli, agent.daemon, agent.model, agent.prepared, "--", *OWN_CHOICE[cli])
    _asked_with_all_before(again, words)
    assert again.daemon.ctl("restart", again.name).code == 0
    _asked_with_all_before(again, words)
    assert again.daemon.agent(again.name)["conversation"]["resumed"] is True


@pytest.mark.parametrize("cli", ["codex", "opencode"])
def test_a_new_conversation_at_the_terminal_is_that_of_the_next_message(cli: str, start_agent: StartAgent) -> None:
    """Also with a draft in its composer; a restart goes on with it."""
    agent = start_agent(cli)
    words = [nonce()]
    agent.ask_exactly(f"First {words[0]}.")
    with agent.attached() as person:
        person.settle(1)
        person.send("/new")
        person.settle(1)
        person.send("\r")
        person.wait_gone(words[0])
        person.settle(1)
        person.send("half a draft")
        person.wait_screen("half a draft")
        new: list[str] = []
        _asked_with_all_before(agent, new)
        person.wait_screen(f"Answer to {new[0]}")
        person.wait_screen("half a draft")
        for _ in range(len("half a draft")):
            person.send("\x7f")
    _asked_with_all_before(agent, new)
    assert agent.daemon.ctl("restart", agent.name).code == 0
    _asked_with_all_before(agent, new)
    (request,) = agent.model.turns(new[-1])
    assert words[0] not in "\n".join(request.users)
