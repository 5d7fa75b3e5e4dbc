"""Looking back: pure."""

import pytest

from synapsectl.lookback import Lookback, rows_of
from synapsed.terminal.emulated_screen import Screen

LINES = [f"\x1b[3{number % 8}mline {number}\x1b[m" for number in range(5000)]
SIZE = (40, 11)


def seen(view: Lookback, size: tuple[int, int] = SIZE) -> tuple[str, ...]:
    screen = Screen(*size)
    screen.feed(b"\x1b[44m" + b"#" * size[0] * size[1] + view.draw())
    return screen.snapshot().lines


def test_it_begins_at_the_end_and_goes_everywhere() -> None:
    view = Lookback(LINES, SIZE)
    assert seen(view)[:10] == tuple(f"line {number}" for number in range(4990, 5000))
    assert "5000/5000" in seen(view)[-1]
    for keys, first in [
        (b"k", 4989),
        (b"\x1b[A\x1bOA", 4987),
        (b"\x1b[5~", 4978),
        (b"\x02", 4969),
        (b"g", 0),
        (b"\x1b[6~", 9),
        (b"j\r", 11),
        (b"d", 15),
        (b"\x15", 11),
        (b"\x1b[<65;3;3M", 14),
        (b"\x1b[<64;3;3M", 11),
        (b"\x1b[<0;3;3M", 11),
        (b"G", 4990),
        (b"\x1b[1;2H", 0),
    ]:
        assert view.feed(keys) == b""
        assert seen(view)[0] == f"line {first}", keys


@pytest.mark.parametrize("key", [b"q", b"\x1b", b"\x03"])
def test_back_to_live(key: bytes) -> None:
    view = Lookback(LINES, SIZE)
    assert view.feed(b"g" + key + b"rest") == b"rest"
    assert view.over


def test_the_wheel_leads_back_where_it_leads_to_the_end() -> None:
    view = Lookback(LINES, SIZE)
    view.feed(b"\x1b[<64;1;1M\x1b[<65;1;1M")
    assert not view.over
    view.feed(b"\x1b[<65;1;1M")
    assert view.over


def test_search() -> None:
    view = Lookback(LINES, SIZE)
    view.feed(b"?LINE 123")
    assert seen(view)[-1].startswith("?LINE 123")
    view.feed(b"\x7f\r")
    assert "not found" in seen(view)[-1], "capitals count where there are some"
    view.feed(b"?line 12")
    view.feed(b"3\x1b[D\r")
    assert seen(view)[0] == "line 1239"
    view.feed(b"n")
    assert seen(view)[0] == "line 1238"
    view.feed(b"NN")
    assert seen(view)[0] == "line 123", "the other way, and around the end"
    view.feed(b"g/line 4999\r")
    assert "line 4999" in seen(view)
    view.feed(b"n")
    assert "around" in seen(view)[-1]
    view.feed(b"/nothing like it\r")
    assert "not found" in seen(view)[-1]
    assert not view.over


@pytest.mark.parametrize("pattern", ["m", "3", "[", "1m", "31", "h"])
def test_a_pattern_is_marked_in_the_text_alone(pattern: str) -> None:
    view = Lookback(["\x1b[31mhammer 31 [x]\x1b[1;33m m\x1b[mm"], SIZE)
    view.feed(b"/" + pattern.encode() + b"\r")
    screen = Screen(*SIZE)
    screen.feed(view.draw())
    text = "hammer 31 [x] mm"
    assert screen.snapshot().lines[0] == text
    reverse = {at + offset for at in range(len(text)) if text.startswith(pattern, at) for offset in range(len(pattern))}
    cells = screen.row_cells(0)
    assert {at for at, cell in enumerate(cells[: len(text)]) if cell.inverse} == reverse
    assert cells[0].fg == 1, "the colour is the line's own"


def test_a_mouse_report_of_any_length_is_taken() -> None:
    view = Lookback(LINES, SIZE)
    assert view.feed(b"\x1b[<" + b"9" * 5000 + b";1;1Mg") == b""
    assert seen(view)[0] == "line 0"


def test_long_lines_are_cut_into_rows_with_their_colours() -> None:
    line = "\x1b[31m" + "漢" * 25 + "\x1b[mé" + "x" * 3
    rows = rows_of(line, 7)
    screen = Screen(7, len(rows))
    screen.feed("\r\n".join(rows).encode())
    assert "".join(screen.snapshot().lines) == "漢" * 25 + "éxxx"
    assert screen.row_cells(len(rows) - 2)[0].fg == 1


def test_another_size_keeps_the_place() -> None:
    view = Lookback([*LINES[:50], "x" * 400, *LINES[50:]], SIZE)
    view.feed(b"/line 200\r")
    view.resize((20, 6))
    assert seen(view, (20, 6))[0] == "line 200"
    assert seen(Lookback([], SIZE))[0] == ""
    empty = Lookback([], (1, 1))
    empty.feed(b"gG/x\rn")
    empty.draw()
