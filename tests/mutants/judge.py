"""Judges mutants: each is planted in a worktree of its own, where first the gate's tests run, then all that there are.

A mutant is killed by a test that fails with it and passes without. A test that fails, and passes by itself, is a flake:
it is left out. A run that takes FACTOR times as long as without the mutant, and LEAST_S at least, kills too. Tests that
do not execute the mutant's line are not run (`tests.mutants.lines`).
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
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.mutants import lines
from tests.mutants.draw import Mutant, applied, room
from tests.runs.reach import ROOT, Reach
from tests.runs.table import GATE_MARKS, ORDINARY_MARKS

__all__ = ["Stage", "judge", "stages", "table"]

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

    @property
    def key(self) -> str:
        return " ".join((self.profile, *self.paths))


def stages(file: str, reach: Reach) -> list[Stage]:
    """The gate's tests of the file's room, those that start daemons; then the same at night.

    Where a room has no folder, it is the tests that import the file, and those of the tool that can reach it; else
    those with daemons, or whatever can reach it.
    """
    place = room(file).split("/")[1]
    reached = reach.tests_of([file])
    daemons = [test for test in reached if test.startswith("tests/daemon/") and place != "daemon"]
    if any((ROOT / "tests" / place).rglob("test_*.py")):
        own = [f"tests/{place}"]
    else:
        tool = [test for test in reached if file.startswith("synapsectl/") and test.startswith("tests/synapsectl/")]
        own = sorted({*reach.importers(file), *tool})
    own, daemons = (own, [test for test in daemons if test not in own]) if own else (daemons or reached, [])
    found = [
        Stage("new", tuple(own), GATE_MARKS, "gate"),
        Stage("new, by daemons", tuple(daemons), GATE_MARKS, "gate"),
        Stage("old only", tuple(own), ORDINARY_MARKS, "suite"),
        Stage("old only", tuple(daemons), ORDINARY_MARKS, "suite"),
    ]
    return [one for one in found if one.paths]


@dataclass(frozen=True, slots=True)
class Ran:
    code: int | None
    failed: list[str]
    seconds: float


@dataclass(frozen=True, slots=True)
class Baseline:
    """A stage without a mutant: how long it took, what fails there already, and which mutants' lines it executed."""

    seconds: float
    red: list[str]
    executed: list[str] = field(default_factory=list)

    @property
    def limit_s(self) -> float:
        return max(LEAST_S, FACTOR * self.seconds)


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

    def baseline(self, stage: Stage, of: Sequence[Mutant]) -> Baseline:
        folder = self.folder / ".pytest_cache" / "mutants-lines"
        ran = self.run(stage, *lines.PLUGIN, "-n", "2", *stage.paths, environ=lines.environ(folder, self.folder))
        if ran.code not in (*PASSED, 1):
            raise SystemExit(f"pytest ended with {ran.code} without any mutant: {stage.key}")
        hit = lines.executed(folder, self.folder)
        return Baseline(ran.seconds, ran.failed, [str(one) for one in of if one.line in hit.get(one.file, ())])

    def killer(self, stage: Stage, baseline: Baseline) -> str | None:
        """Returns the test that fails with the mutant that is planted, and does by itself; None if it lives."""
        left_out = list(baseline.red)
        for _ in range(FLAKES):
            more = [f"--deselect={test}" for test in left_out]
            ran = self.run(stage, "-x", "-n", "2", *stage.paths, *more, limit_s=baseline.limit_s)
            if ran.code in PASSED:
                return None
            if ran.code is None:
                return TIME_LIMIT
            if not ran.failed:
                return f"pytest ended with {ran.code}"
            alone = self.run(stage, "-x", "-n", "0", ran.failed[0], limit_s=LEAST_S)
            if alone.code not in PASSED:
                return ran.failed[0]
            left_out.append(ran.failed[0])
        return None


def judge(drawn: Sequence[Mutant], out: Path, *, folder: Path, limit: int | None, resume: bool) -> list[dict[str, Any]]:
    """Judges up to `limit` mutants that `out` has no result of; writes it after each. Returns all its results."""
    kept: dict[str, Any] = json.loads(out.read_text()) if resume and out.exists() else {}
    results: list[dict[str, Any]] = kept.get("results", [])
    baselines = {key: Baseline(**one) for key, one in kept.get("baselines", {}).items()}
    judged = {_mutant(one) for one in results}
    tree, reach = Tree(folder), Reach()
    of = {"commit": tree.commit, "drawn": [str(one) for one in drawn]}
    if any(kept.get(key) != value for key, value in of.items()):
        baselines = {}
    left = [one for one in drawn if one not in judged]
    for number, mutant in enumerate(left[:limit], 1):
        began, verdict, killer, executed = time.monotonic(), "none", None, False
        for stage in stages(mutant.file, reach):
            baseline = baselines.get(stage.key) or tree.baseline(stage, drawn)
            baselines[stage.key] = baseline
            if str(mutant) not in baseline.executed and not mutant.file.startswith(lines.ISOLATED):
                continue
            executed = executed or str(mutant) in baseline.executed
            with tree.planted(mutant):
                killer = tree.killer(stage, baseline)
            if killer is not None:
                verdict = stage.verdict
                break
        seconds = round(time.monotonic() - began, 1)
        told = {"killed_by": verdict, "test": killer, "executed": executed, "seconds": seconds, "commit": tree.commit}
        results.append(asdict(mutant) | told)
        state = {"results": results, "baselines": {key: asdict(one) for key, one in baselines.items()}}
        _write(out, json.dumps(of | state, indent=1))
        print(f"{number}/{len(left)} {verdict}: {mutant} [{killer}] {seconds} s", file=sys.stderr, flush=True)
    return results


def table(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The rows of a table by room, and below it the mutants that the gate's tests let live."""
    verdicts = ("new", "new, by daemons", "old only", "none")
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
