"""gemini's question about a loop: in mid-answer, in the composer's place, when its hook says that the turn ended."""

from pathlib import Path

import pytest

from tests.real.agents import RealAgent, StartAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.support.daemon import Daemon

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

LOOPS = "[[answer:loop]]"


def test_half_an_answer_is_none(start_agent: StartAgent) -> None:
    agent = start_agent("gemini")
    waited = agent.ask(f"{nonce()} {LOOPS}")
    assert (waited.code, "A potential loop was detected" in waited.err) == (7, True), f"{waited}\n{agent.screen()}"
    state = agent.daemon.agent(agent.name)
    assert (state["activity"], state["held"], state["prompt"]["type"]) == ("waiting", "dialog", "question")
    assert [option["label"] for option in state["prompt"]["options"]] == [
        "Keep loop detection enabled",
        "Disable loop detection for this session",
    ]
    unclear = agent.daemon.ctl("approve", agent.name)
    assert unclear.code == 6, unclear
    assert agent.daemon.ctl("input", agent.name, "keep").code == 0
    ended = agent.daemon.ended(state["task"])
    assert (ended["status"], ended["error"]["code"]) == ("failed", "MODEL_ERROR"), ended
    agent.ask_exactly(f"And {nonce()}?")


def test_a_dialog_that_nobody_knows_is_a_person_s(private_dir: Path, model: Model, cli_home: CliHome) -> None:
    """The same one, before a profile that has no dialogs and does not look for menus."""
    daemon = Daemon(private_dir / "synapsed")
    profiles = daemon.home / "config" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "gemini.toml").write_text("[prompts]\nmenus = false\ndialogs = []\n")
    daemon.start()
    try:
        agent = RealAgent.start("gemini", daemon, model, cli_home("gemini"))
        waited = agent.ask(f"{nonce()} {LOOPS}")
        assert (waited.code, "A potential loop was detected" in waited.err) == (7, True), f"{waited}\n{agent.screen()}"
        state = daemon.agent(agent.name)
        assert (state["held"], state["prompt"]["type"]) == ("unknown screen", "screen")
        assert daemon.ctl("keys", agent.name, "Esc").code == 0
        assert daemon.ended(state["task"])["status"] == "failed"
        agent.ask_exactly(f"And {nonce()}?")
    finally:
        daemon.end()
