"""What a screen shows, in the formats in which it is asked for. Pure."""

from typing import Any, Literal

from synapsed.model.records import Checkpoint
from synapsed.terminal.screen import Screen

__all__ = ["kept", "shown"]


def shown(screen: Screen, fmt: Literal["text", "ansi", "json"]) -> str | bytes | dict[str, Any]:
    """Text, a redraw for a terminal of that size, or a document of lines, cursor and modes."""
    now = screen.snapshot()
    if fmt == "text":
        return now.text()
    if fmt == "ansi":
        return screen.redraw()
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
