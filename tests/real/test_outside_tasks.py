"""Dialogs outside any task, on the real programs: the agent waits, and is answered by its name."""

import pytest

from tests.real.agents import RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.real.session import untrusted
from tests.real.ways import typed
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


CASES = {"claude": ("approve", "claude"), "codex": ("input", "codex", "1"), "gemini": ("approve", "gemini")}
"""How each is told to trust the folder."""


@pytest.mark.parametrize("cli", CASES)
def test_a_dialog_at_the_start_is_answered_by_the_agents_name(
    cli: str, daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    prepared = cli_home(cli)
    untrusted(prepared)
    typed(cli, daemon)
    agent = RealAgent.start(cli, daemon, model, prepared, ready=False)
    asked = eventually(lambda: (a := daemon.agent(cli))["activity"] == "waiting" and a["prompt"] and a, "it asks")
    assert (asked["prompt"]["type"], asked["task"]) == ("trust", None)
    assert len(asked["prompt"]["options"]) >= 2
    word = nonce()
    waiting = agent.send(f"Hello {word}.")
    assert daemon.ctl("input", cli, "no such thing").code == 6
    assert model.submissions(word) == 0, "a dialog is not typed into"
    assert daemon.agent(cli)["prompt"]["prompt_id"] == asked["prompt"]["prompt_id"]
    assert daemon.ctl(*CASES[cli]).code == 0
    done = daemon.task_in(waiting, "completed", "failed", "canceled")
    assert done["status"] == "completed", agent.screen()
    assert model.submissions(word) == 1


def test_a_program_beside_its_server_asks_nothing_and_takes_nothing_of_the_folder(
    daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    """codex asks only where it runs its turns itself. What the folder brings along stays out of force until the folder
    is trusted in its own configuration."""
    prepared = cli_home("codex")
    untrusted(prepared)
    brought = prepared.cwd / ".codex" / "config.toml"
    brought.parent.mkdir()
    brought.write_text('model = "brought-along"\n')
    agent = RealAgent.start("codex", daemon, model, prepared)
    word = nonce()
    agent.ask_exactly(f"Hello {word}.")
    assert {request.model for request in model.turns(word)} == {"scripted"}
    own = prepared.home / ".codex" / "config.toml"
    own.write_text(f'{own.read_text()}\n[projects."{prepared.cwd}"]\ntrust_level = "trusted"\n')
    again = RealAgent.start("codex", daemon, model, prepared, "--name", "again")
    trusted = nonce()
    again.ask_exactly(f"Hello {trusted}.")
    assert {request.model for request in model.turns(trusted)} == {"brought-along"}


def test_a_refused_trust_ends_it(daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    prepared = cli_home("claude")
    untrusted(prepared)
    RealAgent.start("claude", daemon, model, prepared, ready=False)
    asked = eventually(lambda: (a := daemon.agent("claude"))["prompt"] and a, "it asks")
    assert asked["activity"] == "waiting"
    denied = daemon.ctl("deny", "claude")
    assert denied.code == 0, denied
    eventually(lambda: daemon.agent("claude")["pid"] != asked["pid"], "the program ended")
