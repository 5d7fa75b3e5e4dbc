"""Reads a turn in a program's own records of a conversation: JSON lines, read from the end, for facts that hooks do not
report.

`read_turn` gets the transcript's description (a profile's data) and the known facts of the turn. A partial last line
and lines that are no JSON are skipped. Everything here blocks on the disk: call it in a thread.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from synapsed.channels import Line, Transcript, at_path, holds, parse_record, text_at
from synapsed.shared.files import open_regular

Outcome = Literal["open", "ended", "interrupted", "failed", "refused"]

WINDOW_BYTES = 256 << 10
"""Bytes that are read first: enough for a turn in most conversations."""
WINDOW_MAX_BYTES = 64 << 20
"""Bytes of the longest turn that is read."""
SLACK_SECONDS = 0.25
"""Seconds by which a prompt's record may be dated before its acceptance: two processes read and round the clock."""
HELD_SECONDS = 300.0
"""Seconds by which it may be dated before its acceptance if the record has the turn's id: a program's first turn waits
for its tool servers before the hook of its prompt runs."""
AHEAD_SECONDS = 300.0
"""Seconds by which it may be dated after its acceptance: the person's own hooks may run between. A record that is
further ahead belongs to an earlier turn; the clock was set back since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnKey:
    """Known facts of a turn: its begin `since` (Unix seconds), and its id and its prompt, None if not known."""

    since: float
    turn: str | None = None
    prompt: str | None = None


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """A message of the model. `goes_on`: the turn does not end with it."""

    id: str
    text: str
    at: float
    goes_on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRead:
    """One turn in the transcript. `text` belongs to the outcome: the error, or the answer if the end itself has it.
    `at` is its time (Unix seconds)."""

    messages: tuple[TranscriptEntry, ...]
    outcome: Outcome
    at: float
    text: str | None = None
    uses: tuple[Mapping[str, Any], ...] = ()
    """Records of the usage of its requests."""
    sent_back: int = 0
    """Number of times that one of the person's own hooks has sent the model back to work."""

    @property
    def answer(self) -> str | None:
        """The last message; None if the turn went on after it and has not ended as far as is known."""
        if self.outcome == "ended" and self.text is not None:
            return self.text
        if not self.messages or (self.outcome == "open" and self.messages[-1].goes_on):
            return None
        return self.messages[-1].text

    @property
    def progress(self) -> tuple[TranscriptEntry, ...]:
        """The messages that are certainly not the last."""
        if not self.messages or self.messages[-1].goes_on:
            return self.messages
        return self.messages[:-1]


def locate(spec: Transcript, home: Path, conversation: str) -> Path | None:
    """Returns the transcript of `conversation` at the profile's place; None if there is no such file."""
    if spec.files is None:
        return None
    found = [(path.stat().st_mtime, path) for path in home.glob(spec.files.replace("{conversation}", conversation))]
    return max(found, default=(0.0, None))[1]


def read_turn(path: Path, spec: Transcript, key: TurnKey) -> TurnRead | None:
    """Returns the turn that `key` means, as far as the file has it; None if it has not begun there. Raises OSError."""
    if key.turn is not None:
        records = _records_since(path, spec, key.since - HELD_SECONDS, lambda record: _is_turn(record, spec, key.turn))
        if records and _is_turn(records[0], spec, key.turn):
            return _read(records[0], records[1:], spec)
    records = _records_since(path, spec, key.since - SLACK_SECONDS)
    begin = _begin(records, spec, key, key.since + AHEAD_SECONDS)
    if (refused := _refused(records[:begin], spec)) is not None:
        return refused
    return None if begin is None else _read(records[begin], records[begin + 1 :], spec)


def _refused(records: Sequence[Mapping[str, Any]], spec: Transcript) -> TurnRead | None:
    for record in records:
        if (line := _match(record, spec.refused, spec)) is not None:
            at = _time(record, spec) or 0.0
            return TurnRead(messages=(), outcome="refused", at=at, text=text_at(record, line, spec))
    return None


def _is_turn(record: Mapping[str, Any], spec: Transcript, turn: str | None) -> bool:
    line = _match(record, spec.user, spec)
    return line is not None and line.turn is not None and at_path(record, line.turn) == turn


def _begin(records: Sequence[Mapping[str, Any]], spec: Transcript, key: TurnKey, until: float) -> int | None:
    """Returns the prompt's place, among the prompts that follow the last one dated after `until`."""
    begins: list[tuple[int, Mapping[str, Any], Line]] = []
    for place, record in enumerate(records):
        if (line := _match(record, spec.user, spec)) is not None:
            at = _time(record, spec)
            begins = [] if at is not None and at > until else [*begins, (place, record, line)]
    if key.prompt is not None:
        wanted = key.prompt.strip()
        for at, record, line in begins:
            if line.text is not None and text_at(record, line, spec).strip() == wanted:
                return at
    return begins[0][0] if begins else None


