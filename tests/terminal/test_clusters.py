"""No cell gets more characters than the emulator survives, whatever stands between them; what is usual stays whole."""

import os
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapsed.terminal.clusters import CLUSTER_MAX, ClusterBound, is_joining
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.emulator import Emulator

ZWSP, BOM, ACUTE, ZWJ, VS16 = "\u200b", "\ufeff", "\u0301", "\u200d", "\ufe0f"
WOMAN, CHOSEONG, VIRAMA, KA, PREPENDED = "\U0001f469", "\u1100", "\u094d", "\u0915", "\u0600"

CELL_MAX = 2 * CLUSTER_MAX + 2


def longest_cell(screen: Screen) -> int:
    rows = range(screen.snapshot().rows)
    return max(len(cell.text) for row in rows for cell in screen.row_cells(row))


def bounded(text: str, *, clusters: bool = False) -> str:
    return ClusterBound().feed(text.encode(), clusters=clusters).decode()


FLOODS = {
    "zero width spaces": "a" + ZWSP * 2000,
    "byte order marks": "a" + BOM * 2000,
    "accents": "a" + ACUTE * 2000,
    "in colours": "a" + (ZWSP + "\x1b[31m") * 2000,
    "back onto the same cell": "a" + ("\x1b[H\x1b[C" + ZWSP * 30) * 200,
    "one column back": "ab" + ("\b" + ZWSP * 30) * 200,
    "saved and restored": "a\x1b7" + ("\x1b8" + ZWSP * 30) * 200,
    "repeated": "a" + ZWSP + "\x1b[2000b" * 3,
    "inserted before": "a" + ("\x1b[4h" + ZWSP * 30 + "\x1b[4l\r\x1b[C") * 200,
    "behind a wide character": "漢" + ZWSP * 2000,
    "in the last column, over and over": "\x1b[?7l\x1b[99Ga" + ("b" + ACUTE * 60) * 100,
    "that is not printed": "\x1b[?7l\x1b[99Ca" + ("漢" + ZWSP * 20) * 200,
    "in the last column": "\x1b[80Ga" + ZWSP * 2000,
    "behind a title": "a" + ("\x1b]0;t\x07" + ZWSP * 30) * 200,
    "joined people": "\x1b[?2027h" + (WOMAN + ZWJ) * 2000,
    "joined people after movements": "\x1b[?2027h" + (WOMAN + ZWJ + "\x1b[H\x1b[2C") * 2000,
    "syllables": "\x1b[?2027h" + CHOSEONG * 2000,
    "syllables after movements": "\x1b[?2027h" + (CHOSEONG + "\x1b[H\x1b[2C") * 2000,
    "repeated syllables": "\x1b[?2027h" + CHOSEONG + "\x1b[2000b",
    "consonants": "\x1b[?2027h" + (KA + VIRAMA) * 2000,
    "prepended marks": "\x1b[?2027h" + PREPENDED * 2000,
    "prepended marks after movements": "\x1b[?2027h" + (PREPENDED + "\x1b[H\x1b[C") * 2000,
    "clustering switched over and over": "a" + ("\x1b[?2027h" + ZWJ * 10 + "\x1b[?2027l" + ZWJ * 10) * 200,
    "controls in a sequence": "a" + ("\x1b\a[m" + ZWSP * 60) * 100,
    "in a private message": "a\x1b^" + ACUTE * 3000 + "\u3164\u0301" * 3000 + "\x1b\\",
    "spoilt modes": "a" + ("\x1b[?\n2027h" + CHOSEONG * 50) * 50,
}


@pytest.mark.slow
@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
def test_no_cell_grows_without_end(flood: str) -> None:
    """Judged in a process of its own: without the bound some of these end it."""
    child = os.fork()
    if child == 0:
        grown = True
        try:
            for size in ((80, 24), (2, 2), (1, 1)):
                screen = Screen(*size)
                screen.feed(flood.encode())
                grown = longest_cell(screen) > CELL_MAX
                screen.resize(7, 3)
                screen.redraw(scrollback=True)
        finally:
            os._exit(grown)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


