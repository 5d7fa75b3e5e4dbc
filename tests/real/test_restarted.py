"""The first message after a restart: it comes while the program still starts, and is answered once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real import versions
from tests.real.agents import EVERY, RealAgent, StartAgent, nonce
from tests.real.model import Model
from tests.real.script import expected_answer
from tests.real.versions import Version
from tests.support.daemon import Daemon

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

RESTARTS = 4

PASSES_OVER = Version("codex", "0.151.0")
"""Most of the times it passes over the submit key that comes while it starts; then it draws its composer again, empty
and with what stood there, and shows that it works."""


def restarted(agent: RealAgent, message: Callable[[], str]) -> None:
    """Restart it a few times, with a message at once."""
    for _ in range(RESTARTS):
        text = message()
        word = text.split(".")[0]
        known = agent.model.submissions(word)
        answer = agent.daemon.post(f"/control/agents/{agent.name}/restart", {})
        assert answer.status == 200, answer.json
        done = agent.daemon.ended(agent.daemon.send(text, agent.name))
        assert done["status"] == "completed", f"{done}\n{agent.screen()}"
        assert done["artifacts"][-1]["parts"][0]["text"] == expected_answer(text), agent.screen()
        assert agent.model.submissions(word) == known + 1


def short() -> str:
    return f"Next {nonce()}."


def long() -> str:
    return f"{short()}\n" + "\n".join(f"line {n} {'x' * 60}" for n in range(600))


@pytest.mark.parametrize("cli", EVERY)
def test_the_first_message_after_a_restart_is_answered_once(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    agent.ask_exactly(short())
    restarted(agent, short)


@pytest.mark.parametrize("message", [short, long, lambda: "Go on."], ids=["short", "long", "the same"])
def test_a_submit_key_that_a_program_passes_over_as_it_starts_is_pressed_again(
    message: Callable[[], str], daemon: Daemon, model: Model, private_dir: Path
) -> None:
    if reason := versions.missing(PASSES_OVER):
        pytest.skip(reason)
    prepared = versions.prepare(PASSES_OVER, private_dir / "p" / "home", private_dir / "p" / "project", model.url)
    agent = RealAgent.start("codex", daemon, model, prepared)
    agent.ask_exactly(message())
    restarted(agent, message)
