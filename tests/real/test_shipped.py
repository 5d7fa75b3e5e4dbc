"""The programs whose profiles are shipped besides the four: each started by its name alone, without an option. Of some,
an older version, too, which works otherwise.

Where they are not installed (`python -m tests.real.shipped install`; the older ones: `tests.real.strangers`) they are
skipped.
"""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from tests.real import programs, shipped, strangers
from tests.real.agents import RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.real.script import expected_answer
from tests.real.shipped import PROGRAMS
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

EXACT = ("lines200", "fenced", "japanese", "short", "short", "quotes")
DRAWN = ("lines200", "lines20", "japanese", "short", "short", "lines20")
"""Without markup, which a screen has as it is drawn."""

OLDER = {"pi-0.74.2": strangers.NPM}
"""Its answers are read off its screen."""

each = pytest.mark.parametrize("version", [*PROGRAMS, *OLDER])
of_a_terminal = pytest.mark.parametrize(
    "version", [version for version in (*PROGRAMS, *OLDER) if PROGRAMS[version.partition("-")[0]].terminal]
)


def started(version: str, daemon: Daemon, model: Model, cli_home: CliHome) -> RealAgent:
    name = version.partition("-")[0]
    reason = OLDER[version].missing() if version in OLDER else None
    if reason := reason or shipped.missing(name):
        pytest.skip(reason)
    prepared = cli_home(name)
    if version in OLDER:
        prepared = programs.of_folder(prepared, OLDER[version].folder / "node_modules" / ".bin")
    return RealAgent.start(name, daemon, model, prepared)


def answer_of(daemon: Daemon, task: str) -> str:
    done = daemon.ended(task)
    assert done["status"] == "completed", done
    (said,) = [each["parts"][0]["text"] for each in done["artifacts"] if each["artifact_id"] == "answer"]
    return str(said)


