"""The real programs before the scripted model, in a plain terminal: what the rest of the suite takes for granted."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real.looks import LAUNCHES, LOOKS
from tests.real.model import Model
from tests.real.programs import PROGRAMS, Prepared
from tests.real.terminal import Terminal


@pytest.mark.real
@pytest.mark.timeout(300)
@pytest.mark.parametrize("cli", PROGRAMS)
def test_one_turn_in_a_plain_terminal(
    cli: str, cli_home: Callable[[str], Prepared], model: Model, private_dir: Path
) -> None:
    prepared, nonce = cli_home(cli), f"nonce-plain-{cli}"
    hooks = private_dir / "hooks"
    hooks.mkdir()
    args, env = LAUNCHES[cli](hooks, prepared.home)
    with Terminal([*prepared.argv, *args], env={**prepared.env, **env}, cwd=prepared.cwd) as terminal:
        terminal.wait_screen(LOOKS[cli].ready, timeout=90)
        terminal.settle(1.0, at_most=5)
        terminal.submit(f"Say {nonce}.")
        terminal.wait_screen(f"Answer to {nonce}", timeout=90)
    (turn,) = model.turns(nonce)
    assert (turn.user, turn.reply, model.submissions(nonce)) == (f"Say {nonce}.", "text", 1)
