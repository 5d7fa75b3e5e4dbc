"""Makes a recording of a report, and a row of the suite that fails until the profile is mended.

    python -m tests.recordings.from_report FILE [--name NAME] [--should-be STATE]

It writes `tests/recordings/<cli>-<version>/NAME.raw`, `.json` and `.txt`, and what is expected of it,
`tests/golden/<cli>-<version>/NAME.json`; then `pytest tests/golden/test_golden.py -k NAME` is the test. For a program
that this repository has no profile of, `synapsectl profiles check PROFILE --against FILE` is one.

A new recording of the suite also wants its story and a place in the gate: `pytest tests/pty/test_recordings.py`
and `python -m scripts.chosen_recordings` say how, once the row is as it should be.

A report may come from anyone. It is read as data, within bounds; no file is overwritten, and the name of none is taken
from it but the profile's, which must be a shipped one, and the version's, of letters, digits, dots and hyphens. What is
expected of the composer and of a question is what the profile believes now: look over it.
"""

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from synapsed.errors import SynapsedError
from synapsed.parts.profile_tools.recordings import prove, report_run
from synapsed.parts.profile_tools.reports.report import FILE_MAX, LABEL, StateReport, read
from synapsed.parts.profile_tools.reports.report_verb import READS
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Profile
from synapsed.shared.files import open_regular

TESTS = Path(__file__).parents[1]
STATES = ("starting", "ready", "busy", "waiting", "unknown")
UNKNOWN_VERSION = "0"


class NotMade(Exception):
    """Error with what is to be done."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="make a recording and a failing test of a report")
    parser.add_argument("file", type=Path)
    parser.add_argument("--name", default="reported", help="of the recording; otherwise 'reported'")
    parser.add_argument("--should-be", choices=STATES, help="where the report does not say it")
    parser.add_argument("--suite", type=Path, default=TESTS, help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    try:
        for line in made(args.file, name=args.name, should_be=args.should_be, suite=args.suite):
            print(line)
    except (NotMade, SynapsedError, OSError) as error:
        print(f"{args.file}: {error}", file=sys.stderr)
        return 1
    return 0


def made(file: Path, *, name: str, should_be: str | None, suite: Path) -> list[str]:
    """Writes the files, and returns what is to be known of them. Raises NotMade, SynapsedError, OSError."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,63}", name):
        raise NotMade(f"--name {name!r}: small letters, digits and hyphens")
    with open_regular(file) as source:
        data = source.read(FILE_MAX + 1)
    report, run = read(data), report_run(file, data, should_be)
    if run.expected is None:
        raise NotMade("it does not say which state would be right: --should-be STATE")
    shipped = shipped_profile(report.profile_name)
    if shipped is None:
        raise NotMade(
            f"there is no shipped profile {report.profile_name!r}: "
            f"'synapsectl profiles check PROFILE --against {file}' is the test"
        )
    version = report.versions.program or report.versions.verified or UNKNOWN_VERSION
    believed = prove(shipped.at(version), [run])[0].marks[0]
    expected = _expected(believed, run.expected.marks[0])
    contents = _contents(report, expected, place=f"{report.profile_name}-{version}", name=name, suite=suite.resolve())
    for path in contents:
        if not path.resolve().is_relative_to(suite.resolve()):
            raise NotMade(f"{path} is not within {suite}: nothing is written")
        if path.exists() or path.is_symlink():
            raise NotMade(f"{path} is there already: give another --name")
    for path, content in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as out:
            out.write(content)
    return [*map(str, contents), *_told(report, believed, expected, shipped=shipped, version=version)]


def shipped_profile(name: str) -> Profile | None:
    return ProfileLibrary.builtin().find(name)


def _expected(believed: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the row of the mark: what is believed, but for the state and what follows from it."""
    state = wanted["activity"]
    row = {key: value for key, value in believed.items() if key != "prompt" or state == "waiting"}
    row["activity"] = state
    if state == "waiting":
        row["held"] = "dialog"
    elif state == "ready":
        row |= {"held": "typing"} if row["composer"] == "draft" else {"receives": True}
    return row


def _contents(
    report: StateReport, expected: Mapping[str, Any], *, place: str, name: str, suite: Path
) -> dict[Path, bytes]:
    folder, golden = suite / "recordings" / place, suite / "golden" / place
    version = place.removeprefix(f"{report.profile_name}-")
    record = report.record() | {"version": version, "titles": [], "statuses": [], "hooks": [], "requests": []}
    screen = "\n".join(report.recording.screen).rstrip()
    return {
        folder / f"{name}.raw": report.raw(),
        folder / f"{name}.json": json.dumps(record).encode() + b"\n",
        folder / f"{name}.txt": f"=== {LABEL} ===\n{screen}\n".encode(),
        suite / "recordings" / "hooks" / report.profile_name / f"{name}.jsonl": b"",
        golden / f"{name}.json": json.dumps({"marks": [expected]}, ensure_ascii=False, indent=1).encode() + b"\n",
    }


def _told(
    report: StateReport, believed: Mapping[str, Any], expected: Mapping[str, Any], *, shipped: Profile, version: str
) -> list[str]:
    found = [f"expected: {json.dumps(expected)}"]
    if believed["activity"] == expected["activity"]:
        found.append("the profile reads this recording as it should be already: the test does not fail")
    if report.told is not None and report.told.activity != believed["activity"]:
        said = f"{report.told.activity!a}, by {report.told.evidence!a}"
        found.append(f"the daemon said {said}, which the screens alone do not show")
    if report.recording.start == "later":
        found.append("its first screen may lack rows")
    if report.recording.altered:
        found.append("masking has changed how it is read")
    if report.versions.program is None:
        found.append(f"the program did not tell its version: {version} is a guess")
    own = shipped.at(version).model_dump(mode="json", exclude_none=True, include=set(READS))
    if keys := sorted(key for key in own.keys() | report.profile.keys() if own.get(key) != report.profile.get(key)):
        found.append(f"the profile of the report differs from the shipped one in: {', '.join(map(ascii, keys))}")
    return found


if __name__ == "__main__":
    raise SystemExit(main())
