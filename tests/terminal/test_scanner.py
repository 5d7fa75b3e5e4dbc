"""The stream scanner: every event across every cut, nothing else, within bounds."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.terminal.scanner import (
    EditingBegan,
    ProgressChanged,
    ProgressState,
    QueryKind,
    QueryReceived,
    ScanEvent,
    Scanner,
    ShellPrompted,
    StatusReported,
    TerminalReset,
    TitleChanged,
)
from synapsed.terminal.tokenizer import MAX_SEQUENCE

QUERIES = {
    b"\x1b[c": (QueryKind.DEVICE_ATTRIBUTES, ""),
    b"\x1b[0c": (QueryKind.DEVICE_ATTRIBUTES, "0"),
    b"\x1b[>c": (QueryKind.SECONDARY_ATTRIBUTES, ""),
    b"\x1b[=c": (QueryKind.TERTIARY_ATTRIBUTES, ""),
    b"\x1b[5n": (QueryKind.DEVICE_STATUS, "5"),
    b"\x1b[6n": (QueryKind.DEVICE_STATUS, "6"),
    b"\x1b[?6n": (QueryKind.DEVICE_STATUS, "?6"),
    b"\x1b[?996n": (QueryKind.DEVICE_STATUS, "?996"),
    b"\x1b[>q": (QueryKind.VERSION, ""),
    b"\x1b[>0q": (QueryKind.VERSION, "0"),
    b"\x1b[?2026$p": (QueryKind.MODE, "?2026"),
    b"\x1b[4$p": (QueryKind.MODE, "4"),
    b"\x1b[14t": (QueryKind.WINDOW, "14"),
    b"\x1b[14;2t": (QueryKind.WINDOW, "14;2"),
    b"\x1b[16t": (QueryKind.WINDOW, "16"),
    b"\x1b[18t": (QueryKind.WINDOW, "18"),
    b"\x1b[21t": (QueryKind.WINDOW, "21"),
    b"\x1b[?u": (QueryKind.KEYBOARD, "?"),
    b"\x1b[?4m": (QueryKind.MODIFY_KEYS, "?4"),
    b"\x1b[?1;1;0S": (QueryKind.OTHER, "?1;1;0"),
    b"\x1b]10;?\x07": (QueryKind.COLOR, "10;?"),
    b"\x1b]11;?\x1b\\": (QueryKind.COLOR, "11;?"),
    b"\x1b]4;7;?\x1b\\": (QueryKind.COLOR, "4;7;?"),
    b"\x1b]52;c;?\x07": (QueryKind.OTHER, "52;c;?"),
    b"\x1b]7501;?\x07": (QueryKind.STATUS_SUPPORT, "?"),
    b"\x1b]7501; ? \x07": (QueryKind.STATUS_SUPPORT, "?"),
    b"\x1bP+q544e;436f\x1b\\": (QueryKind.TERMCAP, "544e;436f"),
    b"\x1bP$qm\x1b\\": (QueryKind.SETTING, "m"),
    b"\x1bZ": (QueryKind.DEVICE_ATTRIBUTES, ""),
    b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\": (QueryKind.OTHER, "graphics"),
}

NOT_QUERIES = [
    b"\x1b[>4;1m",
    b"\x1b[>4n",
    b"\x1b[3 q",
    b"\x1b[22;0t",
    b"\x1b[8;24;80t",
    b"\x1b[>1u",
    b"\x1b[<u",
    b"\x1b[=5;1u",
    b"\x1b[u",
    b"\x1b[!p",
    b"\x1b[?25h",
    b"\x1b[38;5;12m",
    b"\x1b[12;40H",
    b"\x1b]10;#ffffff\x07",
    b"\x1b]52;c;aGk=\x07",
    b"\x1b]8;;https://example.org/?q=1\x1b\\",
    b"\x1b]133;B\x07",
    b"\x1bP0;1|17/ab\x1b\\",
    b"\x1b_Ga=T,f=24;AAAA\x1b\\",
    b"\x1b]777;notify;a;b\x07",
]


def scan(data: bytes, *cuts: int) -> list[ScanEvent]:
    """All events of `data` cut at `cuts`, their ends counted from its beginning."""
    scanner = Scanner()
    events: list[ScanEvent] = []
    edges = [0, *sorted(cuts), len(data)]
    for start, end in pairwise(edges):
        for event in scanner.feed(data[start:end]):
            assert 0 < event.end <= end - start
            events.append(_moved(event, start))
    return events


def _moved(event: ScanEvent, by: int) -> ScanEvent:
    fields = {name: getattr(event, name) for name in type(event).__dataclass_fields__}
    return type(event)(**{**fields, "end": event.end + by})


@pytest.mark.parametrize("data", QUERIES, ids=repr)
def test_a_query_is_known_at_its_end(data: bytes) -> None:
    kind, body = QUERIES[data]
    [event] = scan(b"before" + data + b"after")
    assert event == QueryReceived(6 + len(data), kind, body, bel=data.endswith(b"\x07"))


@pytest.mark.parametrize("data", QUERIES, ids=repr)
@pytest.mark.parametrize("stray", [b"\x00", b"\b", b"\n", b"\x7f", b"\xff"])
def test_a_query_is_known_whatever_stands_in_it(data: bytes, stray: bytes) -> None:
    """Terminals execute control characters where they come, or pass over them."""
    [event] = scan(data)
    assert scan(data[:1] + stray + data[1:]) == [_moved(event, 1)]
    if data[1:2] == b"[" or (data[1:2] == b"]" and stray != b"\xff"):
        assert scan(data[:2] + stray + data[2:]) == [_moved(event, 1)]


@pytest.mark.parametrize("data", NOT_QUERIES, ids=repr)
def test_what_is_no_query_is_passed_on(data: bytes) -> None:
    assert scan(data) == []


@pytest.mark.parametrize(
    ("data", "event"),
    [
        (b"\x1b]7501;state=idle:app=codex\x07", StatusReported(28, "state=idle:app=codex")),
        (b"\x1b]7501;state=done\x1b\\", StatusReported(19, "state=done")),
        (b"\x1b]7501;?x\x07", StatusReported(10, "?x")),
        (b"\x1b]133;A\x07", ShellPrompted(8)),
        (b"\x1b]133;A;click_events=1\x1b\\", ShellPrompted(24)),
        (b"\x1b]0;both\x07", TitleChanged(9, 0, "both")),
        (b"\x1b]1;icon\x07", TitleChanged(9, 1, "icon")),
        ("\x1b]2;✳ Claude Code\x1b\\".encode(), TitleChanged(21, 2, "✳ Claude Code")),
        (b"\x1b]2;\xff\x07", TitleChanged(6, 2, "�")),
        (b"\x1b]9;4;1;50\x07", ProgressChanged(11, ProgressState.NORMAL, 50)),
        (b"\x1b]9;4;1;900\x07", ProgressChanged(12, ProgressState.NORMAL, 100)),
        (b"\x1b]9;4;3\x1b\\", ProgressChanged(9, ProgressState.INDETERMINATE, None)),
        (b"\x1b]9;4;0;\x07", ProgressChanged(9, ProgressState.NONE, None)),
        (b"\x1bc", TerminalReset(2)),
        (b"\x1b[?2004h", EditingBegan(8)),
    ],
    ids=repr,
)
def test_reports(data: bytes, event: ScanEvent) -> None:
    assert scan(data) == [event]


def test_a_notification_is_no_progress() -> None:
    assert scan(b"\x1b]9;4 files changed\x07\x1b]9;hello\x07") == []


def test_the_bell_ends_no_string_but_an_osc() -> None:
    assert scan(b"\x07a\x07\x1b]0;t\x07\x07") == [TitleChanged(9, 0, "t")]
    assert scan(b"\x1bP+q54\x074e\x1b\\") == [QueryReceived(11, QueryKind.TERMCAP, "544e")]


def test_an_aborted_string_is_no_event_and_what_aborts_it_is_read() -> None:
    assert scan(b"\x1b]0;title\x1b[6n") == [QueryReceived(13, QueryKind.DEVICE_STATUS, "6")]
    assert scan(b"\x1b]0;title\x18\x07") == []


def test_a_status_report_ends_at_4096_bytes() -> None:
    longest = b"\x1b]7501;" + b"x" * (4096 - 9) + b"\x1b\\"
    assert len(scan(longest)) == 1
    assert scan(longest.replace(b"xx", b"xxx", 1)) == []


def test_queries_in_a_hurry() -> None:
    """The cursor's position at each query is where the screen is when fed up to the event's end."""
    events = scan(b"ab\x1b[6ncd\x1b[6n")
    assert [event.end for event in events] == [6, 12]


STREAM = b"".join(
    [b"text \xe2\x9c\xb3 ", *QUERIES, *NOT_QUERIES, b"\x07", b"\x1b]7501;state=working\x1b\\", b"\x1bc\x1b"]
)


def test_every_cut_gives_the_same_events() -> None:
    whole = scan(STREAM)
    assert sum(isinstance(event, QueryReceived) for event in whole) == len(QUERIES)
    for cut in range(len(STREAM) + 1):
        assert scan(STREAM, cut) == whole, cut
    assert scan(STREAM, *range(1, len(STREAM))) == whole


PIECES = st.lists(
    st.one_of(
        st.binary(max_size=8),
        st.sampled_from(
            [*QUERIES, *NOT_QUERIES, b"\x1b", b"\x1b]", b"\x1b]7501;", b"\x1bP", b"\x1b_G", b"\x07", b"\x1b\\"]
        ),
    ),
    max_size=12,
).map(b"".join)


@given(data=PIECES, cuts=st.lists(st.integers(0, 200), max_size=5))
def test_any_bytes_in_any_chunks(data: bytes, cuts: list[int]) -> None:
    cuts = [cut for cut in cuts if cut <= len(data)]
    assert scan(data, *cuts) == scan(data)


@pytest.mark.parametrize("size", [1021, 4096, MAX_SEQUENCE, 3 * MAX_SEQUENCE])
def test_reading_goes_on_behind_an_endless_string(size: int) -> None:
    data = b"\x1b]52;c;" + b"A" * (4 * MAX_SEQUENCE) + b"\x07" + b"\x1b[6n\x07"
    assert [type(event) for event in scan(data, *range(0, len(data), size))] == [QueryReceived]


def test_the_terminator_of_an_overlong_string_may_be_cut() -> None:
    scanner = Scanner()
    assert scanner.feed(b"\x1b]52;c;" + b"A" * (MAX_SEQUENCE + 10) + b"\x1b") == []
    assert scanner.feed(b"\\\x1b[6n") == [QueryReceived(5, QueryKind.DEVICE_STATUS, "6")]


def test_strings_built_to_make_the_expression_backtrack_are_read_in_linear_time() -> None:
    """No deadline is asserted: quadratic behaviour would exceed the test's time-out."""
    for data in (
        b"\x1b_G" + b"a=q" * 20_000 + b"\x18",
        b"\x1b]4;" + b"?;" * 30_000 + b"\x18",
        b"\x1b]99;" + b"p=?" * 20_000 + b"\x18",
        b"\x1b]" * 30_000,
        b"\x1b[" + b"0;" * 30_000,
    ):
        for _ in range(20):
            assert Scanner().feed(data) == []
