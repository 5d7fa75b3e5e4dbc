"""Runs the tests of the gate, and its shorter forms.

    python -m tests.runs.gate                # make test: without AROUND and what is marked `slow` or `system`
    python -m tests.runs.gate all            # make check: all of the gate
    python -m tests.runs.gate fast           # make test-fast: rooms whose tests start no daemon, the first examples
    python -m tests.runs.gate changed [REV]  # make check CHANGED=REV: what a change since REV (HEAD) can reach
    python -m tests.runs.gate compile        # no test: imports all, so that what pytest compiles is in its cache
    python -m tests.runs.gate -k NAME …      # pytest's own arguments: those tests, in asyncio's debug mode

Tests with daemons, keepers and programs wait more than they compute, so there are two workers for each core, and one
more. A test that failed beside all that runs once more by itself, at most FLAKY_MAX of them: one that passes then is
named, and fails `all`. Beside them runs one turn on each real agent program, where they are installed (make clis),
inside a loopback-only namespace: the programs wait more than they compute. Each run ends with what it cost; a function
that is too dear fails `all`.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.runs import costs, machine
from tests.runs.reach import ROOT, Reach, changed
from tests.runs.table import FAST, GATE_MARKS, gate_paths

__all__ = ["main", "workers"]

FLAKY_MAX = 5
"""Failed tests that are run again: more are no flakes."""

SMOKE = "smoke"
NO_TESTS = 5
"""How pytest ends that found nothing to run."""

PYTEST = [sys.executable, "-m", "pytest", "-q"]
# Importing schemathesis' plugin takes a second in each worker; tests/api uses the library without it.
PLAIN = ["-p", "no:schemathesis", "-o", "asyncio_debug=false"]
LEAN = ["-o", "tmp_path_retention_policy=failed", "-o", "tmp_path_retention_count=1"]
CACHE = ROOT / ".pytest_cache"
MEMORY, MEMORY_MIN = Path("/dev/shm"), 4 << 30


def workers() -> int:
    return int(os.environ.get("WORKERS") or 2 * machine.cores() + 1)


def rooms() -> list[str]:
    """Returns the folders below tests that have tests."""
    return sorted({path.parent.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").rglob("test_*.py")})


def _pytest(name: str, *arguments: str, marks: str = GATE_MARKS, costs_of: str = "") -> int:
    """Runs pytest with a cache and costs of its own. Returns its exit code, 0 where there was nothing to run."""
    kept = ["-o", f"cache_dir={CACHE / name}", "--costs", str(_costs(costs_of or name))]
    _costs(costs_of or name).parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    code = subprocess.run([*PYTEST, *kept, "-m", marks, *arguments], cwd=ROOT, env=_environ(), check=False).returncode
    return 0 if code == NO_TESTS else code


def _environ() -> dict[str, str]:
    """Returns the environment that pytest gets: it keeps what it has compiled, half of what collecting takes.

    Its temporary files lie in memory where there is room, as the tests' databases wait for the disk at each commit.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return ({"PYTEST_DEBUG_TEMPROOT": str(MEMORY)} if _has_room(MEMORY) else {}) | kept


def _has_room(folder: Path) -> bool:
    """Whether files may be written and run in `folder`, MEMORY_MIN bytes of them."""
    try:
        there = os.statvfs(folder)
    except OSError:
        return False
    free = there.f_bavail * there.f_frsize
    return os.access(folder, os.W_OK | os.X_OK) and not there.f_flag & os.ST_NOEXEC and free >= MEMORY_MIN


def _costs(name: str) -> Path:
    return CACHE / name / "costs.json"


def _failed(name: str) -> list[str]:
    """Returns the tests that failed; none where something else did, such as the import of a file."""
    try:
        found: dict[str, bool] = json.loads((CACHE / name / "v" / "cache" / "lastfailed").read_text())
    except FileNotFoundError:
        return []
    return sorted(found) if all("::" in test for test in found) else []