def _read(begin: Mapping[str, Any], records: Sequence[Mapping[str, Any]], spec: Transcript) -> TurnRead:
    messages: dict[str, TranscriptEntry] = {}
    uses: list[Mapping[str, Any]] = []
    at = _time(begin, spec) or 0.0
    sent_back, hooks_words = 0, False
    for record in records:
        at = _time(record, spec) or at
        if spec.usage is not None and holds(record, spec.usage):
            uses.append(record)
        if (over := _outcome(record, spec)) is not None:
            outcome, line = over
            text = text_at(record, line, spec) if line.text is not None else ""
            told = tuple(messages.values())
            return TurnRead(
                messages=told, outcome=outcome, at=at, text=text or None, uses=tuple(uses), sent_back=sent_back
            )
        if _match(record, spec.sent_back, spec) is not None:
            sent_back, hooks_words = sent_back + 1, True
            continue
        if _match(record, spec.user, spec) is not None:
            if not hooks_words:
                break
            hooks_words = False
            continue
        goes_on = any(holds(record, line) for line in spec.continues)
        if (said := _said(record, spec, at, goes_on)) is not None:
            _add(messages, said, spec)
        elif goes_on and messages:
            last = next(reversed(messages))
            messages[last] = replace(messages[last], goes_on=True)
    told = tuple(messages.values())
    return TurnRead(messages=told, outcome="open", at=at, uses=tuple(uses), sent_back=sent_back)


def _outcome(record: Mapping[str, Any], spec: Transcript) -> tuple[Outcome, Line] | None:
    if (line := _match(record, spec.interrupted, spec)) is not None:
        return "interrupted", line
    if (line := _match(record, spec.failed, spec)) is not None:
        return "failed", line
    if (line := _match(record, spec.ended, spec)) is not None:
        return "ended", line
    return None


def _said(record: Mapping[str, Any], spec: Transcript, at: float, goes_on: bool) -> TranscriptEntry | None:
    line = _match(record, spec.assistant, spec)
    if line is None:
        return None
    own = at_path(record, line.id) if line.id is not None else None
    return TranscriptEntry(str(own) if own else f"at-{at:.6f}", text_at(record, line, spec), at, goes_on)


def _add(messages: dict[str, TranscriptEntry], said: TranscriptEntry, spec: Transcript) -> None:
    old = messages.get(said.id)
    if old is not None:
        both = spec.pieces and old.text and said.text
        text = f"{old.text}\n\n{said.text}" if both else said.text or old.text
        messages[said.id] = replace(said, text=text, goes_on=old.goes_on or said.goes_on)
    elif said.text:
        messages[said.id] = said
    elif said.goes_on and messages:  # a tool call without text: the turn goes on after the last text
        last = next(reversed(messages))
        messages[last] = replace(messages[last], goes_on=True)


def _match(record: Mapping[str, Any], lines: Sequence[Line], spec: Transcript) -> Line | None:
    for line in lines:
        if not holds(record, line):
            continue
        needs_text = line.text is not None and (lines is spec.user or line.match is not None)
        if not needs_text or text_at(record, line, spec):
            return line
    return None


def _time(record: Mapping[str, Any], spec: Transcript) -> float | None:
    value = at_path(record, spec.time)
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError):
        return None


def _records_since(
    path: Path, spec: Transcript, since: float, is_first: Callable[[Mapping[str, Any]], bool] = lambda _: False
) -> list[dict[str, Any]]:
    """Returns the records in order: from the last that `is_first` accepts on, else from the first after the last prompt
    that is dated before `since`. Dates of other records are ignored: the clock may be set in the middle of a turn."""
    window = WINDOW_BYTES
    while True:
        lines, whole = _last_lines(path, window)
        records: list[dict[str, Any]] = []
        for line in reversed(lines):
            record = parse_record(line)
            if record is None:
                continue
            at = _time(record, spec)
            if at is not None and at < since and _match(record, spec.user, spec) is not None:
                whole = True
                break
            records.append(record)
            if is_first(record):
                return records[::-1]
        if whole or window >= WINDOW_MAX_BYTES:
            return records[::-1]
        window = min(8 * window, WINDOW_MAX_BYTES)


def _last_lines(path: Path, window: int) -> tuple[list[bytes], bool]:
    """Returns the lines in the last `window` bytes, and True if that is the whole file."""
    with open_regular(path) as file:
        size = file.seek(0, 2)
        start = max(0, size - window)
        file.seek(start)
        lines = file.read(window).split(b"\n")
    return (lines if start == 0 else lines[1:]), start == 0
