"""Rows of a page: the same cells as everywhere else, and what of them is told again."""

import json
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapsed.model.picture import Rows
from synapsed.parts.live_screens.frames import ScreenChanges
from synapsed.screens import checked_replies, protocol
from synapsed.screens.protocol import ScreenFrameError
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.rows import drawable
from tests.golden.replay import CASES, Case
from tests.support.gated import chosen

pytestmark = pytest.mark.recorded


def shown(*texts: bytes, cols: int = 20, rows: int = 3) -> Rows:
    screen = Screen(cols, rows)
    for text in texts:
        screen.feed(text)
    return checked_replies.read_rows(protocol.write_rows(screen.page_rows()))


def runs(row: str) -> list[list[Any]]:
    told: list[list[Any]] = json.loads(row)
    return told


def text(row: str) -> str:
    return "".join(run[1] if isinstance(run[1], str) else "".join(run[1]) for run in runs(row))


def columns(row: str) -> int:
    return sum(run[0] for run in runs(row))


def cells(row: str) -> dict[int, str]:
    """What stands in which column, but for spaces."""
    found, at = {}, 0
    for columns, told, *_ in runs(row):
        for cell in told:
            found[at] = cell
            at += columns // len(told)
    return {column: cell for column, cell in found.items() if cell != " "}


def drawn(screen: Screen, index: int) -> dict[int, str]:
    """The same as the emulator has it."""
    found, at = {}, 0
    for cell in screen.row_cells(index):
        found[at] = " " if cell.invisible else drawable(cell.text)
        at += cell.width
    return {column: cell for column, cell in found.items() if cell != " "}


# --- rows ------------------------------------------------------------------------------------------------------------


def test_a_run_has_its_columns_and_its_looks():
    page = shown(b"plain \x1b[1;31mred\x1b[0;7m inverse\x1b[0;48;2;1;2;3m  \x1b[m")
    plain, red, inverse, blank = runs(page.lines[0])
    assert plain == [6, "plain "]
    assert (red[0], red[1], red[4]) == (3, "red", 1)
    assert inverse[1:4] == [" inverse", page.background, page.foreground]
    assert blank == [2, "  ", "", "#010203"]
    assert page.lines[1:] == ("[]", "[]")


def test_every_line_is_told():
    (run,) = runs(shown(b"\x1b[3;4:3;58:2::9:8:7;9;53mx").lines[0])
    assert run == [1, "x", "", "", 2 | 4 | 8 | 16 | 128, "#090807"]


def test_wide_characters_are_told_one_by_one():
    assert runs(shown("a日本b".encode()).lines[0]) == [[1, "a"], [4, ["日", "本"]], [1, "b"]]


def test_a_cell_outside_ascii_is_told_by_itself():
    page = shown("⏸ plan mode on\r\ne\u0301⎿❤️ok".encode(), cols=20)
    assert runs(page.lines[0])[0] == [1, ["⏸"]]
    assert text(page.lines[0]) == "⏸ plan mode on"
    assert [run for row in page.lines for run in runs(row) if isinstance(run[1], str) and not run[1].isascii()] == []


def test_half_of_a_wide_character_keeps_the_columns():
    page = shown("日本語".encode(), b"\x1b[1;2Hx")
    assert columns(page.lines[0]) == 6
    assert text(page.lines[0]) == " x本語"


def test_a_wide_character_whose_halves_differ_in_style_is_one():
    assert columns(shown("日\x1b[31m本".encode(), b"\x1b[1;5H.").lines[0]) == 5


def test_what_is_hidden_is_not_told():
    page = shown(b"a\x1b[8msecret\x1b[0mb")
    assert text(page.lines[0]) == "a      b"


def test_what_turns_writing_around_is_not_told():
    assert "\u202e" not in shown("a\u202eb".encode()).lines[0]