@each
def test_six_turns_and_what_it_asks(version: str, daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    agent = started(version, daemon, model, cli_home)
    name = agent.name
    view = daemon.agent(name)
    if version in OLDER:
        assert f"{name}-{view['version']}" == version
        assert f"this is {view['version']}" in view["drift"]
    else:
        assert (view["version"], view["drift"]) == (view["verified"], None)
    for answer in DRAWN if version in OLDER else EXACT:
        word = nonce()
        agent.ask_exactly(f"{word} [[answer:{answer}]]")
        assert model.submissions(word) == 1
    assert {(task["exact"], task["truncated"]) for task in agent.tasks()} == {(version not in OLDER, False)}
    if not PROGRAMS[name].asks:
        made = agent.file("made")
        agent.ask_exactly(f"{nonce()} [[tool:shell-ask:touch {made}]]")
        assert made.exists()
        return
    for verb in ("approve", "deny"):
        made, word = agent.file(f"made-{verb}"), nonce()
        task = agent.send(f"{word} [[tool:shell-ask:touch {made}]]")
        asked = daemon.task_in(task, "input_required")["prompt"]
        assert asked["type"] == "permission"
        assert f"touch {made}" in f"{asked['command']} {asked['prompt']}", asked
        assert daemon.ctl(verb, task).code == 0
        daemon.ended(task)
        assert made.exists() is (verb == "approve")
        agent.ask_exactly(f"And {nonce()}.")


def test_copilots_notice_of_a_denial_is_no_answer(daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    """It ends such a turn as if well, with a notice for an answer."""
    agent = started("copilot", daemon, model, cli_home)
    task = agent.send(f"{nonce()} [[tool:shell-ask:touch {agent.file('made')}]]")
    daemon.task_in(task, "input_required")
    assert daemon.ctl("deny", task).code == 0
    done = daemon.ended(task)
    assert (done["status"], done["metadata"]["reason"]) == ("canceled", "refused"), done
    assert not agent.file("made").exists()
    agent.ask_exactly(f"And {nonce()}.")


@each
def test_a_cancel_and_priority_five(version: str, daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    agent = started(version, daemon, model, cli_home)
    name = agent.name
    pid, early = agent.pid, nonce()
    task = agent.send(f"{early} [[hold:never-{early}]]")
    assert daemon.ctl("cancel", task).code == 0
    assert daemon.ended(task)["status"] == "canceled"
    if PROGRAMS[name].deaf:  # where it had the message, it was started again, and its model hears of it once more
        model.release(f"never-{early}")
        pid = daemon.ready(name, patience=240)["pid"]
    old, waiting, new = nonce(), nonce(), nonce()
    running = agent.send(f"{old} [[hold-mid:never-{old}]] [[answer:lines20]]")
    model.wait_for_turn(old)
    daemon.task_in(running, "working")
    if PROGRAMS[name].deaf:
        eventually(lambda: "Line 002" in agent.screen().rpartition(old)[2], "its model speaks")
    queued = agent.send(f"Later {waiting}.")
    answer = daemon.ctl("send", name, "--priority", "5", "--wait", "--", f"Now {new}.")
    assert answer.out == expected_answer(f"Now {new}.") + "\n", answer.err
    assert daemon.ended(running)["status"] == "canceled"
    assert answer_of(daemon, queued) == f"Answer to {waiting}."
    assert agent.pid == pid
    assert [model.submissions(word) for word in (old, new, waiting)] == [1, 1, 1]


@each
def test_a_restart_and_kills(version: str, daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    """Of the daemon in mid-turn: nothing is lost or doubled. Of the program: its task fails, and it comes back."""
    agent = started(version, daemon, model, cli_home)
    name = agent.name
    agent.ask_exactly(f"First {nonce()}.")
    assert daemon.ctl("restart", name).code == 0
    daemon.ready(name, patience=240)
    agent.ask_exactly(f"Second {nonce()}.")
    word = nonce()
    message = f"{word} [[hold-mid:{word}]] [[answer:lines20]]"
    task = agent.send(message)
    model.wait_for_turn(word)
    daemon.kill9()
    daemon.start()
    model.release(word)
    assert answer_of(daemon, task) == expected_answer(message)
    assert model.submissions(word) == 1
    pid, word = agent.pid, nonce()
    task = agent.send(f"{word} [[hold-mid:never-{word}]] [[answer:lines20]]")
    model.wait_for_turn(word)
    os.killpg(pid, signal.SIGKILL)
    assert daemon.ended(task)["status"] == "failed"
    eventually(lambda: daemon.agent(name)["pid"] not in (None, pid), "it is started again")
    daemon.ready(name, patience=240)
    if PROGRAMS[name].repeats:
        model.release(f"never-{word}")
        assert answer_of(daemon, agent.send("Third.")) == expected_answer("[[answer:lines20]]")
    agent.ask_exactly(f"Last {nonce()}.")
    assert daemon.ctl("stop", name).code == 0


@of_a_terminal
def test_a_draft_is_kept(version: str, daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    agent = started(version, daemon, model, cli_home)
    name = agent.name
    assert daemon.ctl("keys", name, "half a thought").code == 0
    eventually(lambda: "half a thought" in agent.screen(), "the draft stands in the composer")
    word = nonce()
    task = agent.send(f"Wait {word}.")
    eventually(lambda: daemon.agent(name)["held"] == "typing", "it is held for what a person types")
    assert daemon.task(task)["status"] == "submitted"
    assert "half a thought" in agent.screen()
    assert model.submissions(word) == 0


def test_what_only_the_screen_has_of_a_long_answer_is_said_to_be_cut(
    daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    """Of pi without a record of its conversation, on the alternate screen."""
    if reason := shipped.missing("pi"):
        pytest.skip(reason)
    agent = RealAgent.start("pi", daemon, model, cli_home("pi"), "--", "--no-session")
    short, long = agent.send(f"{nonce()} [[answer:short]]"), agent.send(f"{nonce()} [[answer:lines200]]")
    told = {task: daemon.ended(task) for task in (short, long)}
    assert [(told[task]["exact"], told[task]["truncated"]) for task in (short, long)] == [(False, False), (False, True)]
    assert answer_of(daemon, long).endswith("Line 200 of a long answer that no screen holds.")


@pytest.mark.parametrize("moved", [False, True])
def test_a_conversation_of_pi_on_disk_is_adopted(moved: bool, daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    if reason := shipped.missing("pi"):
        pytest.skip(reason)
    prepared = cli_home("pi")
    if moved:
        elsewhere = (prepared.home / ".pi" / "agent").rename(prepared.home / "elsewhere")
        prepared = replace(prepared, env={**prepared.env, "PI_CODING_AGENT_DIR": str(elsewhere)})
    agent = RealAgent.start("pi", daemon, model, prepared)
    first, second = nonce(), nonce()
    agent.ask_exactly(f"First {first}.")
    assert daemon.ctl("stop", agent.name, "--remove").code == 0
    env = {**daemon.env, **prepared.env}
    (found,) = daemon.ctl("adopt", "pi", "--json", env=env).json
    assert (found["agent"], found["prompt"], Path(found["cwd"])) == (None, f"First {first}.", prepared.cwd.resolve())
    started = daemon.ctl("adopt", found["id"], "--json", env=env)
    assert started.code == 0, started.err
    again = RealAgent(started.json["name"], daemon, model, prepared)
    daemon.ready(again.name)
    again.ask_exactly(f"Next {second}.")
    (request,) = model.turns(second)
    assert first in "\n".join(request.users)
    assert daemon.agent(again.name)["conversation"]["id"] == found["id"]
    assert daemon.ctl("adopt", found["id"], env=env).code == 6


STAYS_REFUSED = ("vibe",)
"""These ask no more with a key that was refused, until they are started again."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_account_that_is_refused_costs_one_message(
    name: str, daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    agent = started(name, daemon, model, cli_home)
    words = [nonce() for _ in range(2)]
    met = agent.send(f"[[status:401]] {nonce()}")
    waiting = [agent.send(f"Later {word}.") for word in words]
    failed = daemon.task_in(met, "failed", "completed", "canceled")
    error = failed["error"] or {}
    assert (failed["status"], error.get("code"), error.get("details")) == (
        "failed",
        "AUTH_REQUIRED",
        {"held": "account"},
    ), f"{failed}\n{agent.screen()}"
    eventually(lambda: daemon.agent(name)["held"] == "account", "its messages wait")
    assert {daemon.task(task)["status"] for task in waiting} == {"submitted"}
    assert [row["kind"] for row in daemon.get("/inbox").json] == ["account"]
    if name in STAYS_REFUSED:
        assert daemon.ctl("restart", name).code == 0
    daemon.ready(name)
    assert daemon.ctl("cancel", name).code == 0
    for task, word in zip(waiting, words, strict=True):
        assert daemon.task_in(task, "completed", "failed", "canceled")["status"] == "completed"
        assert model.submissions(word) == 1
