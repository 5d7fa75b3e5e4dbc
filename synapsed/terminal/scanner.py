"""Finds a program's reports to its terminal, and its queries, in its output.

`Scanner` turns a stream of bytes, cut anywhere, into events, by the sequences that `tokenizer` finds in it. ENQ does
not count: it asks for an answerback, which is empty.
"""

import re
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

from synapsed.shared.regex import regex
from synapsed.terminal.tokenizer import (
    REMEMBERED,
    SHORT,
    ControlSequence,
    ControlString,
    EscapeSequence,
    SystemCommand,
    Token,
    Tokenizer,
    tokens,
)

MAX_STATUS = 4096
"""Bytes of a whole OSC 7501 sequence, as its specification limits it; a longer one is no report."""

_STATUS_FRAME = len("\x1b]7501;") + len("\x1b\\")


class QueryKind(Enum):
    """Query of a program to its terminal. `QueryReceived.body` has the parameters, as described for each."""

    DEVICE_ATTRIBUTES = "DA1"
    SECONDARY_ATTRIBUTES = "DA2"
    TERTIARY_ATTRIBUTES = "DA3"
    DEVICE_STATUS = "DSR"  # body: "5", "6", "?6", "?996", …
    VERSION = "XTVERSION"
    MODE = "DECRQM"  # body: "?2026" for a DEC private mode, "4" for an ANSI one
    WINDOW = "XTWINOPS"  # body: "14", "14;2", "16", "18", "21", …
    KEYBOARD = "kitty keyboard"
    MODIFY_KEYS = "XTQMODKEYS"
    COLOR = "OSC color"  # body: "4;7;?", "10;?", "11;?", …
    STATUS_SUPPORT = "OSC 7501"  # body: "?"
    TERMCAP = "XTGETTCAP"  # body: hexadecimal names joined by ";"
    SETTING = "DECRQSS"  # body: the setting's final characters, such as "m"
    OTHER = "other"  # asks for a reply that is never given: clipboard, fonts, graphics, checksums


class ProgressState(Enum):
    """The state of OSC 9;4."""

    NONE = 0
    NORMAL = 1
    ERROR = 2
    INDETERMINATE = 3
    PAUSED = 4


@dataclass(frozen=True, slots=True)
class ScanEvent:
    """An event in the stream. ``end`` is the offset after it in the chunk that was fed last."""

    end: int


@dataclass(frozen=True, slots=True)
class StatusReported(ScanEvent):
    """OSC 7501: ``body`` is the text between ``7501;`` and the terminator, unparsed (see `psp`)."""

    body: str


@dataclass(frozen=True, slots=True)
class ProgressChanged(ScanEvent):
    """OSC 9;4. ``percent`` is None if it is missing, or if the state has no percentage."""

    state: ProgressState
    percent: int | None


@dataclass(frozen=True, slots=True)
class TitleChanged(ScanEvent):
    """OSC 0, 1 or 2 (``number``); 1 names the icon only. Undecodable bytes are U+FFFD."""

    number: int
    title: str


@dataclass(frozen=True, slots=True)
class TerminalReset(ScanEvent):
    """A full reset (RIS, ``ESC c``)."""


@dataclass(frozen=True, slots=True)
class ShellPrompted(ScanEvent):
    """A shell begins a new prompt (OSC 133;A): the command before it has ended."""


@dataclass(frozen=True, slots=True)
class EditingBegan(ScanEvent):
    """Bracketed paste is switched on (DECSET 2004): a line editor begins, and its prompt follows."""


@dataclass(frozen=True, slots=True)
class QueryReceived(ScanEvent):
    """A question that a terminal would answer on the program's input. ``bel``: an OSC that was ended by BEL."""

    kind: QueryKind
    body: str
    bel: bool = False


_OSC_QUERY = regex(
    rb"(?:4|5|1\d|21|50);(?>(?:.*?[;=])??\?)"
    rb"|52;[^;]*+;\?"
    rb"|1337;Report"
    rb"|99;(?>[^;]*?p=\?)",
    re.DOTALL,
)
_OSC_COLOR = regex(rb"(?:4|1[0-9]);")
_OSC_STATUS = regex(rb"7501;\s*+(?P<query>\?\s*+\Z)?")
_OSC_PROMPT = regex(rb"133;A(?:;|\Z)")
_PROGRESS = regex(rb"9;4(?:;(?P<state>[0-4])(?:;(?P<percent>\d{1,3})?)?)?;*\Z")
_TITLE = regex(rb"[012];")

_DEFAULT = frozenset({b"", b"0"})
_WINDOW_REPORTS = frozenset({b"11", b"13", b"14", b"15", b"16", b"18", b"19", b"20", b"21"})

