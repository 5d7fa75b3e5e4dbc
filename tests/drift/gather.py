"""What is found out about a release, or a report: its files read, its screens drawn, its recordings compared."""

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synapsed.parts.profile_tools.recordings import RecordedRun, prove, read_recordings, report_run
from synapsed.parts.profile_tools.reports.report import FILE_MAX, LABEL, read
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Profile
from synapsed.shared.files import open_regular
from tests.drift.compare import COMPARED, PLACES, AtMark, Release, Reported, at_marks, unmatched
from tests.drift.drawing import Drawn, draw
from tests.drift.packages import Installed

__all__ = ["TESTS", "Recordings", "reason", "release", "reported", "shipped"]

TESTS = Path(__file__).parents[1]
REASON_MAX = 500


def shipped(name: str) -> Profile | None:
    """Returns the shipped profile of that name."""
    return ProfileLibrary.builtin().find(name)


@dataclass(frozen=True, slots=True)
class Recordings:
    """The recordings of the verified version of a program, with what is expected of them."""

    name: str
    version: str
    root: Path = TESTS

    @property
    def place(self) -> str:
        return f"{self.name}-{self.version}"

    def run(self, scenario: str) -> RecordedRun | None:
        file = self.root / "recordings" / self.place / f"{scenario}.json"
        return read_recordings(file)[0] if file.exists() else None

    def expected(self, scenario: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((self.root / "golden" / self.place / f"{scenario}.json").read_text())[
            "marks"
        ]
        return found

    def screen(self, scenario: str, mark: str) -> Drawn | None:
        """Returns the screen at the first mark of that label."""
        run = self.run(scenario)
        offset = next((at for _, at, label in run.recording.marks if label == mark), None) if run is not None else None
        return draw(run.recording.size, run.raw, [offset])[0] if run is not None and offset is not None else None

    def first_in(self, activity: str) -> tuple[str, Drawn] | None:
        """Returns a screen that is expected to show `activity`, with its place."""
        for scenario in COMPARED:
            if self.run(scenario) is None:
                continue
            for row in self.expected(scenario):
                if row["activity"] == activity and (found := self.screen(scenario, row["mark"])) is not None:
                    return f"{self.place}/{scenario}, {row['mark']}", found
        return None


def release(profile: Profile, installed: Installed, into: Path, before: dict[str, str]) -> Release:
    """Returns all that is known of a release whose row is in `into`. Raises OSError, ValueError, SynapsedError."""
    row = json.loads((into / "row.json").read_text())
    old = Recordings(profile.name, str(profile.verified))
    marks, old_screens, new_screens, done = list[AtMark](), list[Drawn](), list[Drawn](), list[str]()
    folder = into / "recordings" / f"{profile.name}-{installed.version}"
    for scenario in COMPARED:
        known = old.run(scenario)
        if known is None or not (folder / f"{scenario}.json").exists():
            continue
        (new,) = read_recordings(folder / f"{scenario}.json")
        done.append(scenario)
        (proof,) = prove(profile.at(installed.version), [new])
        recorded = draw(known.recording.size, known.raw, [at for _, at, _ in known.recording.marks])
        again = draw(new.recording.size, new.raw, [at for _, at, _ in new.recording.marks])
        old_screens += recorded
        new_screens += again
        for n, mark in enumerate(at_marks(scenario, proof.marks, old.expected(scenario))):
            shown = again[min(n, len(again) - 1)] if again else None
            marks.append(AtMark(mark.scenario, mark.mark, mark.differences, recorded[n], shown))
    return Release(
        name=profile.name,
        verified=str(profile.verified),
        version=installed.version,
        cells=row["cells"],
        faults=row["faults"],
        before=before,
        told=row["told"],
        failed_at=_failed_at(row, old),
        marks=marks,
        recorded=done,
        unmatched=unmatched(profile.at(installed.version), old_screens, new_screens) if new_screens else [],
        proposal=_proposal(profile, folder),
    )


def _failed_at(row: dict[str, Any], old: Recordings) -> AtMark | None:
    """Returns the screen at the failure of a row, beside the recorded screen of that moment."""
    cell = next((what for what, cell in row["cells"].items() if cell == "NO"), None)
    if cell is None:
        return None
    scenario, mark = PLACES[cell]
    new = Drawn((), "", row["screen"]) if row["screen"] is not None else None
    return AtMark("row", cell, (), old.screen(scenario, mark), new)


def _proposal(profile: Profile, folder: Path) -> str | None:
    """Returns a profile that `profiles new` writes from the program's first screen; None where it was not recorded, or
    shows no composer."""
    file = folder / "start.json"
    if not file.exists():
        return None
    (run,) = read_recordings(file)
    offset = next((at for _, at, label in run.recording.marks if label == "ready"), None)
    if offset is None:
        return None
    cols, rows = run.recording.size
    name = re.sub(r"[^a-z0-9]+", "-", folder.name.lower())
    command = json.dumps([profile.argv(sys.executable)[0]])
    wanted = ["new", name, "--size", str(cols), str(rows), "--agent", profile.name, "--command", command]
    with tempfile.TemporaryDirectory(prefix="synapsed-") as home:
        done = subprocess.run(
            [sys.executable, "-m", "synapsed", "profile", *wanted, "--json"],
            env={**os.environ, "SYNAPSED_HOME": home},
            input=run.raw[:offset],
            capture_output=True,
            check=False,
        )
        if done.returncode != 0:
            return None
        return Path(json.loads(done.stdout)["file"]).read_text()


def reported(file: Path) -> Reported:
    """Returns what a report says, and what the shipped profile reads in it. Raises OSError, ValueError,
    SynapsedError."""
    with open_regular(file) as source:
        data = source.read(FILE_MAX + 1)
    report, run = read(data), report_run(file, data)
    profile = shipped(report.profile_name)
    if profile is None:
        raise ValueError(f"there is no shipped profile {report.profile_name!r}")
    version = report.versions.program or report.versions.verified
    (proof,) = prove(profile.at(version), [run])
    offset = run.recording.marks[-1][1]
    told = report.told
    old = Recordings(profile.name, str(profile.verified))
    return Reported(
        file=file.name,
        profile=report.profile_name,
        version=version or "of an unknown version",
        says=report.says or "",
        told=f"{told.activity}, by {told.evidence}" if told is not None else "",
        reads=str(next(mark["activity"] for mark in proof.marks if mark["mark"] == LABEL)),
        should_be=report.should_be,
        differences=tuple(proof.differences),
        shown=draw(run.recording.size, run.raw, [offset])[0],
        recorded=old.first_in(report.should_be) if report.should_be is not None else None,
    )


def reason(error: Exception) -> str:
    """Returns an error in one line."""
    return " ".join(str(error).split())[:REASON_MAX] or type(error).__name__
