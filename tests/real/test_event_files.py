"""A program of which nothing is known but a profile of a user's, by its files of events and commands (qwen)."""

import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real import strangers
from tests.real.agents import RealAgent, nonce
from tests.real.model import Model
from tests.real.script import expected_answer
from tests.real.ways import FILES, note
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

N = int(os.environ.get("WAYS_N", "3"))
DRAFT = "half a draft of mine"

type Held = Callable[[], RealAgent]


@pytest.fixture
def held(request: pytest.FixtureRequest, daemon: Daemon, model: Model, private_dir: Path) -> Held:
    if (reason := strangers.missing()) is not None:
        request.config.get_terminal_writer().line(f"\n*** NOT TESTED: {reason} ***", red=True)
        pytest.skip(reason)
    shutil.copytree(Path(__file__).with_name("profiles"), daemon.home / "config" / "profiles", dirs_exist_ok=True)
    assert daemon.ctl("reload").code == 0

    def start() -> RealAgent:
        prepared = strangers.prepare("qwen", private_dir / "home", private_dir / "project", model.url)
        folder = Path(prepared.argv[0]).parent
        env = {**daemon.env, **prepared.env, "PATH": f"{folder}{os.pathsep}{prepared.env['PATH']}"}
        started = daemon.ctl("start", "qwen-files", "--cwd", str(prepared.cwd), "--json", env=env)
        assert started.code == 0, started.err
        agent = RealAgent(started.json["name"], daemon, model, prepared)
        daemon.ready(agent.name, patience=120)
        agent.ask_exactly(f"First {nonce()}.")
        assert '"evidence": "files: ' in daemon.log()
        return agent

    return start


def test_answers_are_exact_and_a_draft_is_kept(held: Held) -> None:
    agent = held()
    assert agent.daemon.ctl("keys", agent.name, DRAFT).code == 0
    eventually(lambda: DRAFT in agent.screen(), "the draft stands in the composer")
    for number in range(N):
        word = nonce()
        agent.ask_exactly(f"{word} [[answer:{('fenced', 'lines200', 'japanese', 'quotes')[number % 4]}]]")
        assert agent.model.submissions(word) == 1
    eventually(lambda: DRAFT in agent.screen(), "the draft stands in the composer")
    note(FILES, "answers exact", "yes")
    note(FILES, "while a draft stands in the composer", "messages run")


def test_a_permission_from_either_side(held: Held) -> None:
    agent = held()
    with agent.attached() as person:
        for number in range(2 * N):
            word = nonce()
            task = agent.send(f"{word} [[tool:shell:touch {word}]] say: Told {word}.")
            prompt = agent.daemon.task_in(task, "input_required")["prompt"]
            assert prompt["prompt"] == f"Allow run_shell_command?\ntouch {word}"
            if number % 2:
                person.wait_screen("Yes, allow once")
                person.settle(0.5)
                person.send("1")
            else:
                assert agent.daemon.ctl("approve", task).code == 0
            assert agent.daemon.ended(task)["status"] == "completed"
            assert agent.file(word).exists()
            eventually(lambda: agent.daemon.ctl("inbox", "--json").json == [], "nothing waits")
    note(FILES, "permission answered from elsewhere", "yes")
    note(FILES, "permission answered at the terminal", "yes")


def test_a_failure_has_its_code_and_a_turn_is_canceled(held: Held) -> None:
    agent = held()
    done = agent.daemon.ended(agent.send(f"{nonce()} [[status:400]]"))
    assert (done["status"], done["error"]["code"]) == ("failed", "MODEL_ERROR"), done
    word = nonce()
    task = agent.send(f"{word} [[hold:never-{word}]]")
    agent.model.wait_for_turn(word)
    assert agent.daemon.ctl("cancel", task).code == 0
    assert agent.daemon.ended(task)["status"] == "canceled"
    agent.ask_exactly(f"And {nonce()}.")
    note(FILES, "a turn is canceled, the next one runs", "yes, by its keys")
    note(FILES, "failures have codes", "by the program's word")


def test_the_daemon_is_killed(held: Held) -> None:
    agent, chance = held(), random.Random(7)
    for number in range(2 * N):
        word = nonce()
        message = f"[[hold-mid:{word}]] {word} [[answer:lines20]]"
        agent.daemon.ready(agent.name)
        task = agent.send(message)
        if number % 2:
            agent.model.wait_for_turn(word)
        else:
            time.sleep(chance.uniform(0.0, 0.15))  # the moment is what is varied, not waited for
        agent.daemon.kill9()
        agent.daemon.start()
        agent.model.release(word)
        done = agent.daemon.ended(task)
        assert done["status"] == "completed", done
        assert done["artifacts"][0]["parts"][0]["text"] == expected_answer(message)
        assert agent.model.submissions(word) == 1
    note(FILES, "daemon killed at every phase", "nothing lost, nothing doubled")
