"""What a program tells or asks its terminal, read out of its output.

`Scanner` turns a stream of bytes, cut anywhere, into events; `ViewerFilter` removes the questions from a copy of it, so
that only the daemon answers them. Both look at escape characters only: ESC begins a new sequence in every state of a
terminal's parser, so text between sequences is skipped at the speed of the regular expression engine, and memory is
bounded by `MAX_SEQUENCE`.

What is not read: sequences with control characters inside them, C1 forms (a byte of their own is not valid UTF-8, and
the characters of UTF-8 do nothing here: see `sequences.without_c1`), and ENQ.
"""

import re
from dataclasses import dataclass
from enum import Enum

from synapsed.terminal.sequences import C1_LEAD, MAX_SEQUENCE, incomplete_sequence, without_c1

MAX_STATUS = 4096
"""Bytes of a whole OSC 7501 sequence, as its specification limits it; a longer one is no report."""

_STATUS_FRAME = len("\x1b]7501;") + len("\x1b\\")


class QueryKind(Enum):
    """What a program asks its terminal. `QueryReceived.body` holds the parameters, as said for each."""

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
    """Something the stream said. ``end`` is the offset behind it in the chunk that was fed last."""

    end: int


@dataclass(frozen=True, slots=True)
class StatusReported(ScanEvent):
    """OSC 7501: ``body`` is what stands between ``7501;`` and the terminator, unparsed (see `psp`)."""

    body: str


@dataclass(frozen=True, slots=True)
class ProgressChanged(ScanEvent):
    """OSC 9;4. ``percent`` is None where the state has none or it was not said."""

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


# One match for each string and for each control sequence that may ask something. The lookahead passes over the control
# sequences that fill real output (colours, cursor movement, erasing) before the alternatives are tried: 4 x faster.
# Possessive and atomic throughout: a string built to make the engine backtrack costs what any other does.
_SEQUENCE = re.compile(
    rb"\x1b(?!\[[\d;:]*+[@-Z`abd-hj-mrs])(?:"
    rb"\[(?P<prefix>[>=?]?)(?P<params>[\d;]*+)(?P<final>[cnqutxmS]|\$[pw]|\*y)"
    rb"|\](?P<osc>[^\x07\x18\x1a\x1b]*+)(?:(?P<bel>\x07)|\x1b\\)"
    rb"|(?P<introducer>[PX^_])(?P<string>[^\x18\x1a\x1b]*+)\x1b\\"
    rb"|(?P<reset>c)"
    rb"|(?P<editing>\[\?2004h)"
    rb")"
)
_OSC_QUERY = re.compile(
    rb"(?:4|5|1\d|21|50);(?>(?:.*?[;=])??\?)"
    rb"|52;[^;]*+;\?"
    rb"|1337;Report"
    rb"|99;(?>[^;]*?p=\?)",
    re.DOTALL,
)
_OSC_COLOR = re.compile(rb"(?:4|1[0-9]);")
_OSC_STATUS = re.compile(rb"7501;\s*+(?P<query>\?\s*+\Z)?")
_OSC_PROMPT = re.compile(rb"133;A(?:;|\Z)")
_PROGRESS = re.compile(rb"9;4(?:;(?P<state>[0-4])(?:;(?P<percent>\d{1,3})?)?)?;*\Z")
_TITLE = re.compile(rb"[012];")

_DEFAULT = frozenset({b"", b"0"})
_WINDOW_REPORTS = frozenset({b"11", b"13", b"14", b"15", b"16", b"18", b"19", b"20", b"21"})

# (prefix, final) of the control sequences that ask, and their kinds. `CSI > n` sets a keyboard mode, `CSI > q` with a
# parameter and `CSI t` with most of them are commands too: `_control_query` tells those apart.
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

# What ends the string that a chunk begins inside of, by its kind: an OSC also ends at BEL.
_STRING_END = {True: re.compile(rb"[\x07\x18\x1a\x1b]"), False: re.compile(rb"[\x18\x1a\x1b]")}


