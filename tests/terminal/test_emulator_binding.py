"""The binding of libghostty-vt: it is held to what the library says of itself, and reads rows as they are."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.ghostty_abi import TARGET, compiled
from synapsed.terminal.emulator import Emulator
from synapsed.terminal.emulator_rows import ScreenRow
from synapsed.terminal.snapshot import Cell

COLS, ROWS = 40, 10


@pytest.fixture
def emulator() -> Emulator:
    return Emulator(COLS, ROWS, scrollback_lines=1000)


def read(emulator: Emulator) -> list[ScreenRow]:
    return [emulator.rows.row(index) for index in range(len(emulator.read()))]


def text(row: ScreenRow) -> str:
    return "".join(row.graphemes).rstrip(" ")


def test_the_declarations_are_compiled(tmp_path: Path) -> None:
    compiled(tmp_path / "again.py")
    again, kept = ((path.read_text()) for path in (tmp_path / "again.py", TARGET))
    assert ast.dump(ast.parse(again)) == ast.dump(ast.parse(kept)), "python -m scripts.ghostty_abi"


BROKEN = {
    "another version": ("library_version", "9.9.9"),
    "a larger struct": ("types.GhosttyStyle.size", 80),
    "a field elsewhere": ("types.GhosttyRenderStateColors.fields.palette.offset", 20),
    "a point of another size": ("types.GhosttyPoint.size", 32),
}
REFUSES = """
import json, sys
from synapsed.terminal import ghostty as binding
told = json.loads(binding.ffi.string(binding.lib.ghostty_type_json()))
*path, last = sys.argv[1].split(".")
at = told
for name in path:
    at = at[name]
at[last] = json.loads(sys.argv[2])
binding.json.loads = lambda _: told
try:
    binding._types()
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_a_library_that_is_laid_out_otherwise_is_refused(change: tuple[str, object]) -> None:
    argv = [sys.executable, "-c", REFUSES, change[0], json.dumps(change[1])]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith(
        ("libghostty-vt is 9.9.9", "GhosttyStyle of", "GhosttyRenderState", "GhosttyPoint of")
    )


def test_pyghostty_itself_is_not_imported() -> None:
    code = "import sys, synapsed.terminal.emulator; assert not {'pyghostty', 'cffi'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)


def test_a_row_that_shows_the_same_is_the_same_object_wherever_it_stands(emulator: Emulator) -> None:
    emulator.feed(b"\x1b[31mone\x1b[m\r\ntwo\r\n")
    one, two, *_ = read(emulator)
    emulator.feed(b"\x1b[1;1H\x1b[L")
    assert read(emulator)[1:3] == [one, two]
    emulator.feed(b"\x1b[2;1H\x1b[32mone")
    now = read(emulator)[1]
    assert text(now) == text(one)
    assert emulator.rows.styles[now.styles[0]].fg == 2
    assert emulator.rows.styles[one.styles[0]].fg == 1


def test_a_number_that_a_page_gives_to_another_style_is_another_style(emulator: Emulator) -> None:
    """The cells are bit for bit the same: the page has forgotten the first style when it is given the second."""
    for color in range(200):
        emulator.feed(b"\x1b[2J\x1b[H\x1b[m\x1b[38;2;1;2;%dmsame" % color)
        row = read(emulator)[0]
        assert emulator.rows.styles[row.styles[0]] == Cell(" ", fg=(1, 2, color))


def test_a_row_is_as_it_was_read_whatever_comes_then(emulator: Emulator) -> None:
    emulator.feed("\x1b[31me\u0301x\x1b[41m\x1b[K".encode())
    emulator.read()
    emulator.feed("\x1b[m\x1b[2J\x1b[H\x1b[32mo\u0308\x1b[42m\x1b[K".encode() + b"\r\n" * 300)
    row = emulator.rows.row(0)
    assert [*row.graphemes][:3] == ["e\u0301", "x", " "]
    assert [emulator.rows.styles[index] for index in row.styles[1:3]] == [Cell(" ", fg=1), Cell(" ", bg=1)]


