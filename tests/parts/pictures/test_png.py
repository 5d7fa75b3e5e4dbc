"""A screen as PNG, drawn with whatever fonts there are."""

from io import BytesIO

import pytest
from PIL import Image, ImageFont

from synapsed.model.picture import Picture
from synapsed.parts.pictures import png as fonts
from synapsed.parts.pictures.png import PADDING, png
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.screen_formats import picture

RED = (200, 10, 20)


def shown(text: str, cols: int = 20, rows: int = 4) -> Picture:
    screen = Screen(cols, rows)
    screen.feed(text.encode())
    return picture(screen)


class Drawn:
    def __init__(self, it: Picture) -> None:
        self.it = it
        self.image = Image.open(BytesIO(png(it))).convert("RGB")
        self.width = (self.image.width - 2 * PADDING) // it.cols
        self.height = (self.image.height - 2 * PADDING) // it.rows

    def cell(self, row: int, col: int, columns: int = 1) -> Image.Image:
        x, y = PADDING + col * self.width, PADDING + row * self.height
        return self.image.crop((x, y, x + columns * self.width, y + self.height))

    def colors(self, row: int, col: int, columns: int = 1) -> set[object]:
        return {color for _, color in self.cell(row, col, columns).getcolors(100_000) or ()}


def test_it_is_as_large_as_the_screen() -> None:
    drawn = Drawn(shown("", cols=30, rows=7))
    assert (drawn.image.width - 2 * PADDING) % 30 == (drawn.image.height - 2 * PADDING) % 7 == 0
    assert drawn.width < drawn.height < 3 * drawn.width


def test_cells_have_their_colours() -> None:
    drawn = Drawn(shown("a \x1b[38;2;200;10;20mM\x1b[48;2;200;10;20m \x1b[0m\x1b[?25l"))
    assert drawn.it.foreground in drawn.colors(0, 0)
    assert drawn.colors(0, 1) == {drawn.it.background}
    assert RED in drawn.colors(0, 2)
    assert drawn.colors(0, 3) == {RED}


def test_boxes_join() -> None:
    """Along the middle of the rows and columns of a box there is no gap."""
    drawn = Drawn(shown("┌─┬─┐\r\n├─┼─┤\r\n└─┴─┘\x1b[?25l"))
    left, top = PADDING + drawn.width // 2, PADDING + drawn.height // 2
    for row in range(3):
        line = {drawn.image.getpixel((x, top + row * drawn.height)) for x in range(left, left + 4 * drawn.width)}
        assert line == {drawn.it.foreground}
    for col in (0, 2, 4):
        line = {drawn.image.getpixel((left + col * drawn.width, y)) for y in range(top, top + 2 * drawn.height)}
        assert line == {drawn.it.foreground}


def test_what_no_font_has_is_a_box_in_its_columns() -> None:
    drawn = Drawn(shown("\U000f0000日\x1b[?25l"))
    assert len(drawn.colors(0, 1, 2)) > 1
    assert drawn.colors(0, 3) == {drawn.it.background}


@pytest.mark.parametrize("text", ["M", "日", "M\u0301"], ids=["narrow", "wide", "with an accent"])
def test_a_character_that_is_too_wide_is_cut(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    large = ImageFont.load_default(5 * fonts.SIZE)
    monkeypatch.setattr(fonts.Fonts, "font", lambda *_, **__: large)
    columns = 2 if text == "日" else 1
    drawn = Drawn(shown(f"\r\n {text}\x1b[?25l"))
    assert len(drawn.colors(1, 1, columns)) > 1
    for row, col in ((0, 1), (1, 0), (1, 1 + columns), (2, 1), (1, 3), (1, 4)):
        assert drawn.colors(row, col) == {drawn.it.background}, (row, col)


def test_the_cursor_is_a_block_with_what_is_below_it() -> None:
    on_blank, on_text = Drawn(shown("")), Drawn(shown("█a\r\x1b[C"))
    assert on_blank.colors(0, 0) == {on_blank.it.foreground}
    assert on_text.colors(0, 1) >= {on_text.it.foreground, on_text.it.background}


def test_lines_below_and_through_characters() -> None:
    for style in ("4", "4:2", "4:3", "4:4", "4:5", "9", "53"):
        drawn = Drawn(shown(f"\x1b[{style}m  \x1b[0m\x1b[?25l"))
        assert drawn.colors(0, 0) == {drawn.it.foreground, drawn.it.background}, style


def test_without_fontconfig_it_is_drawn_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    fonts._match.cache_clear()
    try:
        drawn = Drawn(shown("M日\x1b[?25l"))
        assert drawn.it.foreground in drawn.colors(0, 0)
    finally:
        fonts._match.cache_clear()
