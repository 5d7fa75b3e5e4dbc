"""Colleagues over MCP, on the real programs: a model calls the tools, and is told what came of it."""

import json
from pathlib import Path

import pytest

from tests.real.agents import EVERY, RealAgent, nonce, tasks_of
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


def call(tool: str, **arguments: object) -> str:
    return f"[[tool:{tool}:{json.dumps(arguments)}]]"


def tools_of(agent: RealAgent) -> bool:
    """Whether the model is offered the tools by now: servers are started beside the first turns."""
    word = nonce()
    assert agent.ask(word).code == 0
    return any("send_message" in name for name in agent.model.turns(word)[-1].tools)


@pytest.mark.parametrize("cli", EVERY)
def test_one_asks_another_and_hears_the_answer(cli: str, daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    other = "codex" if cli == "claude" else "dummy"
    if other == "codex":
        RealAgent.start(other, daemon, model, cli_home(other), "--name", "colleague")
    else:
        daemon.start_agent(profile=other, name="colleague")
        daemon.ready("colleague")
    agent = RealAgent.start(cli, daemon, model, cli_home(cli))
    eventually(lambda: tools_of(agent), "its model has the tools", patience=120)
    asked, word = nonce(), nonce()
    done = agent.ask(f"{asked} {call('send_message', to='colleague', message=f'Say {word}.')}")
    assert done.code == 0, f"{done.err}\n{agent.screen()}"
    results = [result.text for request in model.turns(asked) for result in request.results]
    assert any(word in text for text in results), (results, [request.tools for request in model.turns(asked)])
    (task,) = tasks_of("colleague", daemon)
    sender = task["metadata"]["sender"]
    assert (sender["sender_id"], sender["verified"]) == (daemon.agent(cli)["id"], True)


@pytest.fixture
def waiting_gemini(daemon: Daemon, model: Model, cli_home: CliHome) -> tuple[RealAgent, Path]:
    """gemini with a slow MCP server, until which it puts messages off, and the file that lets that start."""
    prepared = cli_home("gemini")
    settings, started = prepared.home / ".gemini" / "settings.json", prepared.home / "started"
    slow = {"command": "/bin/sh", "args": ["-c", f"while [ ! -e '{started}' ]; do sleep 0.2; done"]}
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "mcpServers": {"slow": slow}}))
    return RealAgent.start("gemini", daemon, model, prepared), started


def put_off(agent: RealAgent, message: str) -> str:
    """Send it, and wait until the program has put it off."""
    task_id = agent.send(message)
    eventually(lambda: "Queued (press" in agent.screen(), "it puts the message off")
    eventually(lambda: agent.daemon.agent(agent.name)["activity"] == "busy", "that is being at work")
    return task_id


def test_a_message_before_all_servers_have_started_is_a_turn(waiting_gemini: tuple[RealAgent, Path]) -> None:
    agent, started = waiting_gemini
    first, second = nonce(), nonce()
    tasks = [put_off(agent, first), agent.send(second)]
    started.touch()
    assert [agent.daemon.ended(task)["status"] for task in tasks] == ["completed", "completed"]
    assert agent.daemon.ctl("task", tasks[1], "--wait").out == f"Answer to {second}.\n"
    assert (agent.model.submissions(first), agent.model.submissions(second)) == (1, 1)


def test_a_message_that_is_put_off_is_taken_back(waiting_gemini: tuple[RealAgent, Path]) -> None:
    """What stops a turn does nothing to it: it would reach the model after its task had ended."""
    agent, started = waiting_gemini
    canceled = [nonce() for _ in range(3)]
    several = f"{canceled[1]}\n\nin several\nlines"
    long = f"/{canceled[2]}\n" + "\n".join(f"line {n} of a message that is shown as a placeholder" for n in range(90))
    for message in (canceled[0], several, long):
        task_id = put_off(agent, message)
        gone = agent.daemon.ctl("cancel", task_id)
        assert gone.code == 0, f"{gone.err}\n{agent.screen()}"
        assert (agent.daemon.task(task_id)["status"], "Queued" in agent.screen()) == ("canceled", False)
    overtaken, urgent = nonce(), nonce()
    tasks = [put_off(agent, overtaken), agent.send(urgent, "--priority", "5")]
    started.touch()
    assert [agent.daemon.ended(task)["status"] for task in tasks] == ["canceled", "completed"]
    assert [agent.model.submissions(word) for word in (*canceled, overtaken, urgent)] == [0, 0, 0, 0, 1]
    assert [text for text in agent.model.turns(urgent)[-1].users if "nonce" in text] == [urgent]


def test_one_that_cannot_be_taken_back_is_not_canceled(waiting_gemini: tuple[RealAgent, Path]) -> None:
    """A person's message is put off beside it: both would be given back as one."""
    agent, started = waiting_gemini
    word, persons = nonce(), nonce()
    task_id = put_off(agent, word)
    with agent.attached() as person:
        person.submit(f"A person's {persons}")
        person.wait_screen(rf"Queued[^\n]*\n *{word}\n *A person's {persons}")
    refused = agent.daemon.post(f"/control/tasks/{task_id}/cancel", {})
    assert (refused.status, refused.json["error"]["code"]) == (409, "TASK_NOT_CANCELABLE"), refused
    assert agent.daemon.task(task_id)["status"] == "working"
    started.touch()
    done = agent.daemon.ended(task_id)
    assert (done["status"], done["artifacts"][0]["parts"][0]["text"]) == ("completed", f"Answer to {word}."), done
    assert (agent.model.submissions(word), agent.model.submissions(persons)) == (1, 1)
