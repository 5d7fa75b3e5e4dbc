"""The night: every section of `tests/runs/table.py` that does not count yet, and a table of all.

    python -m tests.runs.night [--section NAME] [--again] [KEY=N …]     # make nightly SECTION=soak MINUTES=60
    python -m tests.runs.night --table                                  # runs nothing

A section's result is written into the cache (`tests.support.npm.cache_root`), with the commit, the load and the time.
It counts for every checkout in which all that the section can reach (`tests.runs.reach`) has the same contents.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.runs import machine
from tests.runs.gate import workers
from tests.runs.reach import ROOT, Reach
from tests.runs.table import SECTIONS, Section, section
from tests.support.npm import cache_root

__all__ = ["Record", "fingerprint", "main", "records", "settings"]

HANGS_S = 600
"""For a test that has no deadline of its own: here each draws every example, beside whatever else the machine does."""

SHOWN = 12
"""Characters of a commit, and of a fingerprint in the name of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One run of a section: `reach` is the fingerprint of what it can reach, `told` its last line."""

    section: str
    reach: str
    commit: str
    passed: bool
    told: str
    began: str
    seconds: int
    cores: int
    load: str
    bare_ms: float
    options: Mapping[str, int]

    def counts(self, one: Section, reach: str) -> bool:
        """Returns True if it stands for `one` in a checkout whose fingerprint is `reach`."""
        enough = all(self.options.get(key, 0) >= least for key, least in one.options.items())
        return self.passed and self.section == one.name and self.reach == reach and enough


def _folder() -> Path:
    return cache_root() / "night"


def records() -> list[Record]:
    """Returns all that the cache has, oldest first."""
    found = [Record(**json.loads(path.read_text())) for path in _folder().glob("*.json")]
    return sorted(found, key=lambda record: record.began)


def fingerprint(reach: Reach, one: Section) -> str:
    """Returns the hash of all that a section can reach."""
    also = [f"tests/{room}" for room in one.runs_too]
    return reach.fingerprint([*one.paths, *also], [*one.command[:1], *one.install])


def settings(one: Section, given: Mapping[str, int]) -> dict[str, int]:
    """Returns the section's options with what a person gave; raises SystemExit for one that it does not have."""
    for key in given:
        if key not in one.options:
            raise SystemExit(f"{one.name} has no {key}: it takes {', '.join(one.options) or 'no options'}")
    return {**one.options, **given}


def _run(one: Section, options: Mapping[str, int], log: Path) -> bool:
    environ = {**os.environ, **{key: text.format(**options) for key, text in one.environ.items()}}
    for module in one.install:
        subprocess.run([sys.executable, "-m", module, "install"], cwd=ROOT, check=True)
    with log.open("wb") as out:
        done = subprocess.run(_command(one, options), cwd=ROOT, env=environ, stdout=out, stderr=out, check=False)
    return done.returncode == 0


def _command(one: Section, options: Mapping[str, int]) -> list[str]:
    if one.command:
        return [sys.executable, "-m", *(text.format(**options) for text in one.command)]
    command = [sys.executable, "-m", "tests.real.run"] if one.name == "turns" else [sys.executable, "-m", "pytest"]
    several = ["-n", str(workers())] if one.workers else []
    return [
        *command,
        "-q",
        "-rs",
        *several,
        f"--timeout={HANGS_S}",
        "-o",
        f"cache_dir=.pytest_cache/{one.name}",
        "-m",
        one.marks,
        *one.paths,
        *(f"--ignore=tests/{room}" for room in one.besides),
    ]


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", f"--abbrev={SHOWN}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def run(one: Section, options: Mapping[str, int], reach: str) -> Record:
    """Runs a section, and writes its record."""
    _folder().mkdir(parents=True, exist_ok=True)
    log = _folder() / f"{one.name}.log"
    print(f"night: {one.name} … ({log})", flush=True)
    bare, began, commit = machine.bare_start_ms(), time.time(), _commit()
    with machine.watched() as load:
        passed = _run(one, options, log)
    record = Record(
        section=one.name,
        reach=reach,
        commit=commit,
        passed=passed,
        told=_last_line(log),
        began=datetime.fromtimestamp(began, UTC).isoformat(timespec="seconds"),
        seconds=round(time.time() - began),
        cores=machine.cores(),
        load=str(load),
        bare_ms=bare,
        options=dict(options),
    )
    path = _folder() / f"{one.name}-{reach[:SHOWN]}-{int(began)}.json"
    path.write_text(json.dumps(asdict(record), indent=1) + "\n")
    return record


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""


def table(reaches: Mapping[str, str], kept: Sequence[Record]) -> list[str]:
    """Returns the night's table in Markdown: a section's newest record that counts, else its newest."""
    rows = ["| section | counts | result | commit | took | load | cores, bare start |", "|---|---|---|---|---|---|---|"]
    for one in SECTIONS:
        own = [record for record in kept if record.section == one.name]
        counting = [record for record in own if record.counts(one, reaches[one.name])]
        if not own:
            rows.append(f"| {one.name} | no | never run here | | | | |")
            continue
        newest = (counting or own)[-1]
        asked = "".join(f" {key}={value}" for key, value in newest.options.items())
        told = newest.told if newest.passed else f"FAILED: {newest.told}"
        rows.append(
            f"| {one.name}{asked} | {'yes' if counting else 'no'} | {told} | "
            f"{newest.commit} | {newest.seconds / 60:.1f} min | {newest.load} | {newest.cores}, {newest.bare_ms} ms |"
        )
    return rows


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--section", action="append", default=[], help="this one only")
    parser.add_argument("--again", action="store_true", help="also what counts already")
    parser.add_argument("--table", action="store_true", help="run nothing")
    parser.add_argument("options", nargs="*", metavar="KEY=N", help="such as MINUTES=60")
    asked = parser.parse_args(arguments)
    try:
        wanted = [section(name) for name in asked.section] or list(SECTIONS)
        given = {key: int(value) for key, _, value in (text.partition("=") for text in asked.options)}
    except (KeyError, ValueError) as error:
        parser.error(str(error.args[0]))
    if given and len(wanted) > 1:
        parser.error("KEY=N goes with --section")
    reach = Reach()
    reaches = {one.name: fingerprint(reach, one) for one in SECTIONS}
    failed = []
    for one in [] if asked.table else wanted:
        options = settings(one, given)
        counted = any(record.counts(one, reaches[one.name]) for record in records())
        if (asked.again or not counted) and not run(one, options, reaches[one.name]).passed:
            failed.append(one.name)
    rows = table(reaches, records())
    print("\n".join(rows))
    if failed:
        print(f"night: {', '.join(failed)} failed; the logs are in {_folder()}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
