"""What was printed, as lines with their colours."""

import json
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.scrollback_lines import joined, lines_from, lines_of, plain


def printed(count: int) -> bytes:
    return b"".join(b"\x1b[3%dmline %d\x1b[m and more\r\n" % (number % 8, number) for number in range(count))


def test_five_thousand_lines_with_their_colours() -> None:
    output = printed(5000)
    screen = Screen(80, 24)
    screen.feed(output)
    lines = lines_from(screen.redraw(scrollback=True), output, 80, 24)
    assert [plain(line) for line in lines] == [f"line {number} and more" for number in range(5000)]
    for number in (0, 7, 3000, 4999):
        again = Screen(80, 2)
        again.feed(lines[number].encode())
        cells = again.row_cells(0)
        assert (cells[0].fg, cells[12].fg) == (number % 8, None)


def test_long_lines_are_one_and_pens_go_on_over_lines() -> None:
    screen = Screen(20, 5)
    screen.feed(b"\x1b[1;31mone\r\ntwo\x1b[m \x1b[44m" + b"word " * 10 + b"\x1b[m\r\nthree")
    lines = lines_of(screen)
    assert [plain(line) for line in lines] == ["one", "two " + "word " * 10, "three"]
    for line, bold in zip(lines, (True, True, False), strict=True):
        again = Screen(20, 5)
        again.feed(line.encode())
        assert again.row_cells(0)[0].bold is bold


def test_what_the_daemon_kept_counts_more_than_what_is_printed_again() -> None:
    older = ["a", "b", "c as printed again", *map(str, range(20))]
    newer = ["c as it was", *map(str, range(20))]
    assert joined(["x", "a", "b", "c", "d"], ["c", "d"]) == ["x", "a", "b", "c", "d"]
    assert joined(older, newer)[-21:] == newer


@given(st.lists(st.sampled_from("abc"), max_size=30), st.integers(0, 30))
def test_joining_loses_nothing_that_was_kept(lines: list[str], at: int) -> None:
    result = joined(lines, lines[at:])
    assert result[len(result) - len(lines[at:]) :] == lines[at:]
    assert len(result) <= len(lines)


def test_a_full_screen_program_stands_below_what_was_printed_before() -> None:
    output = b"before\r\n\x1b[?1049h\x1b[Hfull screen"
    screen = Screen(40, 5)
    screen.feed(output)
    texts = [plain(line) for line in lines_from(screen.redraw(scrollback=True), output, 40, 5)]
    assert texts == ["before", "full screen"]


def test_as_a_program_of_its_own() -> None:
    screen = Screen(40, 5)
    screen.feed(output := b"one\r\n\x1b[31mtwo")
    shown = screen.redraw(scrollback=True)
    head = json.dumps({"cols": 40, "rows": 5, "shown": len(shown)}).encode() + b"\n"
    done = subprocess.run(
        [sys.executable, "-m", "synapsed.terminal.scrollback_lines"],
        input=head + shown + output,
        capture_output=True,
        check=True,
    )
    assert [plain(line) for line in json.loads(done.stdout)] == ["one", "two"]
