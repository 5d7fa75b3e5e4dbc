"""The Program Status Protocol (OSC 7501): a program's reports of its activity, as the set of records a terminal keeps.

A report is ``key=value`` pairs joined by ``:``. It replaces the record of its ``id`` whole; the record without an id,
the root, speaks for the program itself, those below it for its parts (a subagent, a step) and never for the root.

==========  ========================================================  =============================================
key         value                                                     with
==========  ========================================================  =============================================
state       idle, working, done, blocked, error; clear removes         every report
id          1 to 8 segments of ``[A-Za-z0-9_.+-]{1,32}`` joined by /   at most 128 bytes
kind        permission, question, auth                                 blocked
progress    0 to 100                                                   working, blocked
app         ``[A-Za-z0-9_.+-]{1,32}``
title, msg  base64 of UTF-8, at most 192 and 2,048 bytes decoded
==========  ========================================================  =============================================

White space around keys and values does not count. A pair that is malformed or unknown is skipped, and the last of two
with the same key counts; a report any pair of which breaks a limit, or whose text does not decode or holds control
characters, does not count. All of it is untrusted: any output of a program, a tool's output too, can contain a report.

So if the program's `app` is known, a report without that `app` counts for a part at the most (except a `clear` without
any `app`, which programs write when they leave: it does no harm). If it is not known, a program that has reported rest
is believed about its work: until it rests again, reports of another `app` for the root come from its tools, and change
nothing. While it rests, another program may be its successor in the same terminal.
"""

import base64
import binascii
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Literal

from synapsed.shared.regex import regex

MAX_RECORDS = 256
"""Records a terminal keeps; beyond that the one updated longest ago is removed."""

MAX_KEY = 16
MAX_ID = 128
MAX_ID_SEGMENTS = 8
MAX_APP = 32
MAX_TITLE_ENCODED, MAX_TITLE = 256, 192
MAX_MESSAGE_ENCODED, MAX_MESSAGE = 2732, 2048
MAX_PROGRESS = 100

_KEY = regex(r"[a-z]+")
_VALUE = regex(r"[A-Za-z0-9_.,+/=-]*")
_SEGMENT = regex(r"[A-Za-z0-9_.+-]{1,32}")
_PROGRESS = regex(r"[0-9]{1,3}")
_BLANK = " \t\r\n"
_CLEAR = "clear"


class ProgramState(StrEnum):
    """State that a program, or a part of it, reports."""

    IDLE = "idle"
    WORKING = "working"
    DONE = "done"
    BLOCKED = "blocked"
    ERROR = "error"


_ACTIVE = frozenset({ProgramState.WORKING, ProgramState.BLOCKED})


class BlockedKind(StrEnum):
    """Reason why a blocked program waits."""

    PERMISSION = "permission"
    QUESTION = "question"
    AUTH = "auth"


