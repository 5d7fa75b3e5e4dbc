"""Runs the demo and `make test` on every Python of PYTHONS that this machine has, and names those that it lacks.

    python -m tests.runs.pythons

Each has an environment of its own, made from nothing by `scripts/setup` in each run, in the cache beside the programs
of `make clis`.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping

from tests.runs.reach import ROOT
from tests.support.npm import cache_root

__all__ = ["PYTHONS", "chosen", "main"]

PYTHONS = ("3.12", "3.13", "3.14")
"""What pyproject.toml declares."""

SETUP = str(ROOT / "scripts" / "setup")
VERSION = "import sys; print('%d.%d' % sys.version_info[:2], '%d.%d.%d' % sys.version_info[:3])"


def chosen(paths: Iterable[str]) -> Mapping[str, tuple[str, str]]:
    """Returns the first interpreter of each version in PYTHONS: its whole version and its path."""
    found: dict[str, tuple[str, str]] = {}
    for path in paths:
        short, whole = subprocess.check_output([path, "-I", "-S", "-c", VERSION], text=True).split()
        if short in PYTHONS:
            found.setdefault(short, (whole, path))
    return found


def _passes(version: str, path: str) -> bool:
    folder = cache_root() / "pythons" / version
    folder.parent.mkdir(parents=True, exist_ok=True)
    if folder.exists():
        shutil.rmtree(folder)
    environ = {**os.environ, "PYTHON": path}
    python = str(folder / "bin" / "python")
    steps = (
        [SETUP, str(folder)],
        [python, "examples/demo.py"],
        [python, "-m", "tests.runs.gate"],
    )
    return all(subprocess.run(step, cwd=ROOT, env=environ, check=False).returncode == 0 for step in steps)


def main() -> int:
    """Returns 0 unless one that is there failed; the last line says how each fared."""
    found = chosen(subprocess.check_output([SETUP, "--list"], text=True).splitlines())
    told = []
    for version in PYTHONS:
        if version not in found:
            told.append(f"{version} not tried: it is not on this machine")
            continue
        whole, path = found[version]
        print(f"tests.runs.pythons: {whole}, {path}", flush=True)
        told.append(f"{whole} {'passed' if _passes(version, path) else 'FAILED'}")
    print("; ".join(told), flush=True)
    return 1 if any("FAILED" in one for one in told) else 0


if __name__ == "__main__":
    sys.exit(main())
