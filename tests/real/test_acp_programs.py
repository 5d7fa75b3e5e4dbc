"""Programs of the ACP registry that have no profile, started by their command alone: `start acp -- COMMAND`."""

from pathlib import Path

import pytest

from tests.real import acp_programs
from tests.real.acp_programs import ADAPTERS
from tests.real.agents import RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.real.script import expected_answer
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
    done = daemon.ctl("start", "acp", "--cwd", str(prepared.cwd), "--", *adapter.command(name), env=env)
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
    assert daemon.ctl("cancel", task).code == 0
    assert daemon.ended(task)["status"] == "canceled"
    agent.ask_exactly(nonce())
    assert daemon.ctl("stop", "acp").code == 0
    eventually(lambda: daemon.agent("acp")["state"] == "stopped", "it is stopped")