# (prefix, final) of the control sequences that ask, and their kinds. `CSI > n` sets a keyboard mode, `CSI > q` with a
# parameter and `CSI t` with most of them are commands too: `_control_query` distinguishes them.
_CONTROL_QUERIES = {
    (b"", b"c"): QueryKind.DEVICE_ATTRIBUTES,
    (b">", b"c"): QueryKind.SECONDARY_ATTRIBUTES,
    (b"=", b"c"): QueryKind.TERTIARY_ATTRIBUTES,
    (b"", b"n"): QueryKind.DEVICE_STATUS,
    (b"?", b"n"): QueryKind.DEVICE_STATUS,
    (b">", b"q"): QueryKind.VERSION,
    (b"", b"$p"): QueryKind.MODE,
    (b"?", b"$p"): QueryKind.MODE,
    (b"", b"t"): QueryKind.WINDOW,
    (b"?", b"u"): QueryKind.KEYBOARD,
    (b"?", b"m"): QueryKind.MODIFY_KEYS,
    (b"?", b"S"): QueryKind.OTHER,
    (b"", b"x"): QueryKind.OTHER,
    (b"", b"$w"): QueryKind.OTHER,
    (b"", b"*y"): QueryKind.OTHER,
}
_ONLY_WITH_DEFAULT = frozenset({b"c", b"q"})

_EDITING = 2004
"""The mode of bracketed paste."""


class Scanner:
    """Reads events out of a terminal's output. One for each stream; any chunking gives the same events."""

    def __init__(self) -> None:
        self._tokenizer = Tokenizer()

    def feed(self, data: bytes) -> list[ScanEvent]:
        """Returns the events that ``data`` completes, in the order of the stream."""
        whole = self._tokenizer.take(data)
        if b"\x1b" not in whole:
            return []
        begin, events = self._tokenizer.begin, list[ScanEvent]()
        for start, end, _, token in tokens(whole):
            event = (_remembered if end - start <= SHORT else _read)(token)
            if event is not None:
                events.append(replace(event, end=begin + end))
        return events


def _read(token: Token | None) -> ScanEvent | None:
    """Returns the event of a token, without its place, which is not known here."""
    end = 0
    match token:
        case ControlSequence(b"?", _, b"", b"h") if _EDITING in token.values:
            return EditingBegan(end)
        case ControlSequence(prefix, numbers, between, final):
            return _control_query(prefix, numbers, between + final, end)
        case EscapeSequence(b"c"):
            return TerminalReset(end)
        case EscapeSequence(b"Z"):
            return QueryReceived(end, QueryKind.DEVICE_ATTRIBUTES, "")
        case SystemCommand(body, bel):
            return _osc_query(body, end, bel=bel) or _report(body, end)
        case ControlString(kind, body):
            return _string_query(kind, body, end)
    return None


_remembered = lru_cache(REMEMBERED, typed=True)(_read)


def _control_query(prefix: bytes, params: bytes, final: bytes, end: int) -> QueryReceived | None:
    kind = _CONTROL_QUERIES.get((prefix, final))
    if kind is None:
        return None
    if final in _ONLY_WITH_DEFAULT and params not in _DEFAULT:
        return None
    if kind is QueryKind.WINDOW and params.partition(b";")[0] not in _WINDOW_REPORTS:
        return None
    if kind is QueryKind.KEYBOARD and params:
        return None
    body = params if final in _ONLY_WITH_DEFAULT else prefix + params
    return QueryReceived(end, kind, body.decode("ascii"))


def _osc_query(body: bytes, end: int, *, bel: bool) -> QueryReceived | None:
    status = _OSC_STATUS.match(body)
    if status is not None and status["query"]:
        return QueryReceived(end, QueryKind.STATUS_SUPPORT, "?", bel)
    if _OSC_QUERY.match(body):
        kind = QueryKind.COLOR if _OSC_COLOR.match(body) else QueryKind.OTHER
        return QueryReceived(end, kind, body.decode("utf-8", "replace"), bel)
    return None


def _string_query(introducer: bytes, string: bytes, end: int) -> QueryReceived | None:
    if introducer == b"P" and string[:2] in (b"+q", b"$q"):
        kind = QueryKind.TERMCAP if string.startswith(b"+") else QueryKind.SETTING
        return QueryReceived(end, kind, string[2:].decode("ascii", "replace"))
    if introducer == b"_" and string.startswith(b"G") and b"a=q" in string.partition(b";")[0]:
        return QueryReceived(end, QueryKind.OTHER, "graphics")
    return None


def _report(body: bytes, end: int) -> ScanEvent | None:
    if _OSC_STATUS.match(body):
        status = body.partition(b";")[2]
        fits = len(status) + _STATUS_FRAME <= MAX_STATUS
        return StatusReported(end, status.decode("utf-8", "replace")) if fits else None
    if _OSC_PROMPT.match(body):
        return ShellPrompted(end)
    if _TITLE.match(body):
        return TitleChanged(end, body[0] - ord("0"), body[2:].decode("utf-8", "replace"))
    progress = _PROGRESS.match(body)
    if progress is None:
        return None
    percent = progress["percent"]
    return ProgressChanged(
        end, ProgressState(int(progress["state"] or b"0")), min(int(percent), 100) if percent else None
    )
