"""`@agent message` typed in an attached terminal, on the real programs: judged by what the models were asked."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.agents import EVERY, RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


class Tmux:
    """A tmux server of its own with one window, in which a person types."""

    def __init__(self, folder: Path, argv: list[str], env: dict[str, str]) -> None:
        self._base = ["tmux", "-u", "-S", str(folder / "tmux.sock"), "-f", "/dev/null"]
        self._env = env
        self._run("new-session", "-d", "-x", "120", "-y", "40", *argv)

    def _run(self, *arguments: str) -> str:
        done = subprocess.run([*self._base, *arguments], env=self._env, capture_output=True, text=True, check=True)
        return done.stdout

    def keys(self, *keys: str) -> None:
        self._run("send-keys", *keys)

    def text(self, text: str) -> None:
        for char in text:
            self._run("send-keys", "-l", char)

    def screen(self) -> str:
        return self._run("capture-pane", "-p")

    def end(self) -> None:
        self._run("kill-server")


@pytest.fixture
def person(daemon: Daemon, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Tmux]:
    """Someone attached, in tmux, to the agent that the test's `cli` names."""
    cli: str = request.getfixturevalue("agents").name
    argv = [sys.executable, "-m", "synapsectl", "attach", cli]
    tmux = Tmux(tmp_path, argv, {**daemon.env, "TERM": "xterm-256color"})
    yield tmux
    tmux.end()


@pytest.fixture(params=EVERY)
def agents(request: pytest.FixtureRequest, daemon: Daemon, model: Model, cli_home: CliHome) -> RealAgent:
    """One of each program, and another one to write to: codex, or gemini where that is the one."""
    other = "gemini" if request.param == "codex" else "codex"
    agent = RealAgent.start(request.param, daemon, model, cli_home(request.param))
    RealAgent.start(other, daemon, model, cli_home(other), "--name", "colleague")
    return agent


def test_a_line_for_a_colleague(agents: RealAgent, person: Tmux, daemon: Daemon, model: Model) -> None:
    eventually(lambda: agents.screen().strip() == person.screen().strip() or None, "the agent's screen")
    word, busy, late = nonce(), nonce(), nonce()

    person.text(f"@colleague --response Sag {word} nun あ")
    person.keys("BSpace", "BSpace", "Enter")
    answer = eventually(lambda: "[← colleague]" in (shown := person.screen()) and shown, "its answer")
    assert model.submissions(word) == 1
    sent = model.turns(word)[0].user
    assert sent.endswith(f"Sag {word} nun"), sent
    assert word in answer.partition("[← colleague]")[2], "the answer is shown over the screen"

    person.keys("Escape")
    eventually(lambda: "[← colleague]" not in person.screen() or None, "the notice went with a key")
    eventually(lambda: word not in agents.screen().rpartition("\n\n")[2] or None, "its composer is empty")
    eventually(lambda: daemon.agent(agents.name)["held"] is None or None, "nothing holds its messages up")

    # In the middle of a turn, which goes on.
    held = agents.send(f"{busy} [[hold:{late}]] [[answer:short]]")
    model.wait_for_turn(busy)
    person.text(f"@colleague Und {late}")
    person.keys("Enter")
    model.wait_for_turn(late)
    model.release(late)
    assert daemon.task_in(held, "completed", "failed", "canceled")["status"] == "completed"
    assert [model.submissions(each) for each in (word, busy, late)] == [1, 1, 1]


@pytest.mark.parametrize("agents", ["claude"], indirect=True)
def test_a_name_that_is_no_agents_is_the_programs(agents: RealAgent, person: Tmux, model: Model) -> None:
    eventually(lambda: agents.screen().strip() == person.screen().strip() or None, "the agent's screen")
    word = nonce()
    person.text(f"@nobody {word}")
    # An Enter that comes as fast as a paste is a line break to many programs.
    eventually(lambda: model.submissions(word) or person.keys("Enter"), "the program has it")
    assert f"@nobody {word}" in model.turns(word)[0].user
