"""What runs where: the gate, the shorter runs, and the sections of the night.

Every test function runs in the gate, in a section of the night, or in a suite on real programs that has a command of
its own; `tests/suite/test_runs.py` fails for one that runs nowhere, and for a folder that has no section.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = [
    "AROUND",
    "FAST",
    "GATE_MARKS",
    "ORDINARY_MARKS",
    "OWN_COMMAND",
    "SECTIONS",
    "Section",
    "gate_paths",
    "section",
]

_OUTSIDE = ("real", "faults", "fleet", "frameworks")
GATE_MARKS = " and ".join(f"not {mark}" for mark in (*_OUTSIDE, "night"))
ORDINARY_MARKS = " and ".join(f"not {mark}" for mark in _OUTSIDE)

FAST = (
    "agents", "channels", "clocks", "config", "documents", "keepers", "model", "profiles", "pty",
    "store", "supervisor", "tasks", "terminal",
)  # fmt: skip
"""Rooms whose tests start no daemon: `make test-fast`."""

AROUND = ("bench", "clients", "ground", "release", "service", "suite", "web")
"""Rooms with a browser, a service manager, an installed wheel or clients of other makers, and the suite's own tests:
not in `make test`."""

SOAK_MINUTES, FLEET_KILLS, FLEET_MESSAGES = 20, 30, 10_000
"""The least that counts for the night."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the night: folders below `tests`, with the marks that it runs; or a command.

    `options` are settings that a person may give (`MINUTES=60`), with the least value that counts.
    `install` are modules that are called with `install` before it starts.
    """

    name: str
    about: str
    rooms: Sequence[str] = ()
    marks: str = ORDINARY_MARKS
    command: Sequence[str] = ()
    options: Mapping[str, int] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    install: Sequence[str] = ()
    workers: bool = True
    besides: Sequence[str] = ()
    """Folders in its rooms that another section has."""
    runs_too: Sequence[str] = ()
    """Rooms of other sections that its command runs."""

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(f"tests/{room}" for room in self.rooms)


_PROGRAMS = ("tests.real.programs",)

_SCREENS = ("emulator", "golden", "pipes", "pty", "screens", "terminal")
_ROOMS = (
    "a2a", "agents", "api", "channels", "clocks", "config", "documents", "drift", "examples",
    "keeper", "keepers", "model", "outgoing", "parts", "profiles", "store", "supervisor", "tasks",
)  # fmt: skip
_DAEMONS = ("daemon", "docs", "synapsectl", "tui")

SECTIONS = (
    Section(
        name="recordings",
        about="all recordings × all tests, every drawn example of what reads a terminal",
        rooms=_SCREENS,
        install=("tests.terminal.headless",),
    ),
    Section(
        name="rooms",
        about="every wrapping of a secret, every drawn example, every state of every other room",
        rooms=_ROOMS,
        besides=("parts/fleet",),
    ),
    Section(
        name="daemons",
        about="tests with real daemons: verbs, routes, terminals; the documents' commands, typed or parsed",
        rooms=_DAEMONS,
    ),
    Section(
        name="ground",
        about="the installed wheel from every login, shell, folder, container and host",
        rooms=("ground",),
    ),
    Section(name="suite", about="the suite's own tests", rooms=("suite",)),
    Section(name="browser", about="the page in Chromium", rooms=("web",), install=("tests.web.programs",)),
    Section(name="service", about="systemd --user, units, doctor", rooms=("service",)),
    Section(
        name="release",
        about="wheel and sdist, installed from nothing; the benchmarks' sections; clients of other makers",
        rooms=("bench", "clients", "release"),
        install=("tests.clients.programs",),
    ),
    Section(
        name="fleet",
        about="real brokers and daemons that are killed at random and at each step",
        rooms=("parts/fleet", "service/test_broker_unit.py"),
        marks="fleet or not fleet",
        options={"KILLS": FLEET_KILLS, "MESSAGES": FLEET_MESSAGES},
        environ={"FLEET_EVERY": "1", "FLEET_KILLS": "{KILLS}", "FLEET_MESSAGES": "{MESSAGES}"},
        workers=False,
    ),
    Section(
        name="simulated",
        about="2,000 seeds of the simulated world, and bugs that are planted in it",
        rooms=("simulation",),
    ),
    Section(
        name="faults",
        about="kills, full disks, strangers, a reboot",
        rooms=("faults",),
        marks="faults or not faults",
        workers=False,
    ),
    Section(
        name="turns",
        about="a turn on each real program",
        rooms=("real",),
        marks="smoke or not real",
        install=_PROGRAMS,
        workers=False,
    ),
    Section(
        name="pythons",
        about="the demo and `make test`, in an environment from nothing, on every Python that this machine has",
        command=("tests.runs.pythons",),
        runs_too=(*_SCREENS, *_ROOMS, *_DAEMONS, "simulation", "faults", "real"),
    ),
    Section(
        name="soak",
        about="real agents, people, dialogs, interrupts and kills",
        command=("tests.real.soak", "--minutes", "{MINUTES}"),
        options={"MINUTES": SOAK_MINUTES},
        install=(*_PROGRAMS, "tests.real.versions", "tests.real.strangers"),
    ),
)  # fmt: skip

OWN_COMMAND = {
    "real": "make test-real, test-versions, test-shipped, test-strangers",
    "frameworks": "make test-clients",
}  # fmt: skip
"""Marks of tests that neither the gate nor the night runs whole: they take hours, or gigabytes."""


def section(name: str) -> Section:
    """Returns the section `name`; raises KeyError with the names that there are."""
    for one in SECTIONS:
        if one.name == name:
            return one
    raise KeyError(f"no section {name!r}: there are {', '.join(one.name for one in SECTIONS)}")


def gate_paths(rooms: Sequence[str], *, around: bool) -> list[str]:
    """Returns the folders that the gate runs, out of all `rooms` below tests; without AROUND for `make test`."""
    return [f"tests/{room}" for room in rooms if around or room not in AROUND]
