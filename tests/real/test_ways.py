"""One contract of an agent's link, over all ways in which a message goes to a program.

`keys`: typed at its terminal. `structured`: over its own server, beside the terminal.
"""

import pytest

from tests.real.agents import RealAgent, StartAgent, nonce
from tests.support.daemon import eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

STRUCTURED = ("opencode",)


def draft(agent: RealAgent, text: str) -> None:
    done = agent.daemon.ctl("keys", agent.name, text)
    assert done.code == 0, done.err
    eventually(lambda: text in agent.screen(), f"{text!r} stands in the composer")


@pytest.mark.parametrize("cli", STRUCTURED)
def test_a_draft_is_kept_while_messages_run(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    draft(agent, "half a draft of mine")
    for _ in range(3):
        word = nonce()
        agent.ask_exactly(f"Answer {word}.")
        assert agent.model.submissions(word) == 1
    assert "half a draft of mine" in agent.screen()
