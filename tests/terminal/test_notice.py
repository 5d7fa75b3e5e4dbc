"""Laying out a notice."""

from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.pane import notice_rows


def test_it_is_wrapped_by_columns() -> None:
    assert notice_rows("abcdef", 4, 9) == ("abcd", "ef")
    assert notice_rows("日本語", 5, 9) == ("日本", "語")
    assert notice_rows("a\nb", 5, 9) == ("a", "b")


def test_what_does_not_fit_is_cut() -> None:
    assert notice_rows("abcdefghij", 4, 2) == ("abcd", "efg…")
    assert notice_rows("one\ntwo", 10, 0) == ("one…",)


def test_nothing_in_it_acts_on_the_terminal() -> None:
    assert notice_rows("a\x1b[2Jb\x07\x9bc", 40, 3) == ("a[2Jbc",)


def test_it_is_part_of_a_redraw() -> None:
    screen = Screen(10, 4)
    screen.feed(b"one\r\ntwo\r\nthree\r\nfour")
    drawn = Screen(10, 4)
    drawn.feed(screen.redraw(notice=notice_rows("[← codex] あ", 10, 2)))
    assert drawn.snapshot().lines == ("one", "two", "[← codex]", "あ")
    assert drawn.snapshot().cursor == screen.snapshot().cursor
    drawn.feed(screen.redraw())
    assert drawn.redraw() == screen.redraw()
