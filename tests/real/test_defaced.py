"""Something else writes over a real program's screen (a warning, `wall`, a background job): it goes on by itself."""

import os

import pytest

from tests.real.agents import EVERY, StartAgent, nonce
from tests.support.daemon import eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

WARNING = "(node:1) MaxListenersExceededWarning: Possible EventEmitter memory leak detected."


@pytest.mark.parametrize("cli", EVERY)
def test_a_screen_that_was_written_over_comes_back(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    agent.ask_exactly(f"{nonce()} [[answer:short]]")
    agent.daemon.ready(agent.name)
    terminal = os.open(f"/proc/{agent.pid}/fd/0", os.O_WRONLY | os.O_NOCTTY)
    try:
        rows = os.get_terminal_size(terminal).lines
        os.write(terminal, b"\x1b[H" + b"\r\n".join([f"\x1b[2K{WARNING}".encode()] * rows))
    finally:
        os.close(terminal)
    eventually(
        lambda: "the program is asked to redraw its screen" in agent.daemon.log(), "it is asked to draw its screen"
    )
    agent.daemon.ready(agent.name)
    agent.ask_exactly(f"{nonce()} [[answer:short]]")