def test_rows_of_two_pages_have_each_their_styles() -> None:
    """Each page numbers its styles by itself."""
    emulator = Emulator(COLS, 300, scrollback_lines=5000)
    for line in range(3000):
        emulator.feed(b"\x1b[38;2;%d;%d;7m%d\r\n" % (line % 256, line // 256, line))
        if line % 37 == 0:
            for row in filter(text, read(emulator)):
                number = int(text(row))
                assert emulator.rows.styles[row.styles[0]].fg == (number % 256, number // 256, 7)


def test_blanks_of_a_colour_have_no_text(emulator: Emulator) -> None:
    emulator.feed(b"\x1b[41m\x1b[K\r\n\x1b[48;2;9;8;7m\x1b[K\r\n\x1b[48;2;255;255;216mx\x1b[K")
    indexed, true, both, *_ = read(emulator)
    assert (text(indexed), text(true), text(both)) == ("", "", "x")
    assert {emulator.rows.styles[index] for index in indexed.styles} == {Cell(" ", bg=1)}
    assert {emulator.rows.styles[index] for index in true.styles} == {Cell(" ", bg=(9, 8, 7))}
    assert {emulator.rows.styles[index] for index in both.styles} == {Cell(" ", bg=(255, 255, 216))}


def test_clusters_of_any_length(emulator: Emulator) -> None:
    long = "e" + "\u0301" * 64
    emulator.feed(f"a\u0301漢\u0308x\r\n{long}{long}".encode())
    first, second, *_ = read(emulator)
    assert [*first.graphemes][:5] == ["a\u0301", "漢\u0308", "", "x", " "]
    assert [*second.graphemes][:2] == [long, long]
    emulator.feed("\x1b[1;1Ha\u0300".encode())
    assert read(emulator)[0].graphemes[0] == "a\u0300", "the cell is bit for bit the same"


@pytest.mark.parametrize("before", [b"", b"\x1b[?2027h"], ids=["marks", "clusters"])
@pytest.mark.parametrize("pens", [(), (b"\x1b[31m", b"\x1b[1m")], ids=["at once", "behind pens"])
def test_what_joins_a_character_that_was_read_is_seen(
    emulator: Emulator, before: bytes, pens: tuple[bytes, ...]
) -> None:
    """The library does not mark the row as changed."""
    emulator.feed(before + b"\x1b[4;1Hn")
    assert read(emulator)[3].graphemes[0] == "n"
    for piece in (*pens, "\u0303".encode()):
        emulator.feed(piece)
    assert read(emulator)[3].graphemes[0] == "n\u0303"
    emulator.feed("\u0323".encode())
    assert read(emulator)[3].graphemes[0] == "n\u0303\u0323"


def test_a_cluster_larger_than_the_buffer(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synapsed.terminal.emulator_rows._GRAPHEME_BYTES", 4)
    emulator.forget_styles()
    emulator.feed("e\u0301\u0301\u0301".encode())
    assert read(emulator)[0].graphemes[0] == "e\u0301\u0301\u0301"


def test_a_wide_character_that_did_not_fit_leaves_a_spacer(emulator: Emulator) -> None:
    emulator.feed(("x" * (COLS - 1) + "漢").encode())
    first, second, *_ = read(emulator)
    assert (first.wrapped, first.head, first.graphemes[-1], first.widths[-1]) == (True, True, " ", 1)
    assert (second.wrapped, second.head, [*second.graphemes][:2]) == (False, False, ["漢", ""])
    emulator.feed(b"\x1b[1;%dHy" % COLS)
    assert not read(emulator)[0].head


def test_a_cursor_that_waits_to_wrap_is_told(emulator: Emulator) -> None:
    emulator.feed(b"x" * COLS)
    assert emulator.waits_to_wrap()
    emulator.feed(b"\r")
    assert not emulator.waits_to_wrap()
    emulator.feed(b"\x1b[?69h\x1b[1;10s\x1b[H0123456789")
    assert emulator.waits_to_wrap(), "at a right margin, too"


@pytest.mark.parametrize("number", range(1, 7))
def test_the_shapes_of_the_cursor(emulator: Emulator, number: int) -> None:
    emulator.read()
    assert emulator.shape() == b""
    emulator.feed(b"\x1b[%d q" % number)
    emulator.read()
    assert emulator.shape() == b"%d" % number
    emulator.feed(b"\x1b[0 q")
    emulator.read()
    assert emulator.shape() == b""


@pytest.mark.parametrize(
    "columns",
    [
        b"\x1b[?40h\x1b[?3h",
        b"\x1b[?40;3h",
        b"\x1b[?0040h\x1b[?3h",
        b"\x1b[?65576h\x1b[?3h",
        b"\x1b[?40s\x1b[?40r\x1b[?3h",
    ],
    ids=repr,
)
def test_132_columns_are_not_given(emulator: Emulator, columns: bytes) -> None:
    emulator.feed(columns + b"x" * 60)
    assert [text(row) for row in read(emulator)[:3]] == ["x" * COLS, "x" * 20, ""]


def test_what_is_kept_above_is_about_what_was_asked_for() -> None:
    for cols in (40, 120, 300):
        emulator = Emulator(cols, ROWS, scrollback_lines=1000)
        emulator.feed(b"".join(b"%d\r\n" % number for number in range(20_000)))
        kept = emulator.text().count("\n")
        assert 1000 <= kept <= 5000, cols
    none = Emulator(COLS, ROWS, scrollback_lines=0)
    none.feed(b"".join(b"%d\r\n" % number for number in range(100)))
    assert none.text().split("\n")[0] == "91"
