"""Failed turns on the real programs: the code says why, told by side channels and chrome, never by words in prose."""

import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.real import programs
from tests.real.agents import EVERY, RealAgent, StartAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.real.programs import Prepared
from tests.real.ways import typed
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

FAILURES = {"[[status:400]]": "MODEL_ERROR", "[[status:401]]": "AUTH_REQUIRED", "[[overlong]]": "CONTEXT_FULL"}

BY_ITSELF = {
    ("opencode", "[[overlong]]"),  # it makes the conversation shorter
    ("opencode", "a bill is not paid"),
    ("opencode", "no network"),
    ("codex", "no network"),
}
"""It tries again without end, or goes on."""

COUNTED = r"; (?:[Aa]ttempt #?\d|Reconnecting\.\.\. )"
"""So `status` ends while it does."""


def _impatient(prepared: Prepared) -> Prepared:
    """claude tries a refused log-in ten times, over minutes; gemini what it cannot reach."""
    if prepared.cli == "gemini":
        file = prepared.home / ".gemini" / "settings.json"
        settings = json.loads(file.read_text())
        settings["general"]["maxAttempts"] = 2
        file.write_text(json.dumps(settings))
    return replace(prepared, env={**prepared.env, "CLAUDE_CODE_MAX_RETRIES": "1"})


PROSE = (
    "say: I cannot do that: timeout, rate limit, 401, API Error: 400, context window exceeded.",
    "[[say:● API Error: 429 rate limit\n■ You've hit your usage limit. Try again in 2 hours.]]",
    "[[say:✕ [API Error: quota]\n\nPrompt is too long\nUsage limit reached for this.]]",
)


@pytest.mark.parametrize("cli", EVERY)
def test_the_code_says_why_it_failed(cli: str, daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    agent = RealAgent.start(cli, daemon, model, _impatient(cli_home(cli)))
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


ACCOUNT = {
    "401": "[[status:401]]",
    "402": "[[status:402]]",
    "404": "[[status:404]]",
    "nobody is signed in": "[[account:login]]",
    "a bill is not paid": "[[account:bill]]",
    "the model is gone": "[[account:model]]",
}
"""By the status alone, and in the words of the service."""


def _held_with(agent: RealAgent, waiting: list[str]) -> None:
    """The messages behind the one that failed wait, and a person is told once."""
    state = eventually(lambda: (a := agent.daemon.agent(agent.name))["held"] == "account" and a, "its messages wait")
    assert state["queue"] == len(waiting)
    assert {agent.daemon.task(task)["status"] for task in waiting} == {"submitted"}
    assert [row["kind"] for row in agent.daemon.get("/inbox").json] == ["account"]


def _tries_again(agent: RealAgent, met: str, waiting: list[str]) -> None:
    """It is busy with the one, and says how often it has tried."""
    eventually(lambda: re.search(COUNTED, agent.daemon.agent(agent.name)["evidence"]), "it counts")
    assert agent.daemon.task(met)["status"] == "working"
    assert {agent.daemon.task(task)["status"] for task in waiting} == {"submitted"}


def _went_once(agent: RealAgent, waiting: list[str], words: list[str]) -> None:
    for task, word in zip(waiting, words, strict=True):
        ended = agent.daemon.task_in(task, "completed", "failed", "canceled")
        assert ended["status"] == "completed", f"{ended}\n{agent.screen()}"
        assert agent.model.submissions(word) == 1
    assert agent.daemon.get("/inbox").json == []


def _failed_by_account(agent: RealAgent, met: str) -> dict[str, Any]:
    failed = agent.daemon.task_in(met, "failed", "completed", "canceled")
    error = failed["error"] or {}
    assert (failed["status"], error.get("details")) == ("failed", {"held": "account"}), f"{failed}\n{agent.screen()}"
    return error


@pytest.mark.parametrize("what", ACCOUNT)
@pytest.mark.parametrize("way", [*EVERY, "codex-typed", "opencode-typed"])
def test_a_failure_of_the_account_costs_one_message(
    way: str, what: str, daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    cli = way.removesuffix("-typed")
    if cli != way:
        typed(cli, daemon)
    agent = RealAgent.start(cli, daemon, model, _impatient(cli_home(cli)))
    first, words = nonce(), [nonce() for _ in range(3)]
    met = agent.send(f"{ACCOUNT[what]} {first}")
    waiting = [agent.send(f"Later {word}.") for word in words]
    if (cli, what) in BY_ITSELF:
        _tries_again(agent, met, waiting)
        assert daemon.ctl("cancel", met).code == 0
        _went_once(agent, waiting, words)
        return
    error = _failed_by_account(agent, met)
    if what in ("401", "nobody is signed in"):
        assert error["code"] == "AUTH_REQUIRED", error
    _held_with(agent, waiting)
    tried = len(model.turns(first))
    daemon.ready(agent.name)
    assert daemon.ctl("cancel", agent.name).code == 0
    _went_once(agent, waiting, words)
    assert len(model.turns(first)) == tried, "it was not given again"


@pytest.mark.parametrize("way", [*EVERY, "codex-typed", "opencode-typed"])
def test_without_a_network_nothing_is_lost_but_what_met_it_and_all_go_when_it_is_back(
    way: str, daemon: Daemon, private_dir: Path
) -> None:
    """codex and opencode wait for it themselves, and lose nothing at all."""
    cli = way.removesuffix("-typed")
    if cli != way:
        typed(cli, daemon)
    with Model() as there:
        prepared = programs.prepare(cli, private_dir / "home", private_dir / "project", there.url)
        agent = RealAgent.start(cli, daemon, there, _impatient(prepared))
        agent.ask_exactly(f"And {nonce()}?")
    first, words = nonce(), [nonce() for _ in range(3)]
    met = agent.send(f"Lost {first}.")
    waiting = [agent.send(f"Later {word}.") for word in words]
    if (cli, "no network") in BY_ITSELF:
        _tries_again(agent, met, waiting)
    else:
        _failed_by_account(agent, met)
        _held_with(agent, waiting)
    with Model(port=int(there.url.rpartition(":")[2])) as back:
        again = replace(agent, model=back)
        if (cli, "no network") in BY_ITSELF:
            _went_once(again, [met], [first])
        _went_once(again, waiting, words)


@pytest.mark.parametrize("cli", EVERY)
def test_a_program_that_tries_again_is_busy(cli: str, start_agent: StartAgent) -> None:
    agent, word = start_agent(cli), nonce()
    overloaded = 503 if cli == "gemini" else 529
    task_id = agent.send(f"[[status:{overloaded}x2]] {word}")
    seen: set[str] = set()
    counted: set[str] = set()

    def over() -> dict[str, Any] | None:
        state, task = agent.daemon.agent(agent.name), agent.daemon.task(task_id)
        if state["task"] == task_id and len(agent.model.turns(word)) in (1, 2):
            seen.add(state["activity"])
            counted.update(re.findall(COUNTED, state["evidence"]))
        return task if task["status"] in ("completed", "failed", "canceled") else None

    task = eventually(over, "the turn ends", patience=120)
    assert task["status"] == "completed", f"{task}\n{agent.screen()}"
    assert "waiting" not in seen
    if cli in ("claude", "opencode"):  # the others do not show the first of them
        assert counted


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
