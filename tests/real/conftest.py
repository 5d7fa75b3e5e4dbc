"""Fixtures of the tests with real agent programs.

These tests run inside a loopback-only network namespace: `python -m tests.real.run`. Elsewhere, and where the
programs are not installed, they are skipped, loudly; under `tests.real.run` that would be a failure.
"""

import contextlib
import os
import pwd
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.real import netns, programs, shipped
from tests.real.agents import RealAgent, StartAgent
from tests.real.model import Model
from tests.real.programs import Prepared
from tests.support.daemon import Daemon

type CliHome = Callable[[str], Prepared]

_REASON = pytest.StashKey[str]()
REQUIRED = "SYNAPSED_REAL"  # set by `tests.real.run`: a skip would be a failure


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if reason := config.stash.get(_REASON, None):
        terminalreporter.section("REAL AGENT PROGRAMS WERE NOT TESTED", red=True, bold=True)
        terminalreporter.line(f"{reason}; make test-real runs them")


@pytest.fixture(scope="session")
def isolated(request: pytest.FixtureRequest) -> None:
    """Only ``lo`` is up here, and the programs are there."""
    try:
        netns.require()
        reason = programs.missing()
    except netns.NotIsolatedError as error:
        reason = str(error)
    if reason is None:
        return
    if os.environ.get(REQUIRED):
        pytest.fail(reason, pytrace=False)
    request.config.stash[_REASON] = reason
    pytest.skip(reason)


@pytest.fixture(scope="session")
def model(isolated: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    """The scripted model, shared by all tests of the session: give each message a nonce of its own."""
    with Model(log_file=tmp_path_factory.mktemp("model") / "requests.jsonl") as running:
        yield running


@pytest.fixture
def private_dir(isolated: None) -> Iterator[Path]:
    """An empty folder (0700) with a short path, removed afterwards; below the user's own cache, if that will do.

    Not below /tmp: gemini ignores system settings under a folder that others may write to.
    """
    homes = (programs.cache_dir().parent, Path(pwd.getpwuid(os.getuid()).pw_dir) / ".cache" / "synapsed")
    base = next((home for home in homes if _is_private(home)), homes[0])
    folder = base / "t" / secrets.token_hex(3)
    folder.mkdir(mode=0o700, parents=True)
    yield folder
    with contextlib.suppress(OSError):  # a program that is just ending may still write there
        shutil.rmtree(folder)


def _is_private(folder: Path) -> bool:
    """Whether nobody else can put anything into the folder's path, as far as it is there already."""
    there = [path for path in (folder, *folder.parents) if path.exists()]
    return not any(path.stat().st_mode & 0o022 for path in there)


@pytest.fixture
def cli_home(private_dir: Path, model: Model) -> CliHome:
    """`cli_home("claude")`: the program configured for the model, with a home and a project folder of its own."""

    def prepare(cli: str) -> Prepared:
        base = private_dir / f"{cli}-{secrets.token_hex(2)}"
        known = shipped if cli in shipped.PROGRAMS else programs
        return known.prepare(cli, base / "home", base / "project", model.url)

    return prepare


@pytest.fixture
def daemon(private_dir: Path) -> Iterator[Daemon]:
    """A real daemon of the test's own; it and its agents are gone afterwards."""
    running = Daemon(private_dir / "synapsed").start()
    yield running
    running.end()


@pytest.fixture
def start_agent(daemon: Daemon, model: Model, cli_home: CliHome) -> StartAgent:
    """`start_agent("claude")`: the program under the daemon, ready."""
    return lambda cli, *options: RealAgent.start(cli, daemon, model, cli_home(cli), *options)
