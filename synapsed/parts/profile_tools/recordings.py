"""Recordings of programs as files, and the beliefs (states of the agent, as a profile reads them) that are expected at
the marks of each; `prove` lets a profile read them.

A recording NAME is `NAME.raw`, every byte that the program wrote, and `NAME.json`: the times of these bytes, and of the
marks (tests/recordings/README.md). `NAME.expected.json` has the beliefs that are expected at each mark. A report
(`reports.report`) has both in one file. A profile reads a recording in a process that has no rights: the bytes may come
from anyone.
"""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from synapsed import own_python
from synapsed.errors import ConfigError
from synapsed.parts.profile_tools.reports.report import FILE_MAX, read
from synapsed.profiles.library import Profile
from synapsed.shared.files import open_regular
from synapsed.shared.outside_json import read_json

RAW_MAX = 8 << 20
"""Most bytes of a program's output."""
JSON_MAX = 4 << 20
"""Most bytes of either document about it."""
RECORDINGS_MAX = 500
"""Most recordings that are read from a folder."""
PROVE_S = 300.0
"""Seconds that a profile may take for all its recordings."""
EXPECTED = ".expected.json"
REPORT = b'"synapsed_report"'
"""Stands in reports only."""


class Recording(BaseModel):
    """Times of a program's output and of the marks: `chunks` have seconds and the offset after the bytes that were
    read; `marks` have seconds, offset and label."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    cli: str = ""
    size: tuple[int, int] = Field(default=(120, 40), description="Columns and rows")
    chunks: list[tuple[float, int]] = Field(max_length=200_000)
    marks: list[tuple[float, int, str]] = Field(max_length=1000)

    @model_validator(mode="after")
    def _check_bounds(self) -> "Recording":
        cols, rows = self.size
        if not (20 <= cols <= 1000 and 5 <= rows <= 1000):
            raise ValueError("size must be 20 to 1000 columns and 5 to 1000 rows")
        if any(not 0 <= at < 1e6 or not 0 <= offset <= RAW_MAX for at, offset in self.places):
            raise ValueError(f"times must be 0 to 1,000,000 s, and offsets 0 to {RAW_MAX}")
        return self

    @property
    def places(self) -> Iterator[tuple[float, int]]:
        """Yields the time and the offset of every chunk and every mark."""
        yield from self.chunks
        yield from ((at, offset) for at, offset, _ in self.marks)


class Expected(BaseModel):
    """The beliefs that are expected at each mark, in their order; keys that only a running agent has, such as
    `receives`, are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    marks: list[dict[str, Any]] = Field(max_length=1000)


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One recording with all that belongs to it."""

    name: str
    recording: Recording
    raw: bytes
    expected: Expected | None


@dataclass(frozen=True, slots=True)
class Proof:
    """A profile's reading of a recording: its beliefs at each mark, and the differences from the expected ones."""

    name: str
    marks: Sequence[Mapping[str, Any]]
    differences: Sequence[str]


def read_recordings(place: Path) -> list[RecordedRun]:
    """Returns the recordings at `place`, a folder, or one of the files of a recording. Raises ConfigError."""
    if place.is_dir():
        files = sorted(file for file in place.glob("*.json") if not file.name.endswith(EXPECTED))
    else:
        files = [place.with_name(f"{_name(place)}.json")]
    if not files:
        raise ConfigError(f"{place}: no recording is there: a recording is NAME.json with NAME.raw", file=str(place))
    if len(files) > RECORDINGS_MAX:
        raise ConfigError(f"{place}: {len(files)} recordings; {RECORDINGS_MAX} are read at most", file=str(place))
    return [_read(file) for file in files]


def _name(file: Path) -> str:
    return next(
        (file.name.removesuffix(end) for end in (EXPECTED, ".json", ".raw") if file.name.endswith(end)), file.name
    )


def _read(file: Path) -> RecordedRun:
    name = _name(file)
    if REPORT in (data := _bytes(file, FILE_MAX)):
        return report_run(file, data)
    expected = file.with_name(f"{name}{EXPECTED}")
    raw = _bytes(file.with_name(f"{name}.raw"), RAW_MAX)
    recording = _document(Recording, file)
    if any(offset > len(raw) for _, offset in recording.places):
        raise ConfigError(
            f"{file}: has offsets behind the end of {name}.raw, which has {len(raw)} bytes", file=str(file)
        )
    return RecordedRun(name, recording, raw, _document(Expected, expected) if expected.exists() else None)


def report_run(file: Path, data: bytes, should_be: str | None = None) -> RecordedRun:
    """Returns the recording of a report. Raises ConfigError, InvalidRequest."""
    report = read(data)
    try:
        recording = Recording.model_validate(report.record())
    except ValidationError as error:
        raise ConfigError(f"{file}: recording: {error.errors()[0]['msg']}", file=str(file)) from None
    row = report.expected(should_be)
    return RecordedRun(_name(file), recording, report.raw(), None if row is None else Expected(marks=[row]))


def _bytes(file: Path, limit: int) -> bytes:
    try:
        with open_regular(file) as source:
            found = source.read(limit + 1)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}", file=str(file)) from None
    if len(found) > limit:
        raise ConfigError(f"{file}: is larger than {limit} bytes", file=str(file))
    return found


def _document[Kind: BaseModel](kind: type[Kind], file: Path) -> Kind:
    try:
        return kind.model_validate_json(_bytes(file, JSON_MAX))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "it"
        raise ConfigError(f"{file}: {place}: {first['msg']}", file=str(file)) from None


def prove(profile: Profile, runs: Sequence[RecordedRun]) -> list[Proof]:
    """Lets the profile read each recording, and returns the results. Raises ConfigError if it does not finish in
    time."""
    head = {
        "profile": profile.model_dump(mode="json", exclude_none=True),
        "runs": [
            {
                "name": run.name,
                "recording": run.recording.model_dump(mode="json"),
                "raw": len(run.raw),
                "expected": run.expected and run.expected.marks,
            }
            for run in runs
        ],
    }
    try:
        done = subprocess.run(
            own_python.command("synapsed.parts.profile_tools.recorded"),
            env=own_python.bare_environment(),
            input=json.dumps(head).encode() + b"\n" + b"".join(run.raw for run in runs),
            capture_output=True,
            timeout=PROVE_S,
            check=False,
        )
        return [Proof(**proof) for proof in read_json(done.stdout)]
    except (OSError, subprocess.SubprocessError, ValueError, TypeError):
        names = f"{runs[0].name} to {runs[-1].name}" if len(runs) > 1 else runs[0].name
        raise ConfigError(f"{profile.source}: reading its recordings ({names}) failed, or took too long") from None
