"""The suite is its own: `make test-faults`. What it counted is printed at the end."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.house import House
from tests.faults.ledger import Ledger
from tests.support.daemon import NO_PORTS, Daemon

LEDGER = pytest.StashKey[Ledger]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEDGER] = Ledger()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    ledger = config.stash.get(LEDGER, Ledger())
    if ledger.rows:
        terminalreporter.section("faults")
        for line in ledger.lines():
            terminalreporter.write_line(line)


@pytest.fixture
def ledger(request: pytest.FixtureRequest) -> Ledger:
    return request.config.stash[LEDGER]


@pytest.fixture
def house(tmp_path: Path, ledger: Ledger) -> Iterator[Callable[..., House]]:
    """Makes the house of a fault: `house("1", "what happens")`. In the end everything is taken down and counted."""
    made: list[House] = []

    def make(number: str, name: str, *, config: str = NO_PORTS) -> House:
        home = tmp_path / str(len(made))
        home.mkdir()
        new = House(Daemon(home, config=config), ledger.open(number, name))
        new.prepare()
        made.append(new)
        return new

    yield make
    for each in made:
        each.daemon.end()
        each.audit_processes()
    assert all(each.row.clean for each in made), [each.row for each in made]
