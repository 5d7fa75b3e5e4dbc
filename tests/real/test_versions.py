"""The matrix: every version of the last six months works, or the person is told at `start` (`make test-versions`).

One row a version: four turns, messages that read like commands, a permission, an interrupt, a restart that goes on with
the conversation, and what the person was told. Versions that are not installed (`python -m tests.real.versions
install`) are skipped.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.real import programs, versions
from tests.real.agents import EVERY, RealAgent, nonce
from tests.real.model import Model
from tests.real.programs import Prepared
from tests.real.versions import Version
from tests.support.daemon import Daemon

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

VERIFIED = tuple(Version(cli, programs.version(cli)) for cli in EVERY)

TURNS = (
    "{word} [[answer:lines200]]",
    "{word} [[answer:fenced]]",
    "{word} with\nseveral lines\n\n  indented",
    "{word} [[stall:1]] [[answer:lines20]]",
)


@dataclass
class Row:
    """What one version did; `faults` are empty where all went well."""

    version: Version
    told: str = ""
    cells: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def attempt(self, what: str, work: Callable[[], None], *, unless_told: str = "") -> None:
        """Do `work` unless something failed before: the program is then in nobody knows what state. It may fail where
        the person was told these words at the start."""
        if self.faults:
            self.cells[what] = "-"
            return
        try:
            work()
        except (AssertionError, TimeoutError, KeyError) as error:
            if unless_told and unless_told in self.told:
                self.cells[what] = "told"
                return
            self.cells[what] = "NO"
            self.faults.append(f"{what}: {error}")
        else:
            self.cells[what] = "yes"

    def __str__(self) -> str:
        cells = "  ".join(f"{what} {cell:<3}" for what, cell in self.cells.items())
        return f"{self.version.cli:<9}{self.version.number:<10}{cells}  {self.told or 'nothing is told'}"


def _prepared(version: Version, folder: Path, model_url: str) -> Prepared:
    if version in VERIFIED:
        return programs.prepare(version.cli, folder / "home", folder / "project", model_url)
    if reason := versions.missing(version):
        pytest.skip(reason)
    return versions.prepare(version, folder / "home", folder / "project", model_url)


@pytest.fixture
def model() -> Iterator[Model]:
    """One for each version: the log of a failure is short."""
    with Model() as running:
        yield running


def _turns(agent: RealAgent) -> None:
    for shape in TURNS:
        word = nonce()
        agent.ask_exactly(shape.format(word=word))
        assert agent.model.submissions(word) == 1, word


def _commands(agent: RealAgent) -> None:
    """What would be a command of the program's is a message to its model, whatever the version takes for one."""
    for text in ("!touch broken-out {word}", "/clear {word}"):
        word = nonce()
        agent.ask_exactly(text.format(word=word))
        assert agent.model.submissions(word) == 1, word
    assert not agent.file("broken-out").exists()


def _permission(agent: RealAgent) -> None:
    word = nonce()
    asked = agent.ask(f"{word} [[tool:shell-ask:touch {word}]] say: It is there.")
    assert asked.code == 7, f"{asked.code} {asked.err}\n{agent.screen()}"
    task = agent.tasks()[0]
    assert agent.daemon.ctl("approve", task["id"]).code == 0
    done = agent.daemon.task_in(task["id"], "completed", "failed", "canceled")
    assert done["status"] == "completed", done
    assert agent.file(word).exists()
    assert done["artifacts"][-1]["parts"][0]["text"] == "It is there."


def _interrupt(agent: RealAgent) -> None:
    word = nonce()
    task = agent.send(f"[[hold-mid:never-{word}]] {word} [[answer:lines200]]")
    agent.model.wait_for_turn(word)
    agent.daemon.task_in(task, "working")
    canceled = agent.daemon.ctl("cancel", task)
    done = agent.daemon.task_in(task, "completed", "failed", "canceled")
    assert done["status"] == "canceled", (canceled.code, canceled.err, done)
    agent.ask_exactly(f"After that, {nonce()}?")


def _restart(agent: RealAgent) -> None:
    if agent.daemon.agent(agent.name)["task"] is not None:  # a turn that could not be stopped
        assert agent.daemon.ctl("restart", agent.name).code == 0
    before, after = nonce(), nonce()
    agent.ask_exactly(f"First {before}.")
    assert agent.daemon.ctl("restart", agent.name).code == 0
    agent.ask_exactly(f"Next {after}.")
    (request,) = agent.model.turns(after)
    assert before in "\n".join(request.users), request.users


@pytest.mark.parametrize("version", [*VERIFIED, *versions.SUPPORTED], ids=str)
def test_a_version_of_the_last_six_months_works(
    version: Version, daemon: Daemon, model: Model, private_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepared = _prepared(version, private_dir / "p", model.url)
    started = daemon.ctl("start", version.cli, "--cwd", str(prepared.cwd), env={**daemon.env, **prepared.env})
    row = Row(version, told=" ".join(started.err.split()))
    agent = RealAgent(version.cli, daemon, model, prepared)
    row.attempt("starts", lambda: daemon.ready(agent.name) and None)
    row.attempt("turns", lambda: _turns(agent))
    row.attempt("commands", lambda: _commands(agent))
    row.attempt("permission", lambda: _permission(agent))
    row.attempt("interrupt", lambda: _interrupt(agent), unless_told="a cancel may not stop it")
    row.attempt("restart", lambda: _restart(agent))
    with capsys.disabled():
        print(f"\n{row}", flush=True)
    assert not row.faults, f"{row.faults}\n{agent.screen()}\n{daemon.ctl('status', agent.name, '--explain').out}"


@pytest.mark.parametrize("version", versions.unsupported(), ids=str)
def test_who_starts_an_older_one_is_told(
    version: Version, daemon: Daemon, model: Model, private_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepared = _prepared(version, private_dir / "p", model.url)
    started = daemon.ctl("start", version.cli, "--cwd", str(prepared.cwd), env={**daemon.env, **prepared.env})
    row = Row(version, told=" ".join(started.err.split()))
    with capsys.disabled():
        print(f"\n{row}", flush=True)
    assert f"this is {version.number}, older than any it is known to work with" in row.told
    assert daemon.agent(version.cli)["version"] == version.number
