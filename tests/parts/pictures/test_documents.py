"""A screen as a picture: what is drawn, that boxes join, and that nothing on a screen is markup."""

import re
import unicodedata
from html.parser import HTMLParser
from itertools import product
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapsed.model.picture import Ink, Picture
from synapsed.parts.pictures.boxes import Area, figures
from synapsed.parts.pictures.html import html
from synapsed.parts.pictures.svg import svg
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.screen_formats import picture

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = (
    "<script>alert(1)</script> ]]> & \" ' --> <!DOCTYPE x> &#x3c;\r\n"
    "\u202egnp.exe\u202c \u2066x\u2069 a\u200bb \ufeff\ufffe שלום\r\n"
    "\x1b]0;</title><script>alert(2)</script>\x07\x1b]8;;javascript:alert(3)\x07link\x1b]8;;\x07"
)
INVISIBLE = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\ufeff"


def drawn(text: str, cols: int = 40, rows: int = 6) -> Picture:
    screen = Screen(cols, rows)
    screen.feed(text.encode("utf-8", "surrogatepass"))
    return picture(screen)


def texts(shown: Picture) -> list[str]:
    return ["".join(glyph.text for glyph in line) for line in shown.lines]


# --- cells -----------------------------------------------------------------------------------------------------------


def test_colours_are_worked_out() -> None:
    shown = drawn("a\x1b[38;2;1;2;3mb\x1b[7mc\x1b[0;7md\x1b[0;8me\x1b[0;48;2;9;9;9m f")
    inks = {glyph.text: glyph.ink for glyph in shown.lines[0]}
    assert inks["a"] == Ink(shown.foreground)
    assert inks["b"] == Ink((1, 2, 3))
    assert inks["c"] == Ink(shown.background, (1, 2, 3))
    assert inks["d"] == Ink(shown.background, shown.foreground)
    assert "e" not in inks
    assert inks[" "] == Ink(shown.foreground, (9, 9, 9))


def test_dim_is_nearer_to_its_ground_and_bold_is_bright() -> None:
    (dim, _), (bold, bright) = drawn("\x1b[2ma\x1b[0mb").lines[0], drawn("\x1b[1;31ma\x1b[0;91mb").lines[0]
    assert all(channel < full for channel, full in zip(dim.ink.foreground, drawn("").foreground, strict=True))
    assert bold.ink.foreground == bright.ink.foreground


def test_wide_characters_take_two_columns() -> None:
    assert [(g.text, g.col, g.width) for g in drawn("a日本e\u0301").lines[0]] == [
        ("a", 0, 1), ("日", 1, 2), ("本", 3, 2), ("e\u0301", 5, 1),
    ]  # fmt: skip


def test_the_cursor_is_where_it_is_seen() -> None:
    assert drawn("ab").cursor == (0, 2)
    assert drawn("ab\x1b[?25l").cursor is None


def test_what_turns_writing_around_or_hides_is_not_drawn() -> None:
    shown = drawn(HOSTILE)
    every = "".join([*texts(shown), shown.title])
    assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cn", "Cs") for char in every)
    assert "alert(1)" in texts(shown)[0]


# --- boxes -----------------------------------------------------------------------------------------------------------

BOXES = [chr(code) for code in range(0x2500, 0x25A0)]


@pytest.mark.parametrize(("width", "height"), [(8, 17), (7, 14), (12, 24)])
def test_every_box_and_block_is_a_figure_in_its_cell(width: int, height: int) -> None:
    for char in BOXES:
        shapes = figures(char, width, height)
        assert shapes, char
        for shape in shapes:
            if isinstance(shape, Area):
                assert 0 <= shape.left < shape.right <= width, char
                assert 0 <= shape.top < shape.bottom <= height, char


