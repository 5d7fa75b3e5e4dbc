"""What any emulator behind `Screen` must do. Run against every candidate."""

from itertools import pairwise
from operator import attrgetter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from synapsed.terminal.emulated_screen import Screen
from tests.emulator.candidates import CANDIDATES, expect_fault, make
from tests.emulator.streams import Stream, made, recordings
from tests.support.gated import chosen

pytestmark = pytest.mark.recorded

STREAMS = [*made(), *recordings()]

COMPARED = ("attributes", "synchronized")
"""What candidates that are not in use are tried with: one stream for each fault known of them."""

CASES = [
    *(("ghostty", stream) for stream in STREAMS),
    *(
        (name, stream)
        for name in sorted(CANDIDATES)
        if name != "ghostty"
        for stream in made()
        if stream.name in COMPARED
    ),
]
CASE_IDS = [f"{name}-{stream}" for name, stream in CASES]

CUTS = 4
"""Points of a recording at which the round trip is tried, beside its end."""


@pytest.fixture(params=sorted(CANDIDATES))
def candidate(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize(("candidate", "stream"), chosen(CASES, lambda case: case[1].recording), ids=CASE_IDS)
def test_redraw_round_trip(candidate: str, stream: Stream, request: pytest.FixtureRequest) -> None:
    """A redraw brings a fresh terminal to the same cells, palette indexes, attributes, cursor, modes and screen."""
    expect_fault(request, candidate, "redraw")
    original = make(candidate, stream.cols, stream.rows)
    cuts = (
        sorted({len(stream.data) * index // CUTS for index in range(1, CUTS + 1)})
        if len(stream.data) > 2000
        else [len(stream.data)]
    )
    for start, end in pairwise([0, *cuts]):
        original.feed(stream.data[start:end])
        copy = make(candidate, stream.cols, stream.rows)
        copy.feed(original.redraw())
        assert copy.view() == original.view(), end
        assert copy.cells() == original.cells(), end


@pytest.mark.parametrize("stream", chosen(STREAMS, attrgetter("recording")), ids=str)
def test_output_goes_on_after_a_redraw_as_without(stream: Stream) -> None:
    """The copy behaves as the original does: pen, a cursor that waits to wrap, regions and modes are there too."""
    middle = len(stream.data) // 2
    for cut in sorted({middle, len(stream.data)}):
        original = Screen(stream.cols, stream.rows)
        original.feed(stream.data[:cut])
        copy = Screen(stream.cols, stream.rows)
        copy.feed(original.redraw(scrollback=True))
        rest = original.pending + stream.data[cut:] + b"more text\tand\x1b[3Cso on\n\x1b[1;3Hx"
        original.feed(rest[len(original.pending) :])
        copy.feed(rest)
        assert copy.snapshot() == original.snapshot()


_MARKS = ("wide", "several in one cell")
SHORT = [stream for stream in made() if len(stream.data) < 200 and stream.name not in _MARKS]
"""Without those in which a mark comes behind a checkpoint: it is left out, as what it would join is not known there."""


@pytest.mark.parametrize("stream", SHORT, ids=str)
def test_a_checkpoint_stands_at_any_byte(stream: Stream) -> None:
    """What is kept is the redraw, which belongs to the offset before `pending`: the rest comes behind it once more."""
    whole, original = (Screen(stream.cols, stream.rows) for _ in range(2))
    whole.feed(stream.data)
    for cut in range(1, len(stream.data)):
        original.feed(stream.data[cut - 1 : cut])
        offset = cut - len(original.pending)
        copy = Screen(stream.cols, stream.rows)
        copy.feed(original.redraw(scrollback=True))
        copy.feed(stream.data[offset:])
        assert copy.snapshot() == whole.snapshot(), cut
        assert copy.redraw() == whole.redraw(), cut


KEPT_BEFORE = {
    "main text": b"\x1b[?69l\x1b[?6l\x1b[4l\x1b[20l\x1b[?7h\x1b[r\x1b(B\x0f\x1b[m\x1b[?2027lmain text\r\nsecond\x1b[m"
    + b"\r\n" * 8
    + b"\x1b[Hmain text\x1b[K\r\nsecond\x1b[K"
    + b"\r\n\x1b[K" * 8
    + b"\x1b[2;7H\x1b[?1049h\x1b[H\x1b[K\r\n\x1b[K\r\n\x1b[K\r\n\x1b[K\r\n    \x1b[0;7malternate\x1b[m\x1b[K"
    + b"\r\n\x1b[K" * 5
    + b"\x1b[5;14H\x1b[?25l",
    "z" * 40: b"\x1b[?69l\x1b[?6l\x1b[4l\x1b[20l\x1b[?7h\x1b[r\x1b(B\x0f\x1b[m\x1b[?2027l\x1b[0m\x1b[38;5;3m"
    + b"z" * 40
    + b"\x1b[m"
    + b"\r\n" * 9
    + b"\x1b[H\x1b[0;33m"
    + b"z" * 40
    + b"\x1b[m"
    + b"\r\n\x1b[K" * 9
    + b"\x1b[?2004h\x1b[1;40H\x1b[0;33mz\x1b[m\x1b[38;5;2m\x1b[?25h",
}
"""Checkpoints as the emulator before this one (evp) has left them on disks, by what their main screens begin with."""


@pytest.mark.parametrize("text", KEPT_BEFORE)
def test_a_checkpoint_of_another_emulator_is_drawn(text: str) -> None:
    """An upgrade finds agents that run, and screens that were kept: a redraw is no emulator's own format."""
    screen = Screen(40, 10)
    screen.feed(KEPT_BEFORE[text])
    if screen.snapshot().alternate:
        assert screen.snapshot().cursor == (4, 13)
        assert screen.snapshot().lines[4] == "    alternate"
        screen.feed(b"\x1b[?1049l")
        assert screen.snapshot().cursor == (1, 6)
    else:
        screen.feed(b"y")
        assert screen.snapshot().wrapped[0], "it has waited to wrap"
        assert screen.row_cells(1)[0].fg == 2
    assert screen.snapshot().lines[0] == text


def paragraphs(screen: Screen) -> list[str]:
    """The text with the scrollback. A blank row that was wrapped is not told from one that was not."""
    return [line.strip() for line in screen.text(scrollback=True).split("\n") if line.strip()]


@pytest.mark.parametrize("stream", chosen(STREAMS, attrgetter("recording")), ids=str)
def test_a_checkpoint_keeps_the_scrollback_and_the_main_screen(stream: Stream) -> None:
    original = Screen(stream.cols, stream.rows)
    original.feed(stream.data)
    copy = Screen(stream.cols, stream.rows)
    copy.feed(original.redraw(scrollback=True))
    assert paragraphs(copy) == paragraphs(original)
    leave = b"\x18\x1b[?1049l"
    original.feed(leave)
    copy.feed(leave)
    assert paragraphs(copy) == paragraphs(original)
    assert copy.snapshot().lines == original.snapshot().lines


@pytest.mark.parametrize("stream", chosen(STREAMS, attrgetter("recording")), ids=str)
def test_a_redraw_changes_nothing(stream: Stream) -> None:
    asked, unasked = Screen(stream.cols, stream.rows), Screen(stream.cols, stream.rows)
    for start in range(0, len(stream.data), max(1, len(stream.data) // 7)):
        piece = stream.data[start : start + max(1, len(stream.data) // 7)]
        asked.feed(piece)
        unasked.feed(piece)
        asked.snapshot()
        asked.redraw(scrollback=True)
    assert asked.snapshot() == unasked.snapshot()
    assert asked.redraw(scrollback=True) == unasked.redraw(scrollback=True)


@pytest.mark.parametrize(("candidate", "stream"), chosen(CASES, lambda case: case[1].recording), ids=CASE_IDS)
def test_every_chunking_gives_the_same_screen(candidate: str, stream: Stream, request: pytest.FixtureRequest) -> None:
    if stream.name == "synchronized":
        expect_fault(request, candidate, "chunks")
    whole = make(candidate, stream.cols, stream.rows)
    whole.feed(stream.data)
    for size in (1, 7, 1000) if len(stream.data) < 10_000 else (997,):
        pieces = make(candidate, stream.cols, stream.rows)
        for start in range(0, len(stream.data), size):
            pieces.feed(stream.data[start : start + size])
        assert pieces.view() == whole.view(), size


def test_wide_characters_are_one_character(candidate: str, request: pytest.FixtureRequest) -> None:
    expect_fault(request, candidate, "wide")
    terminal = make(candidate, 10, 3)
    terminal.feed("漢字x\r\n12345678\x1b[31m9漢".encode())
    view = terminal.view()
    assert view.lines == ("漢字x", "123456789", "漢")
    assert view.wrapped == (False, True, False)
    assert view.cursor == (2, 2)


def test_palette_indexes_are_kept(candidate: str, request: pytest.FixtureRequest) -> None:
    expect_fault(request, candidate, "palette")
    terminal = make(candidate, 10, 2)
    terminal.feed(b"\x1b[31ma\x1b[38;5;200mb\x1b[38;2;1;2;3mc\x1b[39md")
    assert [cell.fg for cell in terminal.cells()[0][:4]] == [1, 200, (1, 2, 3), None]


def test_queries_are_not_answered_by_the_emulator() -> None:
    """The screen has no way to send; its own questions to the emulator must not be confused by a program's."""
    screen = Screen(20, 4)
    screen.feed(b"\x1b[6n" * 3000 + b"a" * 25 + b"\r")
    assert screen.snapshot().wrapped == (True, False, False, False)


TOKENS = [
    *(stream.data for stream in made()),
    *(b"\x1b", b"\x1b[", b"\x1b]", b"\x1bP", b"\x07", b"\x1b\\", b";", b"?", b"5", b"\xe6", b"\xbc", b"\xa2", b"\xff"),
    *("e\u0301".encode(), "\u0301".encode(), "\u200d".encode(), "👩".encode(), b"\x1b[?2027h", b"\x1b[31m"),
    *(
        b"\r\n",
        b"\x1b[H",
        b"\x1b[5;30H",
        b"\x1b[K",
        b"\x1b[J",
        b"\x1b[L",
        b"\x1b[P",
        b"\x1bM",
        b"\x1b[?1049l",
        b"\x1bc",
    ),
]
OUTPUT = st.lists(st.one_of(st.binary(max_size=6), st.sampled_from(TOKENS)), max_size=15).map(b"".join)


@settings(max_examples=150, deadline=None)
@given(data=OUTPUT, cuts=st.lists(st.integers(0, 400), max_size=6), cols=st.integers(1, 50), rows=st.integers(3, 12))
def test_any_bytes_in_any_chunks(data: bytes, cuts: list[int], cols: int, rows: int) -> None:
    """Never an error, and the same screen however the bytes arrive, looked at or not."""
    whole, pieces = Screen(cols, rows), Screen(cols, rows)
    whole.feed(data)
    for start, end in pairwise([0, *sorted(cut for cut in cuts if cut <= len(data)), len(data)]):
        pieces.feed(data[start:end])
        pieces.snapshot()
    assert pieces.snapshot() == whole.snapshot()
    assert pieces.pending == whole.pending
    assert len(whole.snapshot().lines) == rows
    assert whole.redraw(scrollback=True)
    assert pieces.text(scrollback=True) == whole.text(scrollback=True)
    for row in range(rows):
        assert sum(cell.width for cell in whole.row_cells(row)) == cols


DRAWN = st.lists(
    st.sampled_from(
        [
            *(b"word ", b"  ", b"0123456789", "漢字".encode(), "é✳".encode(), b"\r\n", b"\r", b"\b", b"\t", b"\xff"),
            *(b"\x1b[m", b"\x1b[1;31m", b"\x1b[2;4:3m", b"\x1b[48;5;200m", b"\x1b[38;2;1;2;3m", b"\x1b[7m"),
            *(b"\x1b[H", b"\x1b[3;4H", b"\x1b[99;99H", b"\x1b[J", b"\x1b[2J", b"\x1b[K", b"\x1b[1K", b"\x1b[2K"),
            *(b"\x1b[L", b"\x1b[M", b"\x1b[P", b"\x1b[2@", b"\x1b[S", b"\x1b[T", b"\x1bM", b"\x1b[X", b"\x1b[5b"),
            *(b"\x1b[2;4r", b"\x1b[r", b"\x1b[?6h", b"\x1b[?6l", b"\x1b[?7l", b"\x1b[?7h", b"\x1b[4h", b"\x1b[4l"),
            *(b"\x1b[?25l", b"\x1b[?2004h", b"\x1b[?1000;1006h", b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b]2;t\x07"),
            *(b"\x1b(0qx\x1b(B", b"\x1b(0", b"\x0e", b"\x0f", b"\x1b[3g", b"\x1bH", b"\x1b[>1u", b"\x1b[3 q", b"\x1bc"),
        ]
    ),
    max_size=30,
).map(b"".join)


@settings(max_examples=300, deadline=None)
@given(data=DRAWN, cols=st.integers(2, 14), rows=st.integers(3, 6), scrollback=st.booleans())
@example(data="word \x1b[1;31m漢字".encode(), cols=5, rows=3, scrollback=False)
@example(data="word\x1b[1;31m漢字".encode(), cols=5, rows=3, scrollback=True)
def test_any_drawing_survives_the_round_trip(data: bytes, cols: int, rows: int, scrollback: bool) -> None:
    original, copy = Screen(cols, rows), Screen(cols, rows)
    original.feed(data)
    copy.feed(original.redraw(scrollback=scrollback))
    assert copy.snapshot() == original.snapshot()
    assert [copy.row_cells(row) for row in range(rows)] == [original.row_cells(row) for row in range(rows)]
    before, after = (screen._emulator.extras() for screen in (original, copy))
    assert after == before


@settings(max_examples=100, deadline=None)
@given(data=DRAWN, sizes=st.lists(st.tuples(st.integers(1, 30), st.integers(3, 12)), min_size=1, max_size=4))
def test_any_resizing(data: bytes, sizes: list[tuple[int, int]]) -> None:
    screen = Screen(12, 5)
    for cols, rows in sizes:
        screen.feed(data)
        screen.resize(cols, rows)
        snapshot = screen.snapshot()
        assert (snapshot.cols, len(snapshot.lines)) == (cols, rows)
        assert snapshot.cursor[0] < rows
        assert snapshot.cursor[1] < cols
        assert screen.redraw(scrollback=True)
        for row in range(rows):
            assert sum(cell.width for cell in screen.row_cells(row)) == cols
