"""Colleagues over MCP, on the real programs: a model calls the tools, and is told what came of it."""

import json

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


def test_a_message_before_all_servers_have_started_is_a_turn(daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    """gemini puts a message off until each MCP server, a person's slow ones too, has started or failed."""
    prepared = cli_home("gemini")
    settings, started = prepared.home / ".gemini" / "settings.json", prepared.home / "started"
    slow = {"command": "/bin/sh", "args": ["-c", f"while [ ! -e '{started}' ]; do sleep 0.2; done"]}
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "mcpServers": {"slow": slow}}))
    agent = RealAgent.start("gemini", daemon, model, prepared)
    first, second = nonce(), nonce()
    tasks = [agent.send(first), agent.send(second)]
    eventually(lambda: "Queued (press" in agent.screen(), "it puts the message off")
    eventually(lambda: daemon.agent("gemini")["activity"] == "busy", "that is being at work")
    assert daemon.ctl("cancel", tasks[0]).code != 0, "it cannot be called back"
    assert daemon.task(tasks[0])["status"] == "working"
    started.touch()
    assert [daemon.ended(task)["status"] for task in tasks] == ["canceled", "completed"]
    assert daemon.ctl("task", tasks[1], "--wait").out == f"Answer to {second}.\n"
    assert (model.submissions(first), model.submissions(second)) == (1, 1)
