"""Prose read back from the rows of a screen: the beginning of what was written, or less of it."""

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.prose import Line, Wrapping, certain, columns
from synapsed.terminal.snapshot import PLAIN

WIDTH = 30
WRAPPING = Wrapping(WIDTH)


def rows(*texts: str) -> list[Line]:
    return [(text, PLAIN * len(text)) for text in texts]


def drawn(raw: str) -> list[Line]:
    """What a screen shows of it."""
    screen = Screen(80, 24)
    screen.feed(raw.replace("\n", "\r\n").encode())
    return list(zip(screen.snapshot().text().split("\n"), screen.kinds().split("\n"), strict=True))


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (("one two",), "one"),
        (("A paragraph that is wrapped at", "the width of the screen", "", "and more"),
         "A paragraph that is wrapped at the width of the screen\n\nand"),
        (("short lines", "that end", "early, all"), "short lines\nthat end\nearly,"),
        (("between the two it is", "unsure what"), "between the two it is"),
        (("a", "", "", "two blank rows"), "a"),
        (("Some of it:", "", "- an item"), "Some of it:"),
        (("Some of it:", "", "1. an item"), "Some of it:"),
        (("Some of it:", "    indented code"), "Some of it:"),
        (("Some of it:", "", "| a | b |"), "Some of it:"),
        (("Some of it:", "", "┌───┬───┐"), "Some of it:"),
        (("Some of it:", "", "```python"), "Some of it:"),
        (("See the page at", "https://example.com/a/long/address"), "See the page at"),
        (("これは端末の幅より長い段落であり", "折り返されます。"), "これは端末の幅より長い段落であり折り返されます"),
        (("grows wit",), "grows"),
    ],
)  # fmt: skip
def test_up_to_where_it_is_certain(texts: tuple[str, ...], said: str) -> None:
    assert certain(rows(*texts), WRAPPING) == said


def test_where_a_row_that_ends_early_says_nothing() -> None:
    lines = rows("A paragraph.", "Another one, or a line of it")
    assert certain(lines, Wrapping(WIDTH, breaks=False)) == "A paragraph."


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("Here is \x1b[1mthe one\x1b[m that you want", "Here is **the one** that you"),
        ("Here is \x1b[1;38;5;211mthe one\x1b[m that you want", "Here is **the one** that you"),
        ("\x1b[38;5;231mHere is it all", "Here is it"),
        ("\x1b[38;2;205;214;244mHere is\x1b[m it", ""),
        ("Call \x1b[38;5;153mcode\x1b[m now, or", "Call"),
        ("It is \x1b[3mso\x1b[m and more", "It is"),
        ("\x1b[1mA heading\x1b[m\n\nand text", ""),
        ("in the end \x1b[1mbold\x1b[m\nand more", "in the end"),
        ("\x1b[7mselected\x1b[m text here", ""),
        ("\x1b[4ma link\x1b[m to it", ""),
    ],
)
def test_marks_that_vanish_into_how_it_is_drawn(raw: str, said: str) -> None:
    assert certain(drawn(raw), Wrapping(80)) == said


WORDS = st.text(alphabet="abcde", min_size=1, max_size=9)
PARAGRAPHS = st.lists(st.lists(WORDS, min_size=1, max_size=30).map(" ".join), min_size=1, max_size=4)


@given(PARAGRAPHS, st.integers(0, 4), st.integers(0, 300))
def test_prose_of_any_program_that_wraps_is_told_as_it_is(paragraphs: list[str], left: int, shown: int) -> None:
    """Whatever it leaves free at the right, and however much of it is there."""
    text = "\n\n".join(paragraphs)
    lines = [line for each in text[:shown].split("\n") for line in textwrap.wrap(each, WIDTH - left) or [""]]
    said = certain(rows(*lines), WRAPPING)
    assert text.startswith(said)


def test_a_wide_character_takes_two_columns() -> None:
    assert columns("日本x\u0301") == 5
