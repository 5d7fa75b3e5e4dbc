"""A message that comes while a real program still starts: it takes it, and begins with it when it has."""

import json
import re

import pytest

from synapsed.terminal.verdict import STALE_S
from tests.real.agents import RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


def quiet(agent: RealAgent) -> float:
    """Seconds for which nothing on its screen has moved."""
    told = re.search(r"nothing has moved for ([\d.]+) s", agent.daemon.ctl("status", agent.name, "--explain").out)
    return float(told[1]) if told else 0.0


def test_a_message_before_gemini_has_started_waits_for_its_turn(
    daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    """It says "Queued", and nothing moves for longer than a sign of work is believed; over a kill, too."""
    prepared = cli_home("gemini")
    settings, started = prepared.home / ".gemini" / "settings.json", prepared.home / "started"
    hold = f"sh -c 'while [ ! -e {started} ]; do sleep 0.2; done; echo []'"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "tools": {"discoveryCommand": hold}}))
    agent, word = RealAgent.start("gemini", daemon, model, prepared), nonce()
    task = agent.send(f"{word} say: Hello.")
    eventually(lambda: "Queued (press" in agent.screen(), "it puts the message off")
    for _ in range(2):
        eventually(lambda: quiet(agent) > 1.5 * STALE_S, "nothing moves", patience=120.0)
        assert (daemon.agent("gemini")["activity"], daemon.task(task)["status"]) == ("busy", "working"), agent.screen()
        daemon.kill9()
        daemon.start()
    assert model.submissions(word) == 0
    started.touch()
    done = daemon.ended(task)
    assert (done["status"], done["artifacts"][-1]["parts"][0]["text"]) == ("completed", "Hello."), agent.screen()
    assert model.submissions(word) == 1
    agent.ask_exactly(f"And then {nonce()}.")
