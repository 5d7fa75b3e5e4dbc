"""Tells whether the newest releases of the programs still are as their profiles say: `make drift`.

    python -m tests.drift [PROGRAM …] [--report FILE …] [--into FOLDER]

Of each program it installs the newest release that npm or PyPI has, into a folder of its own; runs its row (turns,
permission, cancel, restart, draft) in a loopback-only namespace before the scripted model; records some scenarios
again; and has the profile read them as it reads the recordings of the verified version. FOLDER/drift.html has what
differs, with pictures of both screens, FOLDER/drift.json the same without them, FOLDER/PROGRAM.toml a profile that
`profiles new` writes from the first screen of a release that differs.

With reports (`synapsectl report`) and no program only these are read, each by the shipped profile.

The exit code is 0 if nothing differs, 1 if something does, 2 if nothing does and something could not be tried.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from synapsed.errors import SynapsedError
from synapsed.profiles.profile import Profile
from tests.drift import gather
from tests.drift.compare import Release, Reported, differs, verdict
from tests.drift.packages import NOT_TRIED, PACKAGES, Installed, NotInstalled, alone, cache, install
from tests.drift.page import page
from tests.real.run import PATIENCE_S
from tests.runs import machine

ROW_S = 3600
"""Seconds that the row of a program, and its recordings, may take."""
ENDS_S = 120
"""Seconds that it may take to end when it is told to."""

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.drift", description="The newest releases of the programs.")
    parser.add_argument("program", nargs="*", help="of which profile; otherwise all, or none where there are reports")
    parser.add_argument("--report", type=Path, nargs="+", default=[], metavar="FILE", help="what a person sent in")
    parser.add_argument("--into", type=Path, default=cache() / "page", metavar="FOLDER", help="for the page")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.program) - PACKAGES.keys()):
        reasons = "; ".join(f"{name}: {NOT_TRIED.get(name, 'no profile of that name is shipped')}" for name in unknown)
        parser.error(f"{reasons}. Those that can be tried: {', '.join(PACKAGES)}")
    names = options.program or ([] if options.report else list(PACKAGES))
    options.into.mkdir(parents=True, exist_ok=True)
    reports, not_tried = _reports(options.report)
    unread = [name for name, _ in not_tried]
    releases = [_tried(name) for name in dict.fromkeys(names)]
    found = verdict(releases, reports, unread)
    if not options.program and not options.report:
        not_tried += NOT_TRIED.items()
    (options.into / "drift.html").write_text(page(releases, reports, not_tried, found.line), errors="replace")
    document = {
        "verdict": asdict(found),
        "releases": [asdict(one) for one in releases],
        "reports": [asdict(one) for one in reports],
        "not_tried": dict(not_tried),
    }
    (options.into / "drift.json").write_text(json.dumps(_bare(document), indent=1) + "\n")
    for one in releases:
        if differs(one) and one.proposal is not None:
            (options.into / f"{one.name}.toml").write_text(one.proposal)
    for name, why in not_tried:
        print(f"{name} was not tried: {why}")
    print(f"the page: {options.into / 'drift.html'}")
    print(found.line, flush=True)
    return found.code


def _bare(value: Any) -> Any:
    """Returns a document without pictures."""
    if isinstance(value, dict):
        return {key: _bare(each) for key, each in value.items() if key != "svg"}
    return [_bare(each) for each in value] if isinstance(value, list | tuple) else value


def _reports(files: Sequence[Path]) -> tuple[list[Reported], list[tuple[str, str]]]:
    """Returns the reports, and the files that hold no report, each with the reason."""
    found, unread = list[Reported](), list[tuple[str, str]]()
    for file in files:
        try:
            found.append(gather.reported(file))
        except (OSError, ValueError, SynapsedError) as error:
            unread.append((str(file), gather.reason(error)))
    return found, unread


def _tried(name: str) -> Release:
    profile = gather.shipped(name)
    assert profile is not None, f"tests/drift/packages.py names {name!r}, which is no shipped profile"
    release = Release(name=name, verified=str(profile.verified))
    print(f"{name}: installing the newest release …", flush=True)
    try:
        with alone(cache() / name):
            installed = install(name)
            release = replace(release, version=installed.version)
            print(f"{name} {installed.version} (verified: {profile.verified}) …", flush=True)
            with machine.watched() as load:
                release = _of(profile, installed)
    except (NotInstalled, OSError, ValueError, KeyError, SynapsedError) as error:
        print(f"{name}: {gather.reason(error)}", flush=True)
        return replace(release, reason=gather.reason(error))
    changed = [mark for mark in release.marks if mark.differences]
    cells = ", ".join(f"{what} {cell}" for what, cell in release.cells.items())
    print(f"{name} {release.version}: {cells}; {len(changed)} of {len(release.marks)} marks differ; load {load}")
    for mark in changed:
        for each in mark.differences:
            print(f"  {mark.scenario}, {mark.mark}: {each!a}")
    return release


def _of(profile: Profile, installed: Installed) -> Release:
    """Runs the row of a release, and where it fails that of the verified version too."""
    into = cache() / "results" / profile.name
    shutil.rmtree(into, ignore_errors=True)
    newest, pinned = into / "newest", into / "verified"
    _run(profile.name, newest, "--version", installed.version, "--programs", str(installed.programs))
    cells = json.loads((newest / "row.json").read_text())["cells"]
    before: dict[str, str] = {}
    if "NO" in cells.values():
        _run(profile.name, pinned)
        before = json.loads((pinned / "row.json").read_text())["cells"]
    return gather.release(profile, installed, newest, before)


def _run(name: str, into: Path, *options: str) -> None:
    """Runs the row of a program in a process of its own, which enters the namespace. Raises ValueError."""
    into.mkdir(parents=True)
    command = [sys.executable, "-m", "tests.drift.row", name, str(into), *options]
    log = into / "log"
    env = {"SYNAPSED_TEST_PATIENCE_S": str(PATIENCE_S), **os.environ}
    with log.open("wb") as out:
        row = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        code = row.wait(ROW_S)
    except subprocess.TimeoutExpired:
        raise ValueError(f"its row did not end within {ROW_S} s: {log}") from None
    finally:
        _ended(row)
    if code != 0:
        said = log.read_text(errors="replace").strip().splitlines()
        raise ValueError(f"its row was not run: {said[-1] if said else f'exit code {code}'} ({log})")


def _ended(row: subprocess.Popen[bytes]) -> None:
    """Ends the process of a row, which ends its daemon and its program."""
    row.terminate()
    try:
        row.wait(ENDS_S)
    except subprocess.TimeoutExpired:
        row.kill()
        row.wait()


if __name__ == "__main__":
    raise SystemExit(main())
