"""Windows of every size and kind on an agent: it stays ready, its window is its own again afterwards, and a message has
its exact answer."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter

import pytest

from synapsed.api.attached_terminals import UNREAD_S
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
    """A terminal that a person attaches with."""

    name: str
    sizes: tuple[tuple[int, int], ...]
    """One after the other: columns and rows."""
    seen: tuple[int, int]
    """The window that the program has at the end."""
    env: Mapping[str, str | None] = field(default_factory=dict)
    leaves: Callable[[Attached], None] = Attached.detach
    ours: bool = True
    """False: the issue has it."""


WINDOWS = (
    Window(name="narrower than the prompt", sizes=((3, 24),), seen=(20, 24), ours=False),
    Window(name="one cell", sizes=((1, 1),), seen=FLOOR, ours=False),
    Window(name="two by two", sizes=((2, 2),), seen=FLOOR, ours=False),
    Window(name="9 columns", sizes=((9, 24),), seen=(20, 24), ours=False),
    Window(name="10,000 columns", sizes=((10_000, 24),), seen=(1000, 24)),
    Window(name="the largest that the kernel knows", sizes=((65_535, 65_535),), seen=(1000, 30)),
    Window(name="one row", sizes=((80, 1),), seen=(80, 5)),
    Window(name="one column, and very many rows", sizes=((1, 5_000),), seen=(20, 1000)),
    Window(name="no size", sizes=((0, 0),), seen=(80, 24)),
    Window(name="columns and no rows", sizes=((100, 0),), seen=(100, 24)),
    Window(
        name="200 sizes at once",
        sizes=(*((20 + 7 * n % 180, 5 + 5 * n % 60) for n in range(200)), (77, 33)),
        seen=(77, 33),
    ),
    Window(name="to nothing and back", sizes=((80, 24), (0, 0), (1, 1), (80, 24)), seen=(80, 24)),
    Window(name="killed in a narrow one", sizes=((2, 2),), seen=FLOOR, leaves=Attached.kill, ours=False),
    Window(name="hung up in a narrow one", sizes=((2, 2),), seen=FLOOR, leaves=Attached.hang_up, ours=False),
    Window(name="a window that is closed", sizes=((3, 3),), seen=FLOOR, leaves=Attached.close_window),
    Window(name="no name", sizes=((80, 24),), seen=(80, 24), env={"TERM": None}),
    Window(name="an empty name", sizes=((80, 24),), seen=(80, 24), env={"TERM": ""}),
    Window(name="a name that nobody knows", sizes=((5, 5),), seen=FLOOR, env={"TERM": "nonsense"}),
    Window(
        name="COLUMNS and LINES that are wrong", sizes=((66, 22),), seen=(66, 22), env={"COLUMNS": "3", "LINES": "-1"}
    ),
)


@pytest.mark.parametrize("window", WINDOWS, ids=attrgetter("name"))
@pytest.mark.parametrize("agent", AGENTS)
def test_a_window_harms_no_agent(window: Window, agent: str, person: Person, daemon: Reached) -> None:
    with Attached(person, agent, size=window.sizes[0], env=window.env) as there:
        there.attached()
        for size in window.sizes[1:]:
            there.resize(*size)
        eventually(lambda: daemon.size(agent) == window.seen, f"the program's is {window.seen}: {daemon.size(agent)}")
        eventually(lambda: daemon.ready(agent)["held"] is None, "nothing holds messages back once the window is drawn")
        assert daemon.answer(agent, "echo narrow").rstrip("\n") == "narrow"
        window.leaves(there)


def test_a_terminal_that_can_do_nothing_is_refused(person: Person, daemon: Reached) -> None:
    with Attached(person, "d", env={"TERM": "dumb"}) as there:
        assert there.process.wait(PATIENCE_S) == 2
        there.until(b"obeys escape sequences")
        assert b"\x1b" not in there.shown
        assert there.termios() == there.before


def test_windows_of_different_sizes(person: Person, daemon: Reached) -> None:
    """The one that was typed in last has its size, and who leaves takes it along."""
    with (
        Attached(person, "sh", size=(3, 3)) as narrow,
        Attached(person, "sh", size=(200, 60)) as wide,
        Attached(person, "sh", "--read-only", size=(1, 1)) as looks,
    ):
        for one in (narrow, wide, looks):
            one.attached()
        for one, size in ((narrow, FLOOR), (wide, (200, 60)), (narrow, FLOOR), (wide, (200, 60))):
            one.type(b"\x15")
            eventually(lambda size=size: daemon.size("sh") == size, f"it is {size}")
        assert told_size(daemon) == (200, 60)
        wide.kill()
        narrow.type(b"\x15")
        eventually(lambda: daemon.size("sh") == FLOOR, "the narrow one is used")
        narrow.kill()
        eventually(lambda: daemon.size("sh") == OWN, "nobody is there who types")
        looks.detach()


def test_one_that_leaves_while_another_has_its_size(person: Person, daemon: Reached) -> None:
    with Attached(person, "sh", size=(9, 9)) as first, Attached(person, "sh", size=(9, 9)) as second:
        first.attached()
        second.attached()
        first.hang_up()
        assert told_size(daemon) == (20, 9)
        second.kill()


def test_one_that_was_stopped_comes_back(person: Person, daemon: Reached) -> None:
    """For longer than the daemon waits for somebody who reads nothing."""
    with Attached(person, "sh", size=(66, 22)) as there:
        there.attached()
        eventually(lambda: daemon.size("sh") == (66, 22), "it is used")
        os.kill(there.process.pid, signal.SIGSTOP)
        daemon.answer("sh", "seq 20000")
        eventually(lambda: daemon.size("sh") == OWN, "it was let go of", patience=PATIENCE_S + UNREAD_S)
        there.type(b"echo typed mean''while\r")
        os.kill(there.process.pid, signal.SIGCONT)
        eventually(lambda: daemon.size("sh") == (66, 22), "it is back")
        there.until(b"typed meanwhile")
        there.detach()


@pytest.mark.parametrize("inner", AGENTS)
def test_an_attach_inside_of_an_attach_is_refused(inner: str, person: Person, daemon: Reached) -> None:
    """What runs in an agent's terminal is the agent, whoever types there."""
    with Attached(person, "sh", size=(100, 30)) as outer:
        outer.attached()
        outer.type(f"{person.installed.tool} attach {inner}\r".encode())
        outer.until(b"an agent may not use a terminal: ask a person")
        outer.detach()


def test_there_are_enough_of_them() -> None:
    names = [one.name for one in WINDOWS]
    assert len(names) == len(set(names))
    assert len([one for one in WINDOWS if one.ours]) >= 8