USUAL = [
    "e\u0301tude, nai\u0308ve",
    "\u1112\u1161\u11ab\u1100\u1173\u11af" * 40,  # Korean as some file systems spell it
    "\u0915\u094d\u0937\u0924\u094d\u0930\u093f\u092f " * 40,
    "\u0e17\u0e35\u0e48\u0e19\u0e35\u0e48" * 40,
    (WOMAN + ZWJ + WOMAN + ZWJ + "\U0001f467") * 40,
    ("\u2733" + VS16) * 100,
    "\U0001f1e9\U0001f1ea" * 100,
    "a\x1b[1m" + ACUTE,
    "\x1b]0;" + ("\u2733" + VS16) * 200 + "\x07",
    "a" + ACUTE * CLUSTER_MAX,
]


@pytest.mark.parametrize("clusters", [False, True])
@pytest.mark.parametrize("text", USUAL)
def test_what_people_write_stays_whole(text: str, clusters: bool) -> None:
    assert bounded(text, clusters=clusters) == text


def test_what_is_left_out() -> None:
    assert bounded("a" + ACUTE * (CLUSTER_MAX + 1) + "b") == "a" + ACUTE * CLUSTER_MAX + "b"
    assert bounded(ACUTE + "a\n" + ACUTE + "b") == "a\nb"
    assert bounded("a\x1b[H" + ACUTE) == "a\x1b[H"
    assert bounded("a" + ACUTE + "\x1b[5b.") == "a" + ACUTE + "."


@pytest.mark.night
@pytest.mark.timeout(600)
def test_every_character_that_the_emulator_appends_is_known() -> None:
    """A newer emulator may know more characters: they have to be in the tables here."""
    terminal = Emulator(8, 201, scrollback_lines=0)
    code_points = [code for code in range(0x80, 0x110000) if not 0xD800 <= code < 0xE000]
    unknown = []
    for clusters in (b"\x1b[?2027l", b"\x1b[?2027h"):
        for start in range(0, len(code_points), 200):
            tried = [chr(code) for code in code_points[start : start + 200]]
            terminal.feed(b"\x1bc" + clusters + "".join(f"a{character}\r\n" for character in tried).encode())
            terminal.read()
            unknown += [
                character
                for index, character in enumerate(tried)
                if len(terminal.rows.row(index).graphemes[0]) > 1 and not is_joining(character)
            ]
    assert unknown == []


def test_what_unicode_calls_a_mark_is_known() -> None:
    categories = ("Mn", "Me", "Mc")
    assert [c for c in map(chr, range(0x110000)) if unicodedata.category(c) in categories and not is_joining(c)] == []


TOKENS = [
    *(
        "a",
        "漢",
        ACUTE,
        ZWSP,
        BOM,
        ZWJ,
        WOMAN,
        VS16,
        CHOSEONG,
        "\u1161",
        "\u11a8",
        "가",
        KA,
        VIRAMA,
        PREPENDED,
        "\u0d4e",
    ),
    *(
        "\U0001f1e6",
        "\U0001f3fb",
        "\u0903",
        "\uff9e",
        "\u3164",
        "\x1b[m",
        "\x1b[1m",
        "\x1b[H",
        "\x1b[2C",
        "\x1b[D",
        "\b",
    ),
    *(
        "\r",
        "\n",
        "\t",
        "\x1b[9b",
        "\x1b[?7l",
        "\x1b[?7h",
        "\x1b[?2027h",
        "\x1b[?2027l",
        "\x1b[4h",
        "\x1b[4l",
        "\x1b[@",
    ),
    *("\x1b[P", "\x1b[?1049h", "\x1b[?1049l", "\x1bc", "\x1b(0", "\x1b(B", "q", "\x1b]0;\u200b\x07", "\x1b[?69h"),
    *("\x1b[2;3s", "\x1b7", "\x1b8", "\x1bM", "\x1b[K"),
]
OUTPUT = st.lists(st.tuples(st.sampled_from(TOKENS), st.sampled_from([1, 1, 5, 40])), max_size=40).map(
    lambda parts: "".join(token * times for token, times in parts).encode()
)


@settings(deadline=None)
@given(data=OUTPUT, cuts=st.lists(st.integers(0, 2000), max_size=4), cols=st.integers(1, 9), rows=st.integers(3, 5))
def test_any_output_keeps_the_bound_however_it_is_cut(data: bytes, cuts: list[int], cols: int, rows: int) -> None:
    whole, pieces = Screen(cols, rows), Screen(cols, rows)
    whole.feed(data)
    for start, end in pairwise([0, *sorted(cut for cut in cuts if cut <= len(data)), len(data)]):
        pieces.feed(data[start:end])
    assert pieces.snapshot() == whole.snapshot()
    assert longest_cell(whole) <= CELL_MAX