@dataclass(frozen=True, slots=True)
class Record:
    """The last report for one id; ``id`` is empty for the root."""

    state: ProgramState
    id: str = ""
    kind: BlockedKind | None = None
    progress: int | None = None
    app: str | None = None
    title: str | None = None
    msg: str | None = None

    def body(self) -> str:
        """Returns the report that makes this record."""
        texts = {"title": self.title, "msg": self.msg}
        said = {
            "state": self.state,
            "id": self.id or None,
            "kind": self.kind,
            "progress": self.progress,
            "app": self.app,
        }
        said |= {key: None if text is None else base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        return ":".join(f"{key}={value}" for key, value in said.items() if value is not None)


@dataclass(frozen=True, slots=True)
class ClearRecord:
    """A report that removes the record of ``id`` and all below it; every record, if that is empty."""

    id: str
    app: str | None = None


class _Broken(Exception):
    """A report that breaks a limit: it is ignored as a whole."""


def parse_report(body: str) -> Record | ClearRecord | None:
    """Returns the report in ``body``, the text between ``7501;`` and the terminator; None if it is no valid report."""
    try:
        pairs = _pairs(body)
    except _Broken:
        return None
    state, record_id = pairs.get("state"), pairs.get("id", "")
    named = pairs.get("app", "")
    app = named if _SEGMENT.fullmatch(named) else None
    if state == _CLEAR:
        return ClearRecord(record_id, app)
    if state is None or state not in ProgramState:
        return None
    progress = pairs.get("progress", "")
    kind = pairs.get("kind", "")
    waits = state == ProgramState.BLOCKED
    active = waits or state == ProgramState.WORKING
    return Record(
        state=ProgramState(state),
        id=record_id,
        kind=BlockedKind(kind) if waits and kind in BlockedKind else None,
        progress=int(progress) if active and _PROGRESS.fullmatch(progress) and int(progress) <= MAX_PROGRESS else None,
        app=app,
        title=pairs.get("title"),
        msg=pairs.get("msg"),
    )


def _pairs(body: str) -> dict[str, str]:
    """Returns the pairs that are well-formed, texts decoded."""
    pairs: dict[str, str] = {}
    for part in body.split(":"):
        key, equals, value = part.partition("=")
        key, value = key.strip(_BLANK), value.strip(_BLANK)
        if equals and len(key) > MAX_KEY:
            raise _Broken
        if equals and _KEY.fullmatch(key) and _VALUE.fullmatch(value):
            pairs[key] = _checked(key, value)
        elif key == "id":
            raise _Broken  # without its id the report would count for the root
    return pairs


def _checked(key: str, value: str) -> str:
    """Returns the value in its valid form. It is called for each of two pairs with the same key: both must be valid."""
    match key:
        case "id":
            return _id(value)
        case "title":
            return _text(value, MAX_TITLE_ENCODED, MAX_TITLE)
        case "msg":
            return _text(value, MAX_MESSAGE_ENCODED, MAX_MESSAGE)
        case "app" if len(value) > MAX_APP:
            raise _Broken
    return value


def _id(record_id: str) -> str:
    """Returns the id. One that is outside the grammar breaks the report: it must not count for the root."""
    segments = record_id.split("/")
    if len(record_id) > MAX_ID or len(segments) > MAX_ID_SEGMENTS:
        raise _Broken
    if not all(_SEGMENT.fullmatch(segment) for segment in segments):
        raise _Broken
    return record_id


def _text(encoded: str, max_encoded: int, max_decoded: int) -> str:
    if len(encoded) > max_encoded:
        raise _Broken
    try:
        padded = encoded if encoded.endswith("=") else encoded + "=" * (-len(encoded) % 4)
        decoded = base64.b64decode(padded, validate=True)
        text = decoded.decode("utf-8")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise _Broken from error
    if len(decoded) > max_decoded or any(unicodedata.category(character) == "Cc" for character in text):
        raise _Broken
    return text


class StatusRecords:
    """The records of one terminal. Pure; bounded by `MAX_RECORDS`. `app` is the program's own, None if not known."""

    def __init__(self, records: Sequence[Record] = (), speaker: str | None = None, *, app: str | None = None) -> None:
        self._app = app
        self._records = {record.id: record for record in records[-MAX_RECORDS:]}
        """Records by id, the one updated longest ago first."""
        self.speaker = speaker
        """The `app` of the root record that rested last."""

    @classmethod
    def from_state(
        cls, state: Sequence[Mapping[str, Any]] | None, speaker: str | None = None, *, app: str | None = None
    ) -> "StatusRecords":
        """Returns the records that `to_state` returned (None: no records), with the former `speaker`."""
        records = []
        for fields in state or ():
            kind = fields.get("kind")
            known = {**fields, "state": ProgramState(fields["state"]), "kind": BlockedKind(kind) if kind else None}
            records.append(Record(**known))
        return cls(records, speaker, app=app)

    def to_state(self) -> list[dict[str, Any]]:
        """Returns the records as JSON values, for a checkpoint."""
        return [asdict(record) for record in self._records.values()]

    @property
    def root(self) -> Literal["idle", "working", "done", "blocked", "error"] | None:
        """State of the program itself; None if it has not reported its state."""
        record = self._records.get("")
        return record.state.value if record is not None else None

    @property
    def parts(self) -> tuple[str, ...]:
        """Active parts of the program, by their titles or their ids, the oldest first."""
        active = (record for record in self._records.values() if record.id and record.state in _ACTIVE)
        return tuple(record.title or record.id for record in active)

    def get(self, record_id: str = "") -> Record | None:
        """Returns the record of an id; without an id that of the root."""
        return self._records.get(record_id)

    def __len__(self) -> int:
        return len(self._records)

    def report(self, body: str) -> bool:
        """Takes the body of one report; returns True if a record changed. Invalid reports are ignored."""
        report = parse_report(body)
        if report is None or self._foreign(report):
            return False
        if isinstance(report, ClearRecord):
            return self._remove(report.id)
        if not report.id and report.state not in _ACTIVE:
            self.speaker = report.app
        changed = self._records.pop(report.id, None) != report
        self._records[report.id] = report
        if len(self._records) > MAX_RECORDS:
            del self._records[next(iter(self._records))]
        return changed

    def _foreign(self, report: Record | ClearRecord) -> bool:
        """Returns True if the report speaks for the program, and does not come from it."""
        if report.id:
            return False
        if self._app is not None:
            return report.app != self._app and (report.app is not None or isinstance(report, Record))
        root = self._records.get("")
        if root is None or root.state not in _ACTIVE or root.app is None or root.app != self.speaker:
            return False
        return report.app not in (None, root.app)

    def clear(self) -> None:
        """Removes every record: the terminal was reset, or the program is another one."""
        self._records.clear()
        self.speaker = None

    def ended(self) -> bool:
        """Notes that the program exited, or a shell prompts again: working and waiting parts have ended. Returns True
        if a record was removed."""
        gone = [record.id for record in self._records.values() if record.state in _ACTIVE]
        for record_id in gone:
            del self._records[record_id]
        return bool(gone)

    def _remove(self, record_id: str) -> bool:
        gone = [key for key in self._records if not record_id or key == record_id or key.startswith(record_id + "/")]
        for key in gone:
            del self._records[key]
        return bool(gone)
