"""What is told of a turn that a person types into, and of one behind a conversation that is told again."""

import json
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
