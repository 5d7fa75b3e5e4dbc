"""Programs in their ACP mode, without a terminal: exact answers, kills of the daemon, permissions, sessions again."""

import json
import random
from pathlib import Path

import pytest

from tests.real.agents import RealAgent, nonce, tasks_of
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.real.script import expected_answer
from tests.real.ways import ACP
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

KILLS = 25


def started(cli: str, daemon: Daemon, model: Model, cli_home: CliHome) -> RealAgent:
    prepared = cli_home(cli)
    env = {**daemon.env, **prepared.env}
    done = daemon.ctl("start", "acp", "--cwd", str(prepared.cwd), "--json", "--", *ACP[cli], env=env)
    assert done.code == 0, done.err
    agent = RealAgent("acp", daemon, model, prepared)
    daemon.ready("acp", patience=240)
    return agent


@pytest.mark.parametrize("cli", ACP)
def test_answers_are_exact(cli: str, daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    agent = started(cli, daemon, model, cli_home)
    for answer in ("short", "fenced", "japanese", "lines20", "markup"):
        for _ in range(4):
            agent.ask_exactly(f"{nonce()} [[answer:{answer}]]")
    assert all(task["exact"] for task in agent.tasks())


@pytest.mark.parametrize("cli", ACP)
def test_what_would_be_a_command_is_a_message(cli: str, daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    agent = started(cli, daemon, model, cli_home)
    for text in ("/clear {}", "/init {}", "!touch broken-out {}", "@nobody {}"):
        word = nonce()
        agent.ask_exactly(text.format(word))
        assert model.submissions(word) == 1, text
    assert not agent.file("broken-out").exists()


@pytest.mark.parametrize("cli", ACP)
def test_its_model_knows_who_it_is_and_has_the_tools_of_colleagues(
    cli: str, daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    """Told once in a conversation, also over a restart of the program."""
    agent = started(cli, daemon, model, cli_home)
    daemon.start_agent(profile="dummy", name="colleague")
    daemon.ready("colleague")
    words = [nonce() for _ in range(3)]
    asked = json.dumps({"to": "colleague", "message": f"Say {words[1]}."})
    agent.ask_exactly(words[0])
    agent.allow_tools()
    agent.ask(f"{words[2]} [[tool:send_message:{asked}]]")
    results = [result.text for request in model.turns(words[2]) for result in request.results]
    assert any(words[1] in text for text in results), results
    sender = tasks_of("colleague", daemon)[0]["metadata"]["sender"]
    assert (sender["sender_id"], sender["verified"]) == (daemon.agent("acp")["id"], True)
    assert daemon.ctl("restart", "acp").code == 0
    daemon.ready("acp", patience=240)
    last = nonce()
    agent.ask(last)
    said = "\n".join(model.turns(last)[-1].users)
    assert said.count(f"You are the agent acp (agent ID {daemon.agent('acp')['id']}") == 1, said


@pytest.mark.parametrize("cli", ACP)
def test_a_permission_is_asked_and_found_again(cli: str, daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    agent = started(cli, daemon, model, cli_home)
    for n, verb in enumerate(("approve", "deny", "approve")):
        made: Path = agent.file(f"made-{n}")
        task = agent.send(f"{nonce()} [[tool:shell-ask:touch {made}]]")
        agent.daemon.task_in(task, "input_required")
        if n == 2:
            agent.daemon.kill9()
            agent.daemon.start()
            eventually(lambda: agent.daemon.agent("acp")["activity"] == "waiting", "it asks still")
        assert agent.daemon.ctl(verb, task).code == 0
        agent.daemon.ended(task)
        assert made.exists() is (verb == "approve")


@pytest.mark.parametrize("cli", ACP)
def test_no_kill_of_the_daemon_loses_or_doubles_a_message(
    cli: str, daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    agent = started(cli, daemon, model, cli_home)
    dice, wrong = random.Random(cli), []
    for _ in range(KILLS):
        word = nonce()
        text = f"{word} [[slow:1200]] [[answer:prose]]"
        task = agent.send(text)
        model_has_it = dice.random() < 0.7
        if model_has_it:
            model.wait_for_turn(word)
        agent.daemon.kill9()
        agent.daemon.start()
        done = agent.daemon.ended(task)
        answer = next((a["parts"][0]["text"] for a in done["artifacts"] if a["artifact_id"] == "answer"), None)
        if (done["status"], answer, model.submissions(word)) != ("completed", expected_answer(text), 1):
            wrong.append((done["status"], done["error"], answer, model.submissions(word)))
    assert not wrong, wrong


@pytest.mark.parametrize("cli", ACP)
def test_cancel_restart_and_a_program_that_is_killed(cli: str, daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    agent = started(cli, daemon, model, cli_home)
    agent.ask_exactly(nonce())
    word = nonce()
    task = agent.send(f"{word} [[hold:{word}]]")
    model.wait_for_turn(word)
    assert agent.daemon.ctl("cancel", task).code == 0
    model.release(word)
    agent.ask_exactly(nonce())
    word = nonce()
    task = agent.send(f"{word} [[hold:{word}]]")
    model.wait_for_turn(word)
    assert agent.daemon.ctl("kill", "acp").code == 0
    done = agent.daemon.ended(task)
    assert (done["status"], done["error"]["code"]) == ("failed", "AGENT_EXITED")
    model.release(word)
    agent.daemon.ready("acp", patience=240)
    agent.ask_exactly(nonce())
