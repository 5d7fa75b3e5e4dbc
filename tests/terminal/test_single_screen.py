"""Output on one screen: the other one, and what is above it, stay as they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.terminal.scanner import ViewerFilter
from synapsed.terminal.screen import Screen
from synapsed.terminal.single_screen import on_one_screen

COLS, ROWS = 30, 6
MINE = b"".join(b"mine %d\r\n" % number for number in range(20)) + b"$ "
CHANGES = ("47", "1047", "1049", "0001049", "25;1049", "1049;25", "1;47;2004", "01047")
PIECES = st.sampled_from(
    [
        *(b"\x1b[?%b%c" % (mode.encode(), final) for mode in CHANGES for final in b"hlsr"),
        b"\x1bc",
        b"\x1b[3J",
        b"\x1b[0003J",
        b"\x1b[2;3J",
        b"\x1b[J",
        b"\x1b[2J",
        b"\x1b[H",
        b"\x1b[?25l",
        b"\x1b[31;3m",
        b"\x1b7",
        b"\x1b8",
        b"\x1b[1048h",
        b"words 3J \r\n",
        "漢字".encode(),
    ]
)


@given(st.lists(PIECES, max_size=30), st.integers(1, 9))
def test_whatever_a_program_does_a_persons_own_screen_stays(pieces: list[bytes], length: int) -> None:
    seen = Screen(COLS, ROWS)
    seen.feed(MINE)
    before = seen.text(scrollback=True)
    seen.feed(b"\x1b[?1049h")
    whole = b"".join(pieces)
    stream = ViewerFilter()
    for at in range(0, len(whole), length):
        shown, switched = on_one_screen(stream.feed(whole[at : at + length]))
        seen.feed(shown)
        assert seen.snapshot().alternate
        if switched:
            seen.feed(b"drawn again")
    seen.feed(b"\x1b[?1049l")
    assert seen.text(scrollback=True) == before


@pytest.mark.parametrize("mode", CHANGES)
@pytest.mark.parametrize("final", [b"h", b"l", b"r"])
def test_what_is_behind_a_change_is_left_to_the_redraw(mode: str, final: bytes) -> None:
    assert on_one_screen(b"a\x1b[3Jb\x1b[?%b%cc" % (mode.encode(), final[0])) == (b"ab", True)


@pytest.mark.parametrize(
    "data", [b"", b"J3", b"\x1b[?25l\x1b[?2004h\x1b[13J\x1b[33m\x1b[J", b"\x1b[?1048h\x1b[?10490h\x1b[?1049s\x1b(c"]
)
def test_the_rest_passes_as_it_is(data: bytes) -> None:
    assert on_one_screen(data) == (data, False)
