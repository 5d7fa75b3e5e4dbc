"""Draws mutants among the lines that the night's tests cover, and judges which tests tell of them.

    python -m tests.mutants lines FILE [PYTEST ARGUMENTS]     # what the tests execute that the gate leaves out
    python -m tests.mutants draw --lines FILE --seed 1 --count 60 > mutants.json
    python -m tests.mutants judge mutants.json --out results.json [--limit N] [--resume] [--tree FOLDER] [--tests PATH]
    python -m tests.mutants table results.json

`judge` makes a worktree of the commit that is checked out here, which it keeps (`git worktree remove --force FOLDER`).
It judges by all tests, or by those that `--tests` names (`--tests tests/store tests/tasks`).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.mutants import draw, judge, lines
from tests.runs.gate import NO_TESTS, PYTEST, workers
from tests.runs.reach import ROOT
from tests.runs.table import ORDINARY_MARKS

NIGHT_ONLY = f"night and {ORDINARY_MARKS}"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    verbs = parser.add_subparsers(dest="verb", required=True)
    told = verbs.add_parser("lines")
    told.add_argument("file", type=Path)
    drawn = verbs.add_parser("draw")
    drawn.add_argument("--lines", type=Path, required=True)
    drawn.add_argument("--seed", type=int, default=1)
    drawn.add_argument("--count", type=int, default=60)
    judged = verbs.add_parser("judge")
    judged.add_argument("mutants", type=Path)
    judged.add_argument("--out", type=Path, required=True)
    judged.add_argument("--limit", type=int)
    judged.add_argument("--resume", action="store_true")
    judged.add_argument("--tree", type=Path, default=Path(tempfile.gettempdir()) / "synapsed-mutants")
    judged.add_argument("--tests", nargs="+", default=["tests"])
    shown = verbs.add_parser("table")
    shown.add_argument("results", type=Path)
    args, more = parser.parse_known_args(arguments)
    if more and args.verb != "lines":
        parser.error(f"unknown: {' '.join(more)}")
    match args.verb:
        case "lines":
            return _lines(args.file, more)
        case "draw":
            covered = json.loads(args.lines.read_text())
            texts = {file: (ROOT / file).read_text() for file in covered}
            found = draw.draw(texts, covered, seed=args.seed, count=args.count)
            print(json.dumps([asdict(one) for one in found], indent=1))
        case "judge":
            mutants = [draw.Mutant(**one) for one in json.loads(args.mutants.read_text())]
            results = judge.judge(
                mutants, args.out, folder=args.tree, limit=args.limit, resume=args.resume, paths=args.tests
            )
            print(*judge.table(results), sep="\n")
        case _:
            print(*judge.table(json.loads(args.results.read_text())["results"]), sep="\n")
    return 0


def _lines(file: Path, arguments: Sequence[str]) -> int:
    """Runs what the gate leaves out, with as many drawn examples as the gate; failures do not matter to the lines."""
    with tempfile.TemporaryDirectory() as folder:
        environ = os.environ | lines.environ(Path(folder), ROOT)
        how = [
            *lines.PLUGIN,
            "-n",
            str(workers()),
            "-o",
            "asyncio_debug=false",
            "--hypothesis-profile",
            "gate",
            "-m",
            NIGHT_ONLY,
        ]
        code = subprocess.run([*PYTEST, *how, *arguments], cwd=ROOT, env=environ, check=False).returncode
        covered = lines.executed(Path(folder), ROOT)
    file.write_text(json.dumps(covered))
    print(f"{sum(map(len, covered.values()))} lines of {len(covered)} files", file=sys.stderr)
    return code if code not in (0, 1, NO_TESTS) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
