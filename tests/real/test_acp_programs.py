"""Programs of the ACP registry, started by their command alone (`start acp -- COMMAND`): no profile knows them."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.real import acp_programs, shipped
from tests.real.acp_programs import ADAPTERS
from tests.real.agents import RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.real.script import expected_answer
from tests.support.acp import editor
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

programs = pytest.mark.parametrize("name", ADAPTERS)


@pytest.fixture(autouse=True, scope="module")
def there() -> None:
    if reason := acp_programs.missing():
        pytest.skip(reason)


def started(name: str, daemon: Daemon, model: Model, cli_home: CliHome) -> RealAgent:
    adapter = ADAPTERS[name]
    prepared = cli_home(adapter.configured_as)
    if adapter.model is not None:
        config = prepared.home / ".codex" / "config.toml"
        config.write_text(config.read_text().replace('model = "scripted"', f'model = "{adapter.model}"'))
    env = {**daemon.env, **prepared.env}
    env["IS_SANDBOX"] = ""  # where root has that, claude's adapter asks for a mode that claude refuses root
    done = daemon.ctl("start", "acp", "--cwd", str(prepared.cwd), "--", *adapter.command(name, prepared), env=env)
    assert done.code == 0, done.err
    agent = RealAgent("acp", daemon, model, prepared)
    daemon.ready("acp", patience=240)
    return agent


@programs
def test_turns_permissions_a_kill_and_a_cancel(name: str, daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    agent = started(name, daemon, model, cli_home)
    for answer in ("short", "fenced", "japanese", "lines20"):
        agent.ask_exactly(f"{nonce()} [[answer:{answer}]]")
    for verb in ("approve", "deny"):
        made: Path = agent.file(f"made-{verb}")
        task = agent.send(f"{nonce()} [[tool:shell-ask:touch {made}]]")
        daemon.task_in(task, "input_required")
        assert daemon.ctl(verb, task).code == 0
        daemon.ended(task)
        assert made.exists() is (verb == "approve")
    word = nonce()
    message = f"[[hold-mid:{word}]] {word} [[answer:lines20]]"
    task = agent.send(message)
    model.wait_for_turn(word)
    daemon.kill9()
    daemon.start()
    model.release(word)
    done = daemon.ended(task)
    assert done["status"] == "completed", done
    (said,) = [each["parts"][0]["text"] for each in done["artifacts"] if each["artifact_id"] == "answer"]
    assert said == expected_answer(message)
    assert model.submissions(word) == 1
    word = nonce()
    task = agent.send(f"{word} [[hold-mid:never-{word}]] [[answer:lines20]]")
    model.wait_for_turn(word)
    if name in shipped.PROGRAMS and shipped.PROGRAMS[name].deaf:
        eventually(lambda: agent.screen().rpartition(word)[2].count("Line 002"), "its model speaks")
    assert daemon.ctl("cancel", task).code == 0
    assert daemon.ended(task)["status"] == "canceled"
    agent.ask_exactly(nonce())
    assert daemon.ctl("stop", "acp").code == 0
    eventually(lambda: daemon.agent("acp")["state"] == "stopped", "it is stopped")


def test_two_who_answer_opencode_at_once_are_one_answer(daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    """It reports a call as running while its question waits: whoever is first counts all the same."""
    agent = started("opencode", daemon, model, cli_home)
    for number in range(6):
        made = agent.file(f"made-{number}")
        task = agent.send(f"{nonce()} [[tool:shell-ask:touch {made}]]")
        daemon.task_in(task, "input_required")
        with ThreadPoolExecutor(2) as both:
            approved, denied = both.map(lambda verb: daemon.ctl(verb, task), ("approve", "deny"))  # noqa: B023
        assert [approved.code, denied.code].count(0) == 1, (approved, denied)
        daemon.ended(task)
        assert made.exists() is (approved.code == 0)
        agent.ask_exactly(f"And {nonce()}.")


@programs
def test_an_editor_in_front_of_one(name: str, daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    """It is told the program's commands, asked what the program asks, and has what it embeds named in the message."""
    agent = started(name, daemon, model, cli_home)
    with editor(daemon, "acp", cwd=agent.prepared.cwd) as one:
        one.new(agent.prepared.cwd)
        word, made = nonce(), agent.file("made")
        assert one.prompt(f"{word} [[answer:fenced]]")[1] == expected_answer(f"{word} [[answer:fenced]]")
        if ADAPTERS[name].tells is not None:
            told = one.see(lambda _: one.updates("available_commands_update"), "its commands")
            assert ADAPTERS[name].tells in [each["name"] for each in told[-1]["availableCommands"]]
        one.choose = lambda request: next(o["optionId"] for o in request["options"] if o["kind"] == "allow_once")
        assert one.prompt(f"{nonce()} [[tool:shell-ask:touch {made}]]")[0]["stopReason"] == "end_turn"
        assert made.exists()
        word = nonce()
        note = {"type": "resource", "resource": {"uri": f"file://{agent.prepared.cwd}/n.py#L3:9", "text": "x = 1"}}
        said = one.prompt("move it from ", note, f", {word}.")[1]
        assert said == f"Answer to {word}."
        (asked,) = model.turns(word)
        assert f"move it from {agent.prepared.cwd}/n.py:3-9 (attached: n-L3-9.py), {word}." in asked.user
