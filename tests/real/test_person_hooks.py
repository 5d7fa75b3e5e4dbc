"""A person's own hooks have the last word: on when a turn is over, and on what is a prompt at all."""

from typing import Any

import pytest

from tests.real.agents import MAIN, RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.real.person_hooks import REASON, install, plug_in
from tests.real.ways import typed
from tests.support.daemon import Daemon

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

TRUSTED = {"codex": ("--", "--dangerously-bypass-hook-trust")}
WAYS = [*MAIN, "codex-typed"]


def _started(way: str, daemon: Daemon, model: Model, cli_home: CliHome, at: str, **hook: Any) -> RealAgent:
    cli = way.removesuffix("-typed")
    if way != cli:
        typed(cli, daemon)
    prepared = cli_home(cli)
    install(prepared, at, **hook)
    return RealAgent.start(cli, daemon, model, prepared, *TRUSTED.get(cli, ()))


CASES: dict[str, dict[str, Any]] = {
    "once": {},
    "by its exit": {"how": "exit"},
    "twice": {"times": 2},
    "slowly": {"seconds": 20},
    "beside another": {"hooks": 2},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("way", WAYS)
def test_a_turn_that_a_hook_sends_back_to_work_ends_with_the_last_message(
    way: str, case: str, daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    reason = f"{nonce()} [[say:More NUMBER.]]"
    agent = _started(way, daemon, model, cli_home, "end", reason=reason, **CASES[case])
    answer = agent.ask(f"{nonce()} [[say:First.]]")
    assert (answer.code, answer.out) == (0, f"More {CASES[case].get('times', 1)}.\n"), f"{answer.err}\n{agent.screen()}"
    agent.ask_exactly(f"Next {nonce()}.")


@pytest.mark.parametrize("how", ["block", "exit"])
@pytest.mark.parametrize("way", WAYS)
def test_a_prompt_that_a_hook_refuses_is_not_delivered(
    way: str, how: str, daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    agent, word = _started(way, daemon, model, cli_home, "prompt", how=how), nonce()
    task = agent.daemon.ended(agent.send(f"First {word}."))
    error = task["error"] or {}
    assert (task["status"], error.get("code")) == ("failed", "UNDELIVERED"), f"{task}\n{agent.screen()}"
    assert REASON in error["message"]
    assert agent.model.turns(word) == []
    agent.ask_exactly(f"Next {nonce()}.")


@pytest.mark.parametrize("case", ["once", "twice"])
@pytest.mark.parametrize("way", ["opencode", "opencode-typed"])
def test_a_turn_that_a_plugin_goes_on_with_ends_with_the_last_message(
    way: str, case: str, daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    if way != "opencode":
        typed("opencode", daemon)
    prepared = cli_home("opencode")
    plug_in(prepared, reason=f"{nonce()} [[say:More NUMBER.]]", **CASES[case])
    agent = RealAgent.start("opencode", daemon, model, prepared)
    answer = agent.ask(f"{nonce()} [[say:First.]]")
    assert (answer.code, answer.out) == (0, f"More {CASES[case].get('times', 1)}.\n"), f"{answer.err}\n{agent.screen()}"
    agent.ask_exactly(f"Next {nonce()}.")
