"""What agents are told when they start, on the real programs: judged by what their models were sent."""

from pathlib import Path

import pytest

from tests.real import programs
from tests.real.agents import EVERY, RealAgent, nonce
from tests.real.model import Model
from tests.support.daemon import Daemon

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


@pytest.mark.parametrize("cli", EVERY)
def test_its_model_is_told_who_it_is_and_nothing_is_typed(cli: str, daemon: Daemon, private_dir, tmp_path) -> None:
    daemon.start_agent(profile="dummy", name="colleague")
    daemon.ready("colleague")
    word = nonce()
    with Model(bodies=tmp_path) as model:
        prepared = programs.prepare(cli, private_dir / "home", private_dir / "project", model.url)
        agent = RealAgent.start(cli, daemon, model, prepared)
        assert agent.ask(word).code == 0
    turn = next(text for path in tmp_path.iterdir() if word in (text := path.read_text()) and "-text" in path.name)
    identity = daemon.agent(cli)["id"]
    assert f"You are the agent {cli} (agent ID {identity}, type {cli}" in turn
    assert "Beside you now: colleague (dummy)" in turn
    assert "Synapse A2A Protocol Instructions" not in agent.screen()
    told = daemon.get(f"/control/tasks?agent={cli}").json[-1]
    assert (told["status"], told["metadata"]["sender"]["sender_id"]) == ("completed", "synapse-system")
    assert identity in told["message"]["parts"][0]["text"]

    daemon.kill9()
    daemon.start()
    daemon.ready(cli)
    assert len(daemon.get(f"/control/tasks?agent={cli}").json) == 2, "a new daemon has nothing new to tell"


@pytest.mark.parametrize("cli", EVERY)
def test_its_model_is_told_in_a_conversation_that_is_resumed_too(
    cli: str, daemon: Daemon, private_dir: Path, tmp_path: Path
) -> None:
    first, second = nonce(), nonce()
    with Model(bodies=tmp_path) as model:
        prepared = programs.prepare(cli, private_dir / "home", private_dir / "project", model.url)
        agent = RealAgent.start(cli, daemon, model, prepared)
        assert agent.ask(first).code == 0
        assert daemon.ctl("restart", cli).code == 0
        assert agent.ask(second).code == 0
    assert daemon.agent(cli)["conversation"]["resumed"] is True
    turns = [text for path in tmp_path.iterdir() if second in (text := path.read_text()) and "-text" in path.name]
    assert turns
    words = f"You are the agent {cli} (agent ID {daemon.agent(cli)['id']}"
    assert all(first in turn and words in turn for turn in turns), [turn[:2000] for turn in turns]
    assert "Synapse A2A Protocol Instructions" not in agent.screen(), "nothing is typed"
