"""A screen as terminals of other sizes show it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.pane import UNDO, part_of

TEXT = st.text(alphabet="ab漢字é👍🏽 \t", max_size=60)
SIZES = st.tuples(st.integers(1, 30), st.integers(3, 12))


def shown(screen: Screen, cols: int, rows: int) -> Screen:
    """The terminal of whoever looks on, which has shown something else before."""
    other = Screen(cols, rows)
    other.feed(b"\x1b[?1049h\x1b[2;3r\x1b[44m" + b"#" * cols * rows + UNDO + b"!" * cols * rows)
    other.feed(screen.pane(cols, rows))
    return other


@given(st.lists(TEXT, max_size=14), SIZES, SIZES)
def test_every_cell_of_the_part_is_there_and_nothing_else(
    lines: list[str], size: tuple[int, int], view: tuple[int, int]
):
    screen = Screen(*size)
    for number, line in enumerate(lines):
        screen.feed(f"\x1b[3{number % 8};4{number % 7}m{line}\x1b[m\r\n".encode())
    seen = shown(screen, *view)
    whole = screen.snapshot()
    last = max((n for n in range(size[1]) if any(cell.text != " " for cell in screen.row_cells(n))), default=-1)
    part = part_of(size, view, whole.cursor, last, follows=True)
    for row in range(view[1]):
        columns = columns_of(seen, row)
        wanted = columns_of(screen, part.top + row)[part.left :][: view[0]] if part.top + row < size[1] else []
        for column, cell in enumerate(columns):
            expected = wanted[column] if column < len(wanted) else (" ", None, None)
            if expected[0] == "" and (column == 0 or columns[column - 1][0] == " "):
                expected = (" ", *expected[1:])  # the second half of a character whose first half is beyond the edge
            if expected[0] != cell[0] and column == view[0] - 1:
                beyond = columns_of(screen, part.top + row)[part.left + column + 1 :]
                half = bool(beyond) and beyond[0][0] == ""
                assert (cell[0], half) == (" ", True), "the rest of the character is beyond the edge"
                continue
            assert cell == expected, (row, column)
    assert seen.snapshot().cursor == (whole.cursor[0] - part.top, whole.cursor[1] - part.left)


def columns_of(screen: Screen, row: int) -> list[tuple[str, object, object]]:
    """What stands in each column: a wide character in its first one, an empty string in its second."""
    return [
        (cell.text if not half else "", cell.fg if cell.text != " " else None, cell.bg)
        for cell in screen.row_cells(row)
        for half in range(cell.width)
    ]


@pytest.mark.parametrize(
    ("cursor", "last", "part"),
    [
        ((0, 0), 39, (0, 0)),
        ((39, 0), 39, (30, 0)),
        ((30, 5), 33, (23, 0)),
        ((20, 79), 39, (13, 60)),
        ((20, 45), 39, (13, 30)),
        ((5, 19), 5, (0, 0)),
    ],
)
def test_the_cursor_is_in_the_part(cursor: tuple[int, int], last: int, part: tuple[int, int]) -> None:
    assert part_of((80, 40), (20, 10), cursor, last, follows=True) == part


def test_a_hidden_cursor_moves_nothing_to_the_side() -> None:
    assert part_of((80, 40), (20, 10), (5, 79), 20, follows=False).left == 0


def test_modes_shape_and_cursor() -> None:
    screen = Screen(40, 10)
    screen.feed(b"\x1b[?1h\x1b[?2004h\x1b[?1003h\x1b[5 q\x1b[31mred\x1b[m")
    seen = shown(screen, 20, 5)
    assert {1, 2004} <= seen.snapshot().modes.dec
    assert 1003 not in seen.snapshot().modes.dec, "its mouse would be at other places"
    assert seen.snapshot().modes.dec >= {7, 25}
    assert not seen.snapshot().alternate
    assert seen.row_cells(0)[0].fg == 1, "a colour of the palette stays one"
    screen.feed(b"\x1b[?25l")
    assert not shown(screen, 20, 5).snapshot().cursor_visible


def test_keys_are_written_as_the_program_wants_them() -> None:
    """The next one may be for it."""
    screen = Screen(30, 5)
    screen.feed(b"\x1b[>5u")
    assert shown(screen, 10, 3).keyboard_flags() == 5
    screen.feed(b"\x1b[<u")
    assert shown(screen, 10, 3).keyboard_flags() == 0