class _Carry:
    """The unfinished sequence at the end of a stream so far, and whether an overlong string is being skipped."""

    __slots__ = ("_held", "skipping")

    def __init__(self) -> None:
        self._held = b""
        self.skipping: re.Pattern[bytes] | None = None
        """Set inside a string that grew over the limit: finds its end."""

    @property
    def empty(self) -> bool:
        return not self._held and self.skipping is None

    def take(self, data: bytes) -> tuple[bytes, int]:
        """What can be read now, and how many of its bytes came with earlier chunks."""
        held = self._held
        whole = held + data if held else data
        cut = incomplete_sequence(whole)
        if len(whole) - cut > MAX_SEQUENCE:
            cut = len(whole) - whole.endswith(b"\x1b")
        self._held = whole[cut:]
        return whole[:cut], len(held)

    def overlong(self, whole: bytes) -> None:
        """Note the string that ``whole`` ends inside of, if it does (then it is one over the limit)."""
        start = incomplete_sequence(whole)
        self.skipping = _STRING_END[whole[start + 1 : start + 2] == b"]"] if len(whole) - start > 1 else None


class Scanner:
    """Reads events out of a terminal's output. One for each stream; any chunking gives the same events."""

    def __init__(self) -> None:
        self._carry = _Carry()

    def feed(self, data: bytes) -> list[ScanEvent]:
        """The events that ``data`` completes, in the order of the stream."""
        whole, known = self._carry.take(data)
        matches = _SEQUENCE.finditer(whole, self._leave_overlong(whole))
        events = [event for match in matches if (event := _read(match, match.end() - known)) is not None]
        if incomplete_sequence(whole) < len(whole):
            self._carry.overlong(whole)
        return events

    def _leave_overlong(self, whole: bytes) -> int:
        """Where reading resumes in ``whole``."""
        pattern = self._carry.skipping
        if pattern is None:
            return 0
        end = pattern.search(whole)
        if end is None:
            return len(whole)
        self._carry.skipping = None
        return end.end() if end[0] == b"\x07" else end.start()


class ViewerFilter:
    """A copy of a terminal's output without its queries, for terminals that watch.

    C1 controls are U+FFFD, as on the daemon's screen: some terminals act on them, and would be asked by them.
    Everything else is byte for byte what came, OSC 7501 reports among it; an unfinished sequence waits for its end.
    """

    def __init__(self) -> None:
        self._carry = _Carry()
        self._lead = b""
        """The first byte of what may be a C1 control."""

    @property
    def holds(self) -> bool:
        """Whether what was fed ends inside of a sequence, or of what may be a C1 control."""
        return bool(self._lead) or not self._carry.empty

    def feed(self, data: bytes) -> bytes:
        """What a viewer gets now."""
        if self._lead or b"\xc2" in data:
            data = self._lead + data
            self._lead = C1_LEAD if data.endswith(C1_LEAD) else b""
            data = without_c1(data.removesuffix(C1_LEAD))
        if b"\x1b" not in data and self._carry.empty:
            return data
        whole, _ = self._carry.take(data)
        return _SEQUENCE.sub(_without_query, whole)


def _without_query(match: re.Match[bytes]) -> bytes:
    overlong = match.end() - match.start() > MAX_SEQUENCE
    return match[0] if overlong or _query(match, 0) is None else b""


def _read(match: re.Match[bytes], end: int) -> ScanEvent | None:
    if match["reset"]:
        return TerminalReset(end)
    if match["editing"]:
        return EditingBegan(end)
    if match.end() - match.start() > MAX_SEQUENCE:
        return None
    return _query(match, end) or (_report(match["osc"], end) if match["osc"] is not None else None)


def _query(match: re.Match[bytes], end: int) -> QueryReceived | None:
    """The query that a sequence is, if it is one."""
    if match["final"]:
        return _control_query(match["prefix"], match["params"], match["final"], end)
    if match["osc"] is not None:
        return _osc_query(match["osc"], end, bel=match["bel"] is not None)
    if match["introducer"]:
        return _string_query(match["introducer"], match["string"], end)
    return None


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
        end,
        ProgressState(int(progress["state"] or b"0")),
        min(int(percent), 100) if percent else None,
    )