def test_colours_that_change_are_worked_out_again():
    screen = Screen(10, 1)
    screen.feed(b"\x1b[31mred")
    before = screen.page_rows()
    screen.feed(b"\x1b]4;1;rgb:01/02/03\x07")
    after = screen.page_rows()
    assert before.lines != after.lines
    assert runs(after.lines[0])[0][2] == "#010203"


@pytest.mark.parametrize("case", chosen(CASES, attrgetter("name")), ids=attrgetter("name"))
def test_recordings_have_the_text_of_the_screen(case: Case):
    screen = Screen(*case.record["size"])
    raw = case.raw
    for start in range(0, len(raw), max(1, len(raw) // 8)):
        screen.feed(raw[start : start + max(1, len(raw) // 8)])
        page, now = checked_replies.read_rows(protocol.write_rows(screen.page_rows())), screen.snapshot()
        for index, (row, line) in enumerate(zip(page.lines, now.lines, strict=True)):
            assert text(row).rstrip(" ") == line.rstrip(" ")
            assert columns(row) <= now.cols
            assert all(isinstance(run[1], list) or (run[1].isascii() and run[0] == len(run[1])) for run in runs(row))
            assert all(run[0] in (len(run[1]), 2 * len(run[1])) for run in runs(row))
            assert cells(row) == drawn(screen, index)
        assert page.cursor == (now.cursor if now.cursor_visible else None)


@given(
    st.lists(
        st.binary(max_size=60) | st.sampled_from(["日本".encode(), b"\x1b[31;7m", b"\r\n", b"\x1b[2D"]), max_size=12
    )
)
@settings(deadline=None)
def test_whatever_is_printed_can_be_told(pieces: list[bytes]):
    page = shown(*pieces, cols=9, rows=2)
    assert all(columns(row) <= 9 for row in page.lines)


@pytest.mark.parametrize(
    "told",
    [
        ["not json"],
        ['[[1,"x","red"]]'],
        ['[[30,"x"]]'],
        ['[[1,["a","\\u0001"]]]'],
        ['[[0,"x"]]'],
        ['{"a":1}'],
        ["[]"] * 4,
    ],
)
def test_what_the_other_process_says_is_looked_at(told: list[str]):
    page = [20, 3, "", "#ffffff", "#000000", None, told]
    with pytest.raises(ScreenFrameError):
        checked_replies.read_rows(json.dumps(page).encode())


# --- changes ---------------------------------------------------------------------------------------------------------


def told(changes: ScreenChanges, frame: int) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(changes.after(frame))
    return message


def test_who_is_new_is_told_all_and_who_lags_what_is_newer():
    changes = ScreenChanges()
    assert changes.take(shown(b"one\r\ntwo"))
    assert told(changes, 0)["whole"] is True
    assert list(told(changes, 0)["lines"]) == ["0", "1", "2"]
    first = changes.frame
    assert not changes.take(shown(b"one\r\ntwo"))
    assert changes.take(shown(b"one\r\nTWO"))
    assert changes.take(shown(b"one\r\nTWO\r\nthree"))
    assert list(told(changes, first)["lines"]) == ["1", "2"]
    assert list(told(changes, first + 1)["lines"]) == ["2"]
    assert told(changes, first)["whole"] is False


def test_another_size_is_told_whole():
    changes = ScreenChanges()
    changes.take(shown(b"one"))
    frame = changes.frame
    changes.take(shown(b"one", cols=30))
    assert told(changes, frame)["whole"] is True
    assert told(changes, frame)["cols"] == 30


def test_a_program_that_ended_leaves_its_screen():
    changes = ScreenChanges()
    changes.rest("no program runs")
    assert told(changes, 0) == {"type": "screen", "frame": 1, "still": "no program runs"}
    changes.take(shown(b"one"))
    frame = changes.frame
    assert told(changes, frame - 1)["still"] is None
    changes.rest("its program ended")
    changes.rest("its program ended")
    assert changes.frame == frame + 1
    assert told(changes, frame)["still"] == "its program ended"
    assert told(changes, frame)["lines"] == {}
