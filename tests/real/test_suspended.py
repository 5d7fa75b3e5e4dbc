"""Ctrl-Z typed in an attached terminal, on the real programs: some suspend themselves, for a shell to continue them."""

import pytest

from tests.real.agents import EVERY, RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.support.daemon import Daemon

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


@pytest.mark.parametrize("cli", EVERY)
def test_messages_arrive_after_a_person_pressed_ctrl_z(
    cli: str, daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    agent = RealAgent.start(cli, daemon, model, cli_home(cli))
    with agent.attached() as terminal:
        terminal.settle()
        terminal.send(b"\x1a")
        terminal.settle()
        agent.ask_exactly(f"Hello {nonce()}.")
        terminal.send(b"\x1a")
    agent.ask_exactly(f"Hello again {nonce()}.")
