"""The cost of each test function: CPU with its children's, and seconds by the clock, all its cases together.

A plugin of pytest, which writes the costs of a run into `--costs FILE`; `tell` adds such files up.

CPU is that of the process that runs the test, of the children that it has waited for, and of the daemons that it had
forked (`warm`). A process that outlives its parent (a keeper, a program) is not counted.
"""

import json
import resource
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

__all__ = ["ALLOWED", "SHARE", "Cost", "by_function", "by_room", "tell", "too_dear"]

SHARE = 0.03
"""The part of a whole run that one function may take."""

SHOWN = 10

ALLOWED: Mapping[str, str] = {
    "tests/simulation/test_simulation.py::test_seeds": "seeds of the kernel for thirty seconds: many daemons' worth",
    "tests/parts/test_removal.py::test_the_rest_takes_a_message": "for each part a copy of the package, and a daemon",
}
"""Functions that may take more than SHARE, with the reason; at most ten."""

_MARK = pytest.StashKey[float]()


@dataclass(frozen=True, slots=True)
class Cost:
    """What a function took: cases, seconds of CPU, seconds by the clock."""

    cases: int
    cpu_s: float
    wall_s: float


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", metavar="FILE", help="write what each test function cost into FILE")


def pytest_configure(config: pytest.Config) -> None:
    if (path := config.getoption("--costs")) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Collector(Path(path)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_MARK] = _cpu()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Gives each report the CPU of its phase: xdist hands it on to the process that collects them."""
    report = yield
    now = _cpu()
    report.cpu_s = now - item.stash.get(_MARK, now)
    item.stash[_MARK] = now
    return report


class _Collector:
    """Adds up the reports of all workers, and writes `path` at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._costs: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        cost = self._costs[report.nodeid]
        cost[0] += getattr(report, "cpu_s", 0.0)
        cost[1] += report.duration

    def pytest_sessionfinish(self) -> None:
        self._path.write_text(json.dumps(self._costs))


def _cpu() -> float:
    """Seconds of CPU of this process, of the children that were waited for, and of forked daemons."""
    from tests.support import warm

    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in own) + warm.cpu_s()


def by_function(costs: Mapping[str, Sequence[float]]) -> dict[str, Cost]:
    """The costs of tests, by node id, added up by function."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
    for nodeid, (cpu, wall) in costs.items():
        one = sums[nodeid.partition("[")[0]]
        one[0] += 1
        one[1] += cpu
        one[2] += wall
    return {name: Cost(int(cases), cpu, wall) for name, (cases, cpu, wall) in sums.items()}


def by_room(costs: Mapping[str, Cost]) -> dict[str, Cost]:
    """The costs of functions added up by the folder below `tests`."""
    sums: dict[str, Cost] = {}
    for name, cost in costs.items():
        room = name.split("/")[1]
        before = sums.get(room, Cost(0, 0.0, 0.0))
        sums[room] = Cost(before.cases + cost.cases, before.cpu_s + cost.cpu_s, before.wall_s + cost.wall_s)
    return sums


def too_dear(costs: Mapping[str, Cost], allowed: Mapping[str, str] = ALLOWED) -> list[str]:
    """The functions that take more than SHARE of all and are not allowed to."""
    whole = sum(cost.cpu_s for cost in costs.values())
    return [name for name, cost in costs.items() if cost.cpu_s > SHARE * whole and name not in allowed]


def _dearest(costs: Mapping[str, Cost]) -> list[tuple[str, Cost]]:
    return sorted(costs.items(), key=lambda one: -one[1].cpu_s)


def _rows(costs: Iterable[tuple[str, Cost]], whole: float) -> Iterable[str]:
    for name, cost in costs:
        yield f"{cost.cpu_s:8.1f} {100 * cost.cpu_s / whole:5.1f} % {cost.wall_s:8.1f} {cost.cases:6}  {name}"


def tell(paths: Sequence[Path]) -> list[str]:
    """Prints the ten most expensive functions and the sum a room; returns the functions that are too dear."""
    costs = by_function({test: cost for path in paths for test, cost in json.loads(path.read_text()).items()})
    whole = sum(cost.cpu_s for cost in costs.values()) or 1.0
    head = "   CPU s   share   wall s  cases "
    print(head, "the ten most expensive functions", *_rows(_dearest(costs)[:SHOWN], whole), sep="\n")
    print(head, "by room", *_rows(_dearest(by_room(costs)), whole), sep="\n", flush=True)
    return too_dear(costs)
