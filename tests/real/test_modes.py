"""Modes and texts in which a message would be something else than a message, on the real programs."""

import pytest

from tests.real.agents import StartAgent, nonce

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

MODES = {
    "shell": ("!", {"claude": "\x1b", "codex": "\x7f", "gemini": "\x1b", "opencode": "\x1b"}),
    "history": ("\x12", {"claude": "\x1b", "codex": "\x1b", "gemini": "\x1b"}),
}
"""The key that enters each, and by program the one that leaves it."""


@pytest.mark.parametrize(("mode", "cli"), [(mode, cli) for mode, (_, leave) in MODES.items() for cli in leave])
def test_a_message_waits_while_what_is_typed_is_a_command_or_a_search(
    mode: str, cli: str, start_agent: StartAgent
) -> None:
    agent, word = start_agent(cli), nonce()
    enter, leave = MODES[mode]
    agent.ask_exactly(f"Something to be found, {word}.")
    with agent.attached() as person:
        person.settle()
        before = person.screen()
        person.send(enter)
        person.wait(lambda: person.screen() != before, f"the {mode} mode")
        person.settle(1.5)
        task = agent.send("found")
        person.settle(3.0)
        assert agent.daemon.task(task)["status"] == "submitted", agent.screen()
        person.send(leave[cli])
        done = agent.daemon.ended(task)
    assert done["status"] == "completed", (done, agent.screen())
    assert [turn.user for turn in agent.model.turns("found")][-1] == "found"
    assert agent.model.submissions(word) == 1


@pytest.mark.parametrize("cli", ["claude", "codex", "opencode"])  # gemini looks for the file itself
def test_enter_completes_nothing_in_a_message(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    agent.file("README.md").write_text("Read me.\n")
    for end in ("@READ", "$r", "/mod"):
        word = nonce()
        agent.ask_exactly(f"{word} {end}")
        assert agent.model.turns(word)[0].user == f"{word} {end}"
