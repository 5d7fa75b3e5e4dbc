"""Judges mutants: each is planted in a worktree of its own, where first the gate's tests run, then all that there are.

Only files of tests that execute the mutant's line are run (`tests.mutants.lines`); one run of all tests, before any is
planted, tells which these are. A mutant is killed by a test that fails with it, by itself too, and passes without. A
run that takes FACTOR times as long as without the mutant, and LEAST_S at least, kills too, if it is the mutant's doing.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.mutants import lines
from tests.mutants.draw import Mutant, applied, room
from tests.runs.gate import workers
from tests.runs.reach import ROOT, Reach
from tests.runs.table import GATE_MARKS, ORDINARY_MARKS

__all__ = ["TIME_LIMIT", "Ran", "Stage", "Tree", "judge", "stages", "table"]

FACTOR, LEAST_S = 5, 120.0
FLAKES = 3
TIME_LIMIT = "the time limit"
PASSED = (0, 5)
"""How pytest ends that found no fault, or nothing to run."""

RUN = "MUTANTS_RUN"
"""The variable by which what a run has left behind is found."""

PYTEST = ("-q", "-o", "asyncio_debug=false")
GATE_ONLY = ("-p", "no:schemathesis")
"""The night needs that plugin (tests/api); importing it takes a second in each worker."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Tests that a mutant is run against; `verdict` is said of one that they kill."""

    verdict: str
    paths: tuple[str, ...]
    marks: str
    profile: str


def stages(file: str, tests: Sequence[str], reach: Reach) -> list[Stage]:
    """Of `tests`, which execute the mutant's line: the gate's of the file's room, its others; then the same at night.

    Where a room has no folder, its tests are those that import the file, or the tool's.
    """
    place = room(file).split("/")[1]
    if any((ROOT / "tests" / place).rglob("test_*.py")):
        own = [one for one in tests if one.startswith(f"tests/{place}/")]
    else:
        near, tool = reach.importers(file), "tests/synapsectl/" if file.startswith("synapsectl/") else "-"
        own = [one for one in tests if one in near or one.startswith(tool)]
    others = [one for one in tests if one not in own]
    found = [
        Stage("new", tuple(own), GATE_MARKS, "gate"),
        Stage("new, by others", tuple(others), GATE_MARKS, "gate"),
        Stage("old only", tuple(own), ORDINARY_MARKS, "suite"),
        Stage("old only", tuple(others), ORDINARY_MARKS, "suite"),
    ]
    return [one for one in found if one.paths]


@dataclass(frozen=True, slots=True)
class Ran:
    code: int | None
    failed: list[str]
    seconds: float


@dataclass(frozen=True, slots=True)
class Baseline:
    """All tests without a mutant: which files of them execute which line, and how many seconds each file takes."""

    tests: Mapping[str, Sequence[str]]
    seconds: Mapping[str, float]

    def of(self, mutant: Mutant) -> list[str]:
        if mutant.file.startswith(lines.ISOLATED):  # these tell nothing
            place = f"tests/{room(mutant.file).split('/')[1]}/"
            return sorted({*self.tests.get(_spot(mutant), ()), *(one for one in self.seconds if one.startswith(place))})
        return [*self.tests.get(_spot(mutant), ())]

    def limit_s(self, stage: Stage) -> float:
        return max(LEAST_S, FACTOR * sum(self.seconds.get(file, 0.0) for file in stage.paths))


