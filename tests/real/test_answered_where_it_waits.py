"""A person who waits for a real agent is asked at that terminal; who is refused with a reason is told it."""

import sys
from pathlib import Path

import pytest

from tests.real.agents import MAIN, StartAgent, nonce
from tests.real.terminal import Terminal
from tests.support.daemon import eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]


@pytest.mark.parametrize("cli", MAIN)
def test_asked_at_the_terminal_that_waits(cli: str, start_agent: StartAgent) -> None:
    agent, word = start_agent(cli), nonce()
    message = f"{word} [[tool:shell-ask:touch {word}]] say: Made."
    argv = [sys.executable, "-m", "synapsectl", "send", agent.name, "--wait", "--", message]
    with Terminal(argv, env={**agent.daemon.env, "TERM": "xterm-256color"}, cwd=Path.cwd()) as terminal:
        terminal.wait(lambda: f"touch {word}" in terminal.screen() and ", y" in terminal.screen(), "it asks here")
        assert not agent.file(word).exists()
        terminal.send(b"y\r")
        assert terminal.wait_exit() == 0
        assert "Made." in terminal.screen()
    assert agent.file(word).exists()


@pytest.mark.parametrize("cli", MAIN)
def test_why_not_reaches_the_model(cli: str, start_agent: StartAgent) -> None:
    agent, word, why = start_agent(cli), nonce(), nonce()
    task = agent.send(f"{word} [[tool:shell-ask:touch {word}]] say: Made.")
    asks = eventually(
        lambda: [one for one in agent.daemon.ctl("inbox", "--json").json if one["agent"] == agent.name], "it asks"
    )
    assert [one["kind"] for one in asks] == ["permission"]
    reason = f"{why} use another name say: Understood."
    denied = agent.daemon.ctl("deny", "--all", "--because", reason, "--json")
    assert denied.code == 0, f"{denied.err}\n{agent.screen()}"
    told = agent.daemon.task_in(denied.json[0]["because"], "completed", "failed", "canceled")
    assert (told["status"], told["artifacts"][-1]["parts"][0]["text"]) == ("completed", "Understood."), agent.screen()
    assert any(reason in request.user for request in agent.model.turns(why)), "the model has read it"
    assert not agent.file(word).exists()
    agent.daemon.ended(task)
    eventually(
        lambda: "permission" not in [one["kind"] for one in agent.daemon.ctl("inbox", "--json").json], "its row is gone"
    )