def _run(name: str, paths: Sequence[str], *, strict: bool, marks: str = GATE_MARKS) -> int:
    """Runs tests in several workers; a few that failed run again by themselves, and are named where they pass."""
    shutil.rmtree(CACHE / name, ignore_errors=True)
    how = [*PLAIN, *LEAN, "--hypothesis-profile", "gate", *paths]
    code = _pytest(name, "-n", str(workers()), *how, marks=marks)
    failed = _failed(name)
    if code != 1 or not 0 < len(failed) <= FLAKY_MAX:
        return code
    print(f"tests.runs: {len(failed)} failed, and run once more by themselves", file=sys.stderr, flush=True)
    if _pytest(name, "--last-failed", *how, marks=marks, costs_of="alone"):
        return 1
    verdict = "they fail the gate: mend them" if strict else "the run counts as passed; they are to be mended"
    print(f"*** FLAKY, passed only by themselves ({verdict}): {' '.join(failed)} ***", file=sys.stderr, flush=True)
    return 1 if strict else 0


def _turns() -> subprocess.CompletedProcess[str]:
    """Returns how the real programs' turns ended, with what they printed."""
    arguments = ["-q", "-m", SMOKE, "--costs", str(_costs(SMOKE)), "tests/real"]
    _costs(SMOKE).unlink(missing_ok=True)
    _costs(SMOKE).parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.real.run", "--optional", *arguments]
    return subprocess.run(
        command, cwd=ROOT, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )


def _whole(*, everything: bool) -> int:
    name = "all" if everything else "test"
    marks = GATE_MARKS if everything else f"{GATE_MARKS} and not slow and not system"
    bare = machine.bare_start_ms()
    with machine.watched() as load, ThreadPoolExecutor(1) as beside:
        turns = beside.submit(_turns)
        code = _run(name, gate_paths(rooms(), around=everything), strict=everything, marks=marks)
    print(turns.result().stdout, end="", flush=True)
    code = code or turns.result().returncode
    dear = costs.tell([path for path in (_costs(name), _costs(SMOKE)) if path.exists()])
    print(f"{machine.cores()} cores, load {load}, a bare interpreter starts in {bare} ms", flush=True)
    if everything and dear:
        print(f"tests.runs: too dear for the gate ({costs.SHARE:.0%} of it): {', '.join(dear)}", file=sys.stderr)
        print(
            "  make them cheaper, mark cases `night`, or give the reason in tests/runs/costs.py, ALLOWED",
            file=sys.stderr,
        )
        return code or 1
    return code


def _fast(arguments: Sequence[str]) -> int:
    marks = f"{GATE_MARKS} and not slow"
    paths = [f"tests/{room}" for room in FAST]
    drawn = ["--hypothesis-profile", "fast"]
    return _pytest("fast", "-n", str(machine.cores()), *PLAIN, *drawn, *paths, *arguments, marks=marks)


def _changed(base: str) -> int:
    files = changed(base)
    tests = Reach().tests_of(files)
    print(f"tests.runs: {len(files)} files differ from {base}; {len(tests)} files of tests can see it", flush=True)
    return _run("changed", tests, strict=True) if tests else 0


def _compile() -> int:
    command = [*PYTEST, *PLAIN, "-qq", "--collect-only", *gate_paths(rooms(), around=True)]
    return subprocess.run(command, cwd=ROOT, env=_environ(), stdout=subprocess.DEVNULL, check=False).returncode


def main(arguments: Sequence[str]) -> int:
    match list(arguments):
        case [] | ["all"]:
            return _whole(everything=bool(arguments))
        case ["compile"]:
            return _compile()
        case ["fast", *more]:
            return _fast(more)
        case ["changed", *base]:
            return _changed(base[0] if base else "HEAD")
    return subprocess.run([*PYTEST, "-m", GATE_MARKS, *arguments], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