def test_lines_of_one_weight_join() -> None:
    """Whatever stands beside each other: what two cells draw at the edge between them is the same."""

    def at(char: str, side: str) -> tuple[tuple[float, float], ...]:
        areas = [area for area in figures(char, 12, 24) or () if isinstance(area, Area)]
        edge = {"left": 0, "right": 12, "up": 0, "down": 24}[side]
        if side in ("left", "right"):
            return tuple(sorted((a.top, a.bottom) for a in areas if edge in (a.left, a.right)))
        return tuple(sorted((a.left, a.right) for a in areas if edge in (a.top, a.bottom)))

    for lines, (side, other) in product(
        ("─├┼┬┴┌┐└┘│┤", "━┣╋┳┻┏┓┗┛┃┫", "═╠╬╦╩╔╗╚╝║╣"), (("right", "left"), ("down", "up"))
    ):
        ends = {at(char, side) for char in lines} | {at(char, other) for char in lines}
        assert len(ends - {()}) == 1, (lines, side)


def test_other_characters_are_the_font_s() -> None:
    assert [figures(text, 8, 16) for text in ("a", "日", "\u24ff", "\u25a0", "─\u0301", "")] == [None] * 6


# --- documents -------------------------------------------------------------------------------------------------------


def found(document: str) -> tuple[set[str], str]:
    """Which elements an SVG has, and its text."""
    root = ElementTree.fromstring(document)
    return {element.tag.removeprefix(SVG) for element in root.iter()}, "".join(root.itertext())


class Tags(HTMLParser):
    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_nothing_on_a_screen_is_markup() -> None:
    shown = drawn(HOSTILE + "\r\n┌─┐ \x1b[4;9;31mx\x1b[0m", cols=60)
    elements, text = found(svg(shown))
    assert elements == {"svg", "title", "rect", "g", "text", "path"}
    assert "<script>alert(1)</script>" in text
    assert "javascript" not in svg(shown)
    page = Tags(html(shown))
    assert page.tags == {"html", "head", "meta", "title", "body", "pre", "span"}
    assert page.attributes == {"charset", "style", "dir"}
    assert "<script>alert(1)</script>" in page.text
    for document in (svg(shown), html(shown)):
        assert not any(char in document for char in INVISIBLE)
        assert re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", document) is None


@settings(max_examples=60)
@given(st.lists(st.one_of(st.binary(max_size=30), st.text(max_size=20).map(lambda t: t.encode("utf-8", "replace")))))
def test_any_output_gives_documents_that_can_be_read(output: list[bytes]) -> None:
    screen = Screen(20, 5)
    for data in output:
        screen.feed(data)
    elements, _ = found(svg(picture(screen)))
    assert elements <= {"svg", "title", "rect", "g", "text", "path"}
    assert Tags(html(picture(screen))).tags <= {"html", "head", "meta", "title", "body", "pre", "span"}


def test_each_character_has_its_place() -> None:
    root = ElementTree.fromstring(svg(drawn("a日 b\x1b[31mc\x1b[0me\u0301")))
    placed = [(element.text, element.get("x")) for element in root.iter(f"{SVG}text")]
    assert placed == [("a日 b", "0 8 24 32"), ("c", "40"), ("e\u0301", "48")]


def test_words_are_found_as_they_stand_and_columns_stay_apart() -> None:
    root = ElementTree.fromstring(svg(drawn("two words    there│apart")))
    placed = [(element.text, element.get("x", "").split()[0]) for element in root.iter(f"{SVG}text")]
    assert placed == [("two words", "0"), ("there", "104"), ("apart", "152")]


def test_a_page_has_the_screen_s_rows() -> None:
    page = Tags(html(drawn("one  two\r\n日 x\r\n\x1b[7m \x1b[0m", cols=10, rows=4)))
    assert page.text.removeprefix("\nscreen\n") == "one  two\n日 x\n  \n\n\n"


@pytest.mark.parametrize(("style", "lines"), [("4", 1), ("4:2", 2), ("4:3", 1), ("9", 1), ("4;9;53", 3)])
def test_lines_below_and_through_characters(style: str, lines: int) -> None:
    root = ElementTree.fromstring(svg(drawn(f"\x1b[{style}mx")))
    paths = [element.get("d", "") for element in root.iter(f"{SVG}path")]
    assert len(paths) == lines
    assert ("q" in paths[0]) == (style == "4:3")
