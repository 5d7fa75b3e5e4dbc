"""What a screen shows, in the formats in which it is asked for. Pure."""

from typing import Any

from synapsed.model.picture import ScreenForm, Shown
from synapsed.model.records import Checkpoint
from synapsed.terminal.picture import picture
from synapsed.terminal.screen import Screen


def shown(screen: Screen, fmt: ScreenForm) -> Shown:
    """Text, lines with colours, a redraw for a terminal of that size, a document of lines, cursor and modes, a picture
    to be drawn, or rows of a page."""
    now = screen.snapshot()
    if fmt == "text":
        return now.text()
    if fmt == "coloured":
        return screen.coloured()
    if fmt == "ansi":
        return screen.redraw()
    if fmt == "picture":
        return picture(screen)
    if fmt == "rows":
        return screen.page_rows()
    return document(screen)


def document(screen: Screen) -> dict[str, Any]:
    """Lines, cursor and modes."""
    now = screen.snapshot()
    return {
        "cols": now.cols,
        "rows": now.rows,
        "lines": list(now.lines),
        "cursor": {"row": now.cursor[0], "col": now.cursor[1], "visible": now.cursor_visible},
        "title": now.title,
        "alternate": now.alternate,
    }


def kept(checkpoint: Checkpoint) -> Screen:
    """The screen that was kept."""
    screen = Screen(checkpoint.cols, checkpoint.rows)
    screen.feed(checkpoint.redraw)
    return screen
