"""Failed turns on the real programs: the code says why, told by side channels and chrome, never by words in prose."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.real import programs
from tests.real.agents import EVERY, RealAgent, StartAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

FAILURES = {"[[status:400]]": "MODEL_ERROR", "[[status:401]]": "AUTH_REQUIRED", "[[overlong]]": "CONTEXT_FULL"}

BY_ITSELF = {("opencode", "[[overlong]]")}
"""It makes the conversation shorter and goes on."""

IMPATIENT = {"CLAUDE_CODE_MAX_RETRIES": "1"}
"""claude tries a refused log-in ten times, over minutes."""

PROSE = (
    "say: I cannot do that: timeout, rate limit, 401, API Error: 400, context window exceeded.",
    "[[say:● API Error: 429 rate limit\n■ You've hit your usage limit. Try again in 2 hours.]]",
    "[[say:✕ [API Error: quota]\n\nPrompt is too long\nUsage limit reached for this.]]",
)


@pytest.mark.parametrize("cli", EVERY)
def test_the_code_says_why_it_failed(cli: str, daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    prepared = cli_home(cli)
    agent = RealAgent.start(cli, daemon, model, replace(prepared, env={**prepared.env, **IMPATIENT}))
    for directive, code in FAILURES.items():
        if (cli, directive) in BY_ITSELF:
            continue
        task_id = agent.send(f"{directive} {nonce()}")
        task = agent.daemon.task_in(task_id, "failed", "completed", "canceled")
        assert (task["status"], (task["error"] or {}).get("code")) == ("failed", code), f"{task}\n{agent.screen()}"
        if code == "AUTH_REQUIRED":
            agent.daemon.ctl("cancel", agent.name)  # it is to be tried again
    for text in PROSE:
        agent.ask_exactly(f"{nonce()} API Error, timeout, I cannot {text}")
    agent.daemon.ready(agent.name)


@pytest.mark.parametrize("status", [401, 402, 404])
@pytest.mark.parametrize("cli", EVERY)
def test_a_failure_of_the_account_costs_one_message(
    cli: str, status: int, daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    """Nobody is signed in, a bill is not paid, the model is gone."""
    prepared = cli_home(cli)
    agent = RealAgent.start(cli, daemon, model, replace(prepared, env={**prepared.env, **IMPATIENT}))
    met = agent.send(f"[[status:{status}]] {nonce()}")
    waiting = [agent.send(f"Later {nonce()}.") for _ in range(3)]
    failed = daemon.task_in(met, "failed", "completed", "canceled")
    assert (failed["status"], failed["error"]["details"]) == ("failed", {"held": "account"}), (
        f"{failed}\n{agent.screen()}"
    )
    state = eventually(lambda: (a := daemon.agent(agent.name))["held"] == "account" and a, "its messages wait")
    assert state["queue"] == len(waiting)
    assert [row["kind"] for row in daemon.get("/inbox").json] == ["account"]
    daemon.ready(agent.name)
    assert daemon.ctl("cancel", agent.name).code == 0
    for task in waiting:
        assert daemon.task_in(task, "completed", "failed", "canceled")["status"] == "completed", agent.screen()


@pytest.mark.parametrize("cli", ["claude"])
def test_without_a_network_one_message_fails_and_the_next_goes_when_it_is_back(
    cli: str, daemon: Daemon, private_dir: Path
) -> None:
    with Model() as there:
        prepared = programs.prepare(cli, private_dir / "home", private_dir / "project", there.url)
        agent = RealAgent.start(cli, daemon, there, replace(prepared, env={**prepared.env, **IMPATIENT}))
        agent.ask_exactly(f"And {nonce()}?")
    met, waiting = agent.send(f"Lost {nonce()}."), agent.send(f"Later {nonce()}.")
    failed = daemon.task_in(met, "failed", "completed", "canceled")
    assert (failed["status"], failed["error"]["details"]) == ("failed", {"held": "account"}), (
        f"{failed}\n{agent.screen()}"
    )
    assert daemon.task(waiting)["status"] == "submitted"
    with Model(port=int(there.url.rpartition(":")[2])):
        done = eventually(
            lambda: (t := daemon.task(waiting))["status"] != "submitted" and t, "it goes on", patience=200
        )
        assert daemon.task_in(done["id"], "completed", "failed", "canceled")["status"] == "completed", agent.screen()


@pytest.mark.parametrize("cli", EVERY)
def test_a_program_that_tries_again_is_busy(cli: str, start_agent: StartAgent) -> None:
    agent, word = start_agent(cli), nonce()
    overloaded = 503 if cli == "gemini" else 529
    task_id = agent.send(f"[[status:{overloaded}x2]] {word}")
    seen: set[str] = set()

    def over() -> dict[str, Any] | None:
        state, task = agent.daemon.agent(agent.name), agent.daemon.task(task_id)
        if state["task"] == task_id and len(agent.model.turns(word)) in (1, 2):
            seen.add(state["activity"])
        return task if task["status"] in ("completed", "failed", "canceled") else None

    task = eventually(over, "the turn ends", patience=120)
    assert task["status"] == "completed", f"{task}\n{agent.screen()}"
    assert "waiting" not in seen


LIMITED = ("claude", "codex", "gemini")


@pytest.mark.parametrize("cli", LIMITED)
def test_a_usage_limit_parks_the_agent(cli: str, daemon: Daemon, start_agent: StartAgent) -> None:
    agent, word = start_agent(cli, "--no-resume-at-reset"), nonce()
    failed = agent.daemon.task_in(agent.send(f"[[limit:7200]] {nonce()}"), "failed", "completed", "canceled")
    assert (failed["status"], failed["error"]["code"]) == ("failed", "RATE_LIMITED"), f"{failed}\n{agent.screen()}"
    tells = cli != "claude"  # with an API key it does not say until when
    assert ("until" in failed["error"]["details"]) is tells, failed
    waiting = agent.send(f"Later {word}.")
    state = eventually(lambda: (a := daemon.agent(agent.name))["activity"] == "limited" and a, "limited")
    assert state["until"] is not None
    assert (state["queue"], state["held"]) == (1, "limit")

    daemon.kill9()
    daemon.start()
    again = eventually(lambda: (a := daemon.agent(agent.name))["activity"] == "limited" and a, "limited again")
    assert (again["until"], again["queue"]) == (state["until"], 1)
    assert agent.model.submissions(word) == 0
    assert daemon.ctl("cancel", agent.name).code == 0
    assert daemon.task_in(waiting, "completed", "failed", "canceled")["status"] == "completed"


def test_by_policy_a_task_goes_on_when_the_limit_is_over(private_dir: Path, model: Model, cli_home: CliHome) -> None:
    daemon = Daemon(private_dir / "synapsed")
    settings = {"usage_limit": {"task": "continue", "probe": 5.0, "maximum": 5.0, "attempts": 30}}
    agent = RealAgent.configured("claude", daemon, model, cli_home("claude"), settings)
    word, over = nonce(), time.time() + 10
    try:
        done = agent.ask(f"[[limit:1200 until:{over:.0f}]] {word}")
        assert done.code == 0, f"{done.err}\n{agent.screen()}"
        assert model.submissions(word) == 1, "the message itself was typed once"
        told = [request.user for request in model.requests() if "synapse-system" in request.user]
        assert any("usage limit is over" in text for text in told)
        agent.ask_exactly(f"And {nonce()}?")
    finally:
        daemon.end()


def test_a_conversation_that_the_program_makes_shorter_goes_on(start_agent: StartAgent) -> None:
    agent = start_agent("opencode")
    done = agent.ask(f"[[overlong]] {nonce()}")
    assert (done.code, bool(done.out.strip())) == (0, True), f"{done.err}\n{agent.screen()}"
    agent.ask_exactly(f"And {nonce()}?")
