"""Four real agents in the hands of one person, in one terminal of tmux: taken back, refused with a reason, answered all
at once, hopped between, looked back at, searched."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.real.agents import EVERY, RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.real.test_person import in_inbox
from tests.support.daemon import Daemon, eventually
from tests.support.pane import Pane

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
]

PROGRAMS = os.environ.get("HANDS_PROGRAMS", " ".join(EVERY)).split()


@pytest.fixture
def agents(private_dir: Path, model: Model, cli_home: CliHome) -> Iterator[dict[str, RealAgent]]:
    daemon = Daemon(private_dir / "synapsed").start()
    try:
        yield {cli: RealAgent.start(cli, daemon, model, cli_home(cli)) for cli in PROGRAMS}
    finally:
        daemon.end()


@pytest.fixture
def daemon(agents: Mapping[str, RealAgent]) -> Daemon:
    return next(iter(agents.values())).daemon


@pytest.fixture
def pane(daemon: Daemon, private_dir: Path) -> Iterator[Pane]:
    path = f"{Path(sys.executable).parent}:{daemon.env['PATH']}"
    with Pane(private_dir, {**daemon.env, "PATH": path}, cols=120, rows=40) as pane:
        yield pane


def all_ask(agents: Mapping[str, RealAgent], daemon: Daemon) -> dict[str, str]:
    """Each asks whether it may make a file of that name; the first agent first."""
    words: dict[str, str] = {}
    for name, agent in agents.items():
        words[name] = word = nonce()
        agent.send(f"{word} [[tool:shell-ask:touch {word}]] say: Made.")
        eventually(lambda name=name: in_inbox(daemon).get(name) == "permission", f"{name} asks", patience=240.0)  # type: ignore[misc]
    return words


def reads_it(agent: RealAgent, reason: str) -> None:
    """The reason came as a message of its own, and was answered."""

    def ended() -> bool:
        return any(reason in str(task) and task["status"] == "completed" for task in agent.tasks())

    eventually(lambda: agent.model.turns(reason), f"the model of {agent.name} was told why", patience=240.0)
    eventually(ended, f"{agent.name} has answered to the reason", patience=240.0)


def test_taken_back_refused_with_a_reason_and_answered_all_at_once(
    agents: dict[str, RealAgent], daemon: Daemon, pane: Pane
) -> None:
    first, second, *others = agents
    words = all_ask(agents, daemon)
    pane.run("synapsectl", "inbox", "--hold", "30")
    pane.until(f"{len(agents)} need you", f"> {first} ")
    pane.press("y")
    pane.until("u takes it back")
    pane.press("u")
    pane.until(gone=["u takes it back"])
    assert in_inbox(daemon).get(first) == "permission"
    pane.press("g", "b")
    pane.until("because")
    reasons = {name: f"{nonce()} say: Understood." for name in (first, second)}
    pane.type(reasons[first])
    pane.press("Enter")
    pane.until("no, because")
    pane.press("q")  # what is held is given
    pane.until("shell$")
    eventually(lambda: in_inbox(daemon).get(first) != "permission", f"{first} is refused")
    reads_it(agents[first], reasons[first].partition(" ")[0])
    done = daemon.ctl("deny", second, "--because", reasons[second])
    assert done.code == 0, done.err
    reads_it(agents[second], reasons[second].partition(" ")[0])
    if others:
        pane.run("synapsectl", "approve", "--all")
    for name in others:
        eventually(agents[name].file(words[name]).exists, f"{name} made its file", patience=240.0)
    for name in (first, second):
        assert not agents[name].file(words[name]).exists(), f"{name} was refused"


def test_hops_between_those_that_ask_and_looks_back(agents: dict[str, RealAgent], daemon: Daemon, pane: Pane) -> None:
    words = all_ask(agents, daemon)
    order = list(agents)
    pane.run("synapsectl", "next")
    pane.until(words[order[0]], gone=["shell$"])
    for name in (*order[1:], order[0]):
        pane.press("C-]", "n")
        pane.until(words[name])
    pane.press("C-]", "p")
    pane.until(words[order[-1]])
    pane.press("C-]", "l")
    pane.until("NAME", "STATE", *order)
    pane.press("q")
    pane.until(words[order[-1]], gone=["STATE"])
    pane.press("C-]", "i")
    pane.until(f"{len(order)} need")
    pane.press("q")
    pane.until(words[order[-1]], gone=[f"{len(order)} need"])
    pane.press("C-]", "d")
    pane.until("shell$", gone=[words[order[-1]]])
    pane.run("synapsectl", "deny", *order)
    for name in order:
        eventually(lambda name=name: in_inbox(daemon).get(name) != "permission", f"{name} is refused", patience=240.0)  # type: ignore[misc]
        assert not agents[name].file(words[name]).exists()


def test_looks_back_at_thousands_of_lines(agents: dict[str, RealAgent], daemon: Daemon, pane: Pane) -> None:
    """Of programs that print into the terminal's own scrollback."""
    last = "line-2499"
    for name in [name for name in ("claude", "codex") if name in agents]:
        agents[name].ask_exactly(f"{nonce()} [[answer:paragraphs2500]]")
        eventually(lambda name=name: last in agents[name].screen(), f"{name} has drawn it", patience=900.0)  # type: ignore[misc]
        pane.run("synapsectl", "attach", name)
        pane.until(last, gone=["shell$"])
        pane.press("C-]", "[")
        pane.until("q live")
        pane.press("?")
        pane.type("line-0010")
        pane.press("Enter")
        pane.until("line-0010")
        pane.press("q")
        pane.until(last, gone=["q live"])
        pane.press("C-]", "d")
        pane.until("shell$", gone=["line-"])
