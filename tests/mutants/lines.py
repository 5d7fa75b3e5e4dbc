"""Lines of the product that a run executes, those of module and class bodies left out: any import runs them.

Every interpreter of the run that reads PYTHONPATH takes part: workers, the process that daemons are forked from, these
daemons, and the tool. Each line is told once (`sys.monitoring`, DISABLE), by a byte in a file that all processes of a
worker have mapped: so those that are killed have told it, too. What runs in ISOLATED interpreters alone is not told,
and nothing by a process that is given another environment. A plugin of pytest: no worker tells anything before it has
its tests. After each test it writes down which of the `wanted` lines that test has executed.
"""

import json
import mmap
import os
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType

__all__ = ["FOLDER", "ISOLATED", "PLUGIN", "enable", "environ", "executed", "executed_by"]

FOLDER = "MUTANTS_LINES"
"""The variable that names the folder of a run's lines."""

ISOLATED = ("synapsed/keeper/", "synapsed/companion.py", "synapsed/hookclient.py")
"""Files that are started with `-I`."""

PLUGIN = ("-p", __name__)
NONE: Mapping[str, Sequence[int]] = {}

_COLLECTING = "MUTANTS_COLLECTING"
"""The variable of a process that is to tell nothing yet."""

_PRODUCT = ("synapsed", "synapsectl", "packages")


def environ(folder: Path, root: Path, wanted: Mapping[str, Sequence[int]] = NONE) -> dict[str, str]:
    """Makes the new `folder` ready for the lines of the checkout `root`; returns the variables for the run."""
    layout, size = dict[str, int](), 0
    for path in _sources(root):
        layout[str(path)] = size
        size += path.read_bytes().count(b"\n") + 2
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "layout.json").write_text(json.dumps(layout))
    (folder / "hits").write_bytes(bytes(size))
    spots = {f"{name}:{one}": layout[str(root / name)] + one for name, ones in wanted.items() for one in ones}
    (folder / "wanted.json").write_text(json.dumps(spots))
    (folder / "sitecustomize.py").write_text(f"import runpy\nrunpy.run_path({__file__!r})['enable']()\n")
    return {FOLDER: str(folder), _COLLECTING: "1", "PYTHONPATH": str(folder)}


def executed(folder: Path, root: Path) -> dict[str, list[int]]:
    """Returns the lines that were told, by file below `root`."""
    layout: Mapping[str, int] = json.loads((folder / "layout.json").read_text())
    found = defaultdict[str, set[int]](set)
    for told in folder.rglob("hits"):
        hits = told.read_bytes()
        ends = [*list(layout.values())[1:], len(hits)]
        for (path, begin), end in zip(layout.items(), ends, strict=True):
            if lines := {n for n, hit in enumerate(hits[begin:end]) if hit}:
                found[Path(path).relative_to(root).as_posix()] |= lines
    return {name: sorted(lines) for name, lines in found.items()}


def executed_by(folder: Path) -> tuple[dict[str, list[str]], dict[str, float]]:
    """Returns which files of tests executed each of the `wanted` lines (`FILE:LINE`), and the seconds of each file."""
    found, seconds = defaultdict[str, set[str]](set), defaultdict[str, float](float)
    for told in folder.rglob("tests"):
        for line in told.read_text().splitlines():
            test, took, *spots = json.loads(line)
            file = test.partition("::")[0]
            seconds[file] += took
            for spot in spots:
                found[spot].add(file)
    return {spot: sorted(files) for spot, files in found.items()}, dict(seconds)


class _OfTests:
    """Writes down after each test how long it took, and which of the wanted lines it has executed."""

    def __init__(self, folder: Path) -> None:
        self._spots: Mapping[str, int] = json.loads((folder / "wanted.json").read_text())
        with open(folder / "hits", "r+b") as told:
            self._hits = mmap.mmap(told.fileno(), 0, trackfd=False)
        self._file = folder / "tests"
        self._began = time.monotonic()

    def tell(self, test: str) -> None:
        found = [spot for spot, at in self._spots.items() if self._hits[at]]
        for spot in found:
            self._hits[self._spots[spot]] = 0
        if found:
            sys.monitoring.restart_events()
        now = time.monotonic()
        with self._file.open("a") as file:
            file.write(json.dumps([test, round(now - self._began, 3), *found]) + "\n")
        self._began = now


_of_tests: list[_OfTests] = []


def pytest_collection_finish() -> None:
    os.environ.pop(_COLLECTING, None)
    folder = Path(os.environ[FOLDER])
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        own = folder / worker
        own.mkdir()
        for name in ("layout.json", "wanted.json", "hits"):
            shutil.copyfile(folder / name, own / name)
        os.environ[FOLDER] = str(own)
    enable()
    _of_tests.append(_OfTests(Path(os.environ[FOLDER])))


def pytest_runtest_logfinish(nodeid: str) -> None:
    for one in _of_tests:
        one.tell(nodeid)


def enable() -> None:
    """Tells of the lines that this process executes from now on, and the processes that it forks."""
    folder = os.environ.get(FOLDER, "")
    if _COLLECTING in os.environ:
        return
    try:
        with open(f"{folder}/layout.json") as file:
            layout = json.load(file)
        with open(f"{folder}/hits", "r+b") as told:
            hits = mmap.mmap(told.fileno(), 0, trackfd=False)  # a test may count the open files of a daemon
    except OSError:  # a sandbox may hide the folder
        return

    def line(code: CodeType, number: int) -> object:
        begin = layout.get(code.co_filename)
        if begin is not None and code.co_flags & CO_OPTIMIZED:
            hits[begin + number] = 1
        return sys.monitoring.DISABLE

    sys.monitoring.use_tool_id(sys.monitoring.COVERAGE_ID, "lines")
    sys.monitoring.register_callback(sys.monitoring.COVERAGE_ID, sys.monitoring.events.LINE, line)
    sys.monitoring.set_events(sys.monitoring.COVERAGE_ID, sys.monitoring.events.LINE)


def _sources(root: Path) -> list[Path]:
    return sorted(path for package in _PRODUCT for path in (root / package).rglob("*.py"))
