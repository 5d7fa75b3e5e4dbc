"""The real programs before the scripted model, in a plain terminal: what the rest of the suite takes for granted."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real.looks import LAUNCHES, LOOKS
from tests.real.model import Model
from tests.real.programs import PROGRAMS, Prepared
from tests.real.terminal import Terminal
from tests.support.daemon import eventually


def heard(model: Model, nonce: str, terminal: Terminal) -> bool:
    """Whether the model has it, by when the program writes nothing any more."""
    terminal.settle(2.0)
    return model.submissions(nonce) > 0


@pytest.mark.real
@pytest.mark.timeout(600)
@pytest.mark.parametrize("cli", PROGRAMS)
def test_one_turn_in_a_plain_terminal(
    cli: str, cli_home: Callable[[str], Prepared], model: Model, private_dir: Path
) -> None:
    prepared, nonce = cli_home(cli), f"nonce-plain-{cli}"
    hooks = private_dir / "hooks"
    hooks.mkdir()
    args, env = LAUNCHES[cli](hooks, prepared.home)
    with Terminal([*prepared.argv, *args], env={**prepared.env, **env}, cwd=prepared.cwd) as terminal:
        terminal.wait_screen(LOOKS[cli].ready)
        terminal.settle(1.0, at_most=5)
        terminal.submit(f"Say {nonce}.")
        # An Enter that gemini gets soon after a paste is a line break, and on a busy machine that is long.
        eventually(lambda: heard(model, nonce, terminal) or terminal.send("\r"), "the program has it")
        terminal.wait_screen(f"Answer to {nonce}")
    (turn,) = model.turns(nonce)
    assert (turn.user, turn.reply, model.submissions(nonce)) == (f"Say {nonce}.", "text", 1)