class Tree:
    """A worktree of the commit that is checked out here, with an environment of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.commit = _git(ROOT, "rev-parse", "HEAD")
        if not (self.folder / ".git").exists():
            _git(ROOT, "worktree", "prune")
            _git(ROOT, "worktree", "add", "--detach", str(self.folder), self.commit)
        _git(self.folder, "checkout", "--force", "--detach", self.commit)
        subprocess.run(["make", "setup"], cwd=self.folder, check=True, stdout=subprocess.DEVNULL, env=_environ())
        self._python = str(self.folder / ".venv" / "bin" / "python")
        told = "import synapsed as a, synapsectl as b; print(a.__file__, b.__file__, sep='\\n')"
        done = subprocess.run(
            [self._python, "-c", told], cwd="/", env=_environ(), capture_output=True, text=True, check=False
        )
        if [Path(one).parent.parent for one in done.stdout.split()] != [self.folder] * 2:
            raise SystemExit(f"{self.folder}/.venv has another synapsed: {done.stdout}{done.stderr}")

    @contextlib.contextmanager
    def planted(self, mutant: Mutant) -> Iterator[None]:
        path = self.folder / mutant.file
        text, times = path.read_text(), path.stat()
        path.write_text(applied(text, mutant))
        try:
            yield
        finally:
            path.write_text(text)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
                compiled.unlink()

    def run(
        self, stage: Stage, *arguments: str, limit_s: float | None = None, environ: Mapping[str, str] | None = None
    ) -> Ran:
        """Runs the stage's tests; `code` is None if they took too long. Ends what they have left behind."""
        cache, name = self.folder / ".pytest_cache" / "mutants", uuid.uuid4().hex
        shutil.rmtree(cache, ignore_errors=True)
        how = [*PYTEST, *(GATE_ONLY if stage.marks == GATE_MARKS else ()), "-o", f"cache_dir={cache}"]
        how += ["--hypothesis-profile", stage.profile, "-m", stage.marks]
        command = [self._python, "-m", "pytest", *how, *arguments]
        began = time.monotonic()
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=_environ() | {RUN: name, **(environ or {})},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                code: int | None = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                _end(name)
        seconds = time.monotonic() - began
        try:
            failed = sorted(json.loads((cache / "v" / "cache" / "lastfailed").read_text()))
        except FileNotFoundError:
            failed = []
        return Ran(code, failed, round(seconds, 1))

    def baseline(self, drawn: Sequence[Mutant], paths: Sequence[str]) -> Baseline:
        """Runs the tests in `paths` with as few drawn examples as the gate has; failures do not matter to the lines."""
        folder = self.folder / ".pytest_cache" / "mutants-lines"
        shutil.rmtree(folder, ignore_errors=True)
        wanted = {one.file: sorted({other.line for other in drawn if other.file == one.file}) for one in drawn}
        environ = lines.environ(folder, self.folder, wanted)
        stage = Stage("none", tuple(paths), ORDINARY_MARKS, "gate")
        ran = self.run(stage, *lines.PLUGIN, "-n", str(workers()), *paths, environ=environ)
        if ran.code not in (*PASSED, 1):
            raise SystemExit(f"pytest ended with {ran.code} without any mutant")
        return Baseline(*lines.executed_by(folder))

    def killer(self, stage: Stage, mutant: Mutant, limit_s: float) -> str | None:
        """Returns the test that fails with the mutant, by itself too, and passes without; None if it lives.

        A run that hangs kills, if it takes less than half the limit without the mutant. Raises SystemExit if not: the
        machine is too busy to tell.
        """
        left_out = list[str]()
        for _ in range(FLAKES):
            tests = [*stage.paths, *(f"--deselect={test}" for test in left_out)]
            with self.planted(mutant):
                ran = self.run(stage, "-x", "-n", "2", *tests, limit_s=limit_s)
                failed = next(iter(ran.failed), None)
                alone = failed and self.run(stage, "-x", "-n", "0", failed, limit_s=LEAST_S)
            if ran.code in PASSED:
                return None
            if ran.code is None:
                if self.run(stage, "-n", "2", *tests, limit_s=limit_s / 2).code is None:
                    raise SystemExit(f"{limit_s / 2:.0f} s are too few without any mutant: {' '.join(stage.paths)}")
                return TIME_LIMIT
            if failed is None or not alone:
                return f"pytest ended with {ran.code}"
            if alone.code not in PASSED and self.run(stage, "-n", "0", failed, limit_s=LEAST_S).code in PASSED:
                return failed
            left_out.append(failed)
        return None


def judge(
    drawn: Sequence[Mutant], out: Path, *, folder: Path, limit: int | None, resume: bool, paths: Sequence[str]
) -> list[dict[str, Any]]:
    """Judges up to `limit` mutants that `out` has no result of by the tests in `paths`; writes it after each.

    Returns all its results.
    """
    kept: dict[str, Any] = json.loads(out.read_text()) if resume and out.exists() else {}
    results: list[dict[str, Any]] = kept.get("results", [])
    judged = {_mutant(one) for one in results}
    tree, reach = Tree(folder), Reach()
    of = {"commit": tree.commit, "drawn": [str(one) for one in drawn], "paths": [*paths]}
    told = kept.get("baseline") if all(kept.get(key) == value for key, value in of.items()) else None
    baseline = Baseline(**told) if told is not None else tree.baseline(drawn, paths)
    left = [one for one in drawn if one not in judged]
    _write(out, json.dumps(of | {"results": results, "baseline": asdict(baseline)}, indent=1))
    for number, mutant in enumerate(left[:limit], 1):
        began, verdict, killer, tests = time.monotonic(), "none", None, baseline.of(mutant)
        for stage in stages(mutant.file, tests, reach):
            killer = tree.killer(stage, mutant, baseline.limit_s(stage))
            if killer is not None:
                verdict = stage.verdict
                break
        seconds = round(time.monotonic() - began, 1)
        told = {
            "killed_by": verdict,
            "test": killer,
            "executed": bool(tests),
            "seconds": seconds,
            "commit": tree.commit,
        }
        results.append(asdict(mutant) | told)
        _write(out, json.dumps(of | {"results": results, "baseline": asdict(baseline)}, indent=1))
        print(f"{number}/{len(left)} {verdict}: {mutant} [{killer}] {seconds} s", file=sys.stderr, flush=True)
    return results


def table(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The rows of a table by room, and below it the mutants that the gate's tests let live."""
    verdicts = ("new", "new, by others", "old only", "none")
    counts = Counter((room(one["file"]), one["killed_by"]) for one in results)
    rows = [f"| room | {' | '.join(verdicts)} |", f"|---|{'---|' * len(verdicts)}"]
    for name in sorted({name for name, _ in counts}):
        rows.append(f"| {name} | {' | '.join(str(counts[name, one]) for one in verdicts)} |")
    rows.append(f"| all | {' | '.join(str(sum(one['killed_by'] == v for one in results)) for v in verdicts)} |")
    for one in results:
        if one["killed_by"] in ("old only", "none"):
            seen = "" if one["executed"] else " (no test that told its lines executed it)"
            rows.append(f"{one['killed_by']}: {_mutant(one)}{seen} {one['test'] or ''}".rstrip())
    return rows


def _spot(mutant: Mutant) -> str:
    return f"{mutant.file}:{mutant.line}"


def _mutant(result: Mapping[str, Any]) -> Mutant:
    return Mutant(**{name: result[name] for name in Mutant.__dataclass_fields__})


def _environ() -> dict[str, str]:
    """The environment without what would find the packages of another checkout."""
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL")}


def _end(name: str) -> None:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(RUN) == name:
                process.kill()


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _write(path: Path, text: str) -> None:
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)
