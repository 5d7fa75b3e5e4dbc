"""Windows of every size on an agent: it stays ready, its window is its own again afterwards, and a message has
its exact answer."""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

import pytest

from tests.ground.attached import Attached
from tests.ground.installed import Installed
from tests.ground.person import Person, Reached, living_somewhere
from tests.support.daemon import PATIENCE_S, eventually

pytestmark = [pytest.mark.night, pytest.mark.timeout(8 * PATIENCE_S)]

OWN = (120, 40)
"""Columns and rows of a window that nobody has."""

FLOOR = (20, 5)

AGENTS = ("d", "sh")


@pytest.fixture(scope="module")
def person(installed: Installed) -> Iterator[Person]:
    """One whose daemon runs, with the scripted agent and with a shell, which knows its window."""
    with living_somewhere(installed) as person:
        person.with_dummy("d")
        assert person.ctl("start", "generic", "--name", "sh", "--", "bash", "--norc").code == 0
        person.ready("sh")
        yield person


@pytest.fixture
def daemon(person: Person) -> Iterator[Reached]:
    """Both agents are afterwards as if nobody had been there."""
    daemon = Reached(person)
    yield daemon
    for agent in AGENTS:
        daemon.ready(agent)
        eventually(lambda agent=agent: daemon.size(agent) == OWN, f"{agent} has its size again")
        assert daemon.answer(agent, "echo exactly this").rstrip("\n") == "exactly this"
    assert told_size(daemon) == OWN


def told_size(daemon: Reached) -> tuple[int, int]:
    """By the terminal that the shell is in."""
    rows, cols = daemon.answer("sh", "stty size").split()
    return int(cols), int(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A terminal that a person attaches with: columns and rows, and those that the program has then."""

    name: str
    size: tuple[int, int]
    seen: tuple[int, int]


WINDOWS = (
    Window(name="narrower than the prompt", size=(3, 24), seen=(20, 24)),
    Window(name="one cell", size=(1, 1), seen=FLOOR),
    Window(name="two by two", size=(2, 2), seen=FLOOR),
    Window(name="9 columns", size=(9, 24), seen=(20, 24)),
    Window(name="10,000 columns", size=(10_000, 24), seen=(1000, 24)),
)


@pytest.mark.parametrize("window", WINDOWS, ids=attrgetter("name"))
def test_a_window_harms_no_agent(window: Window, person: Person, daemon: Reached) -> None:
    with Attached(person, "d", size=window.size) as there:
        there.attached()
        eventually(lambda: daemon.size("d") == window.seen, f"the program's is {window.seen}: {daemon.size('d')}")
        assert daemon.ready("d")["held"] is None
        assert daemon.answer("d", "echo narrow").rstrip("\n") == "narrow"
        there.detach()
