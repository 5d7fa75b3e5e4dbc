"""What is told of a turn where others' turns are beside it: behind one that went wrong, or a conversation that is told
again, and in one that a person types into."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.real.agents import STARTS_S, RealAgent, StartAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.real.script import expected_answer
from tests.real.ways import ACP
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

N = 5


def answer(task: dict[str, Any]) -> str | None:
    """What its asker was told."""
    found = [each["parts"][0]["text"] for each in task["artifacts"] if each["artifact_id"] == "answer"]
    return found[0] if found else None


def fill(project: Path) -> None:
    """A repository of 4,000 files, of which a program that keeps snapshots is slow to make one."""
    for number in range(4_000):
        file = project / f"folder-{number % 40}" / f"file-{number}"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{number}\n" * 20)
    for command in (("init", "-q"), ("add", "-A"), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "1")):
        subprocess.run(["git", *command], cwd=project, check=True)


@pytest.mark.parametrize("cli", ["opencode", "codex"])
@pytest.mark.parametrize("how", ["failed", "canceled", "typed"])
def test_messages_right_behind_a_turn_that_went_wrong_run(
    cli: str, how: str, daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    """`typed`: a person's, that fails."""
    prepared, wrong = cli_home(cli), []
    fill(prepared.cwd)
    agent = RealAgent.start(cli, daemon, model, prepared)
    agent.ask_exactly(nonce())
    with agent.attached() as person:
        for _ in range(N):
            daemon.ready(agent.name)
            word, bad, first = nonce(), nonce(), None
            if how == "typed":
                person.submit(f"{bad} [[delay:1]] [[status:400]]")
            else:
                first = agent.send(f"{bad} {'[[status:400]]' if how == 'failed' else f'[[hold:{bad}]]'}")
            if how != "failed":
                model.wait_for_turn(bad)
            behind = [agent.send(f"{word}-{n}") for n in range(2)]
            if how == "canceled":
                daemon.ctl("cancel", str(first))
            assert first is None or daemon.ended(first)["status"] == how
            model.release(bad)
            for n, task in enumerate(behind):
                done = daemon.ended(task)
                said, asked = answer(done), model.submissions(f"{word}-{n}")
                if (done["status"], said, asked) != ("completed", expected_answer(f"{word}-{n}"), 1):
                    wrong.append((done["status"], done["error"], said, asked))
    assert not wrong, wrong


@pytest.mark.parametrize("cli", ACP)
def test_a_conversation_that_is_told_again_is_no_answer(
    cli: str, daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    """A message that waits for the program to come back has its own answer, and so has the one behind it."""
    prepared = cli_home(cli)
    env = {**daemon.env, **prepared.env}
    done = daemon.ctl("start", "acp", "--cwd", str(prepared.cwd), "--", *ACP[cli], env=env)
    assert done.code == 0, done.err
    agent = RealAgent("acp", daemon, model, prepared)
    daemon.ready("acp", patience=STARTS_S)
    for _ in range(20):
        agent.ask_exactly(f"{nonce()} [[answer:lines200]]")
    wrong = []
    for _ in range(N):
        assert daemon.ctl("restart", "acp").code == 0
        words = [nonce() for _ in range(2)]
        tasks = [(word, agent.send(word)) for word in words]
        daemon.ready("acp", patience=STARTS_S)
        for word, task in tasks:
            said = answer(daemon.ended(task))
            if said != expected_answer(word):
                wrong.append((said or "")[:200])
    assert not wrong, wrong


@pytest.mark.parametrize("cli", ["codex"])
@pytest.mark.parametrize("when", ["while it speaks", "while it calls a tool"])
def test_what_a_person_types_into_a_turn_is_told_once(cli: str, when: str, start_agent: StartAgent) -> None:
    """With the answer to the message; or as a turn of the person's, where the message has an answer of its own."""
    agent, wrong = start_agent(cli), []
    agent.ask_exactly(nonce())
    with agent.attached() as person:
        for _ in range(N):
            agent.daemon.ready(agent.name)
            person.settle(1.0)
            word, typed, made = nonce(), nonce(), nonce()
            says = f"[[tool:shell:while [ ! -e {made} ]; do sleep 0.1; done]] say: Told {word}."
            if when == "while it speaks":
                says = f"[[hold-mid:{word}]] [[answer:lines20]]"
            task = agent.send(f"{word} {says}")
            agent.model.wait_for_turn(word)
            eventually(lambda: agent.daemon.agent(agent.name)["activity"] in ("busy", "waiting"), "it works")
            person.submit(f"I add {typed}")
            person.settle(1.0)
            agent.model.release(word)
            agent.file(made).touch()
            said = answer(agent.daemon.ended(task))
            agent.daemon.ready(agent.name)
            told = agent.daemon.ctl("events", "--json", "--after", "0", "--types", "turnSeen").out
            seen = [event["data"]["answer"] for event in map(json.loads, told.splitlines()) if typed in str(event)]
            both = [f"Answer to {typed}."]
            if (said, seen) not in ((both[0], []), (expected_answer(f"{word} {says}"), both)):
                wrong.append((said, seen))
    assert not wrong, wrong
