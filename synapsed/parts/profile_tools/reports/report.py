"""The format of a report: one JSON document, which may come from anyone. Pure.

Its output draws the screens that the program showed, in pieces with their times. It is text, so that a person can
search the file for words that must not be in it.
"""

import json
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from synapsed.errors import InvalidRequest

FILE_MAX: Final = 16 << 20
"""Bytes of a report."""
OUTPUT_MAX: Final = 4 << 20
"""Bytes of its output."""
PIECES_MAX: Final = 10_000
TEXT_MAX: Final = 10_000
CUT: Final = 1000
ITEMS_MAX: Final = 200
"""Most letters of a text, and most items of a list, in the description of the output."""
OBJECT_MAX: Final = 500_000
FORMAT: Final = 1
LABEL: Final = "reported"
"""The mark at the end of the output."""
EXPANDED: Final = 2
"""Levels of objects whose keys stand on lines of their own."""
PAIR: Final = 2

type State = Literal["starting", "ready", "busy", "waiting", "unknown"]

_Text = Annotated[str, Field(max_length=TEXT_MAX)]
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
_Version = Annotated[str, Field(pattern=r"^[0-9][0-9A-Za-z.+-]{0,63}$")]


def _small(value: dict[str, Any]) -> dict[str, Any]:
    if len(json.dumps(value)) > OBJECT_MAX:
        raise ValueError("is too long")
    return value


_Object = Annotated[dict[str, Any], AfterValidator(_small)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class ReportVersions(_Part):
    """`program` is the agent's; `verified` the one that its profile was verified on."""

    synapsed: _Text
    program: _Version | None = None
    verified: _Version | None = None
    python: _Text = ""
    system: _Text = ""


class ReportedState(_Part):
    """The state of the agent, as the daemon reported it."""

    state: _Text = ""
    activity: _Text = ""
    since: _Text | None = None
    evidence: _Text | None = None
    held: _Text | None = None
    queue: int = 0
    background: int = 0
    drift: _Text | None = None
    prompt: _Object | None = None
    explain: Annotated[list[_Object] | None, Field(max_length=ITEMS_MAX)] = None


class DrawnOutput(_Part):
    """The drawn screens."""

    size: tuple[Annotated[int, Field(ge=1, le=1000)], Annotated[int, Field(ge=1, le=1000)]]
    start: Literal["launch", "later"]
    """`launch`: the first screen is drawn from the launch of the program on. `later`: rows from before it are
    missing."""
    drawn: bool | None = None
    """True if the last screen is the one that the daemon had; None if that is not known."""
    altered: bool = False
    """True if the program's own output was read differently before it was masked."""
    output: Annotated[
        list[tuple[Annotated[float, Field(ge=0, lt=1e6)], str]], Field(min_length=1, max_length=PIECES_MAX)
    ]
    end: Annotated[float, Field(ge=0, lt=1e6)]
    reads: _Object
    """The state that the profile reads at the end, from these screens alone."""
    screen: Annotated[list[_Text], Field(max_length=1000)]


class StateReport(_Part):
    synapsed_report: Literal[1] = FORMAT
    made: _Text
    profile_name: _Name
    says: _Text | None = None
    should_be: State | None = None
    versions: ReportVersions
    told: ReportedState | None = None
    recording: DrawnOutput
    profile: _Object
    masked: dict[_Text, int]

    def raw(self) -> bytes:
        """Returns the output."""
        return "".join(text for _, text in self.recording.output).encode()

    def record(self) -> dict[str, Any]:
        """Returns all of its recording but the bytes."""
        chunks, end = list[tuple[float, int]](), 0
        for at, text in self.recording.output:
            chunks.append((at, end := end + len(text.encode())))
        marks = [(self.recording.end, end, LABEL)]
        return {"cli": self.profile_name, "size": self.recording.size, "chunks": chunks, "marks": marks}

    def expected(self, should_be: str | None = None) -> dict[str, Any] | None:
        """Returns the expected beliefs at the end: the present ones with the right state in place of the wrong one, and
        without its consequences. None if no state is said to be right."""
        wanted = should_be or self.should_be
        if wanted is None:
            return None
        left_out = {"evidence"} if wanted == "waiting" else {"evidence", "prompt"}
        return {
            "mark": LABEL,
            **{key: value for key, value in self.recording.reads.items() if key not in left_out},
            "activity": wanted,
        }


def written(report: StateReport) -> bytes:
    """Returns the file: each key, each piece of output and each row on a line of its own."""
    return _laid_out(report.model_dump(mode="json"), 0).encode() + b"\n"


def _laid_out(value: Any, depth: int) -> str:
    indent = "\n" + " " * (depth + 1)
    if isinstance(value, dict) and value and depth < EXPANDED:
        items = (f"{json.dumps(key, ensure_ascii=False)}: {_laid_out(item, depth + 1)}" for key, item in value.items())
        return f"{{{indent}{f',{indent}'.join(items)}{indent[:-1]}}}"
    if isinstance(value, list) and len(value) > PAIR and depth <= EXPANDED:
        items = (json.dumps(item, ensure_ascii=False) for item in value)
        return f"[{indent}{f',{indent}'.join(items)}{indent[:-1]}]"
    return json.dumps(value, ensure_ascii=False)


def read(data: bytes) -> StateReport:
    """Returns the report in a file. Raises InvalidRequest, which says what is wrong with it."""
    if len(data) > FILE_MAX:
        raise InvalidRequest(f"it is larger than {FILE_MAX} bytes: this is no report")
    try:
        report = StateReport.model_validate(json.loads(data))
        written(report)  # every text in it can be written
        size = len(report.raw())
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidRequest(f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"it is no JSON document of a report: {error}") from None
    times = [at for at, _ in report.recording.output]
    if times != sorted(times) or report.recording.end < times[-1]:
        raise InvalidRequest("recording.output: its times must not go back")
    if size > OUTPUT_MAX:
        raise InvalidRequest(f"recording.output: has {size} bytes; {OUTPUT_MAX} are read at most")
    return report
