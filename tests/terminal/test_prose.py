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


LISTED = Wrapping(WIDTH, listed=1)


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (("Some of it:", "", " - one thing", " - another"), "Some of it:\n\n- one thing\n-"),
        (("Some of it:", " * one thing", "", "And more"), "Some of it:\n* one thing\n\nAnd"),
        ((" 1. one", "    - within it", " 2. two", "so it is"), "1. one\n   - within it\n2. two\nso it"),
        (
            (" - an item that is wrapped as", "   long ones are", " + more"),
            "- an item that is wrapped as long ones are\n+",
        ),
        ((" - an item", "   that ends early"), "- an item"),
        ((" - an item", "", "   its second paragraph"), "- an item"),
        (("Some of it:", "  - by a tab, or a blank"), "Some of it:"),
        (("Some of it:", "- not drawn as an item is"), "Some of it:"),
        (("A sentence which is as long as", " - more is wide, or an item"), "A sentence which is as long as"),
        ((" - one", "   1 def code", "   2     code"), "- one"),
        ((" - one", "", "   1 def code"), "- one"),
        ((" -", " 1."), ""),
    ],
)
def test_lists_whose_marks_are_drawn_as_they_are(texts: tuple[str, ...], said: str) -> None:
    assert certain(rows(*texts), LISTED) == said


LINES = st.tuples(
    st.sampled_from(["", "", "- ", "* ", "12. ", "  - ", "   + "]), st.lists(WORDS, min_size=1, max_size=20)
)


def as_drawn(mark: str, words: str, width: int) -> list[str]:
    """The rows of a line, the items of lists one column to the right, as gemini has them."""
    hang = " " * (len(mark) + 1) if mark else ""
    begin, *more = textwrap.wrap(words, width - len(hang)) or [""]
    return [f" {mark}{begin}" if mark else begin, *(hang + row for row in more)]


@given(st.lists(st.tuples(LINES, st.booleans()), min_size=1, max_size=8), st.integers(0, 4), st.integers(0, 300))
def test_prose_and_lists_are_told_as_they_are(
    lines: list[tuple[tuple[str, list[str]], bool]], left: int, shown: int
) -> None:
    text, seen = "", list[str]()
    for (mark, words), apart in lines:
        line = mark + " ".join(words)[: max(0, shown - len(text))]
        if line == mark:
            break
        text += ("\n\n" if apart else "\n") + line if text else line
        seen += (
            ["", *as_drawn(mark, line[len(mark) :], WIDTH - left)]
            if apart
            else as_drawn(mark, line[len(mark) :], WIDTH - left)
        )
    said = certain(rows(*seen), LISTED)
    assert text.startswith(said)


def test_a_wide_character_takes_two_columns() -> None:
    assert columns("日本x\u0301") == 5
