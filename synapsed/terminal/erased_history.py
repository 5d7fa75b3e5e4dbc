"""Rows above the screen that a program has erased (ED 3), as ``clear`` does: nothing of them may come back.

The emulator gives a freed row out again with the marks that it was wrapped into the next one and goes on from the one
before, and joins what is printed there later. Here the rows that were freed come onto the screen for a moment and are
erased, which ends their marks. The window becomes higher and not wider, so nothing is wrapped again, and it costs as
much as the rows that may have been freed.
"""

import evp

from synapsed.terminal.redraw import Extras

_PAGE_BYTES = 384 * 1024
"""At least what the emulator keeps in one piece: freed rows of any other piece are gone."""
_CELL_BYTES = 8

_OUTPUT = 2026
"""A frame is being drawn: a mode that another size ends."""
_ORIGIN = 6


def forget_marks(terminal: evp.Terminal, cursor: tuple[int, int], freed: int, state: Extras) -> None:
    """Ends the marks of the rows that ED 3 has just freed, of which there are at most ``freed``.

    ``terminal`` shows its main screen, with the cursor at (row, column) and in that ``state``. Both are afterwards as
    they were, with two exceptions: what DECSC saved is lost if the cursor is in the last column, where it may wait to
    wrap; and it no longer waits if it did so at a right margin.
    """
    cols, rows = terminal.size()
    page = _PAGE_BYTES // (_CELL_BYTES * (cols + 1))
    row, column = cursor
    region = b"\x1b[%d;%dr" % (state.region[0] + 1, state.region[1] + 1) if state.region else b""
    margins = b"\x1b[%d;%ds" % (state.margins[0] + 1, state.margins[1] + 1) if state.margins else b""
    if column < cols - 1:
        kept, back = b"", b"%b\x1b[%d;%dH" % (state.pen, row + 1, column + 1)
    else:
        kept, back = b"\x1b7", b"\x1b8"
    modes = [(mode, terminal.mode(mode)) for mode in (_OUTPUT, _ORIGIN)]
    terminal.set_mode(_ORIGIN, False)
    terminal.resize(cols, rows + min(freed, page))
    # Erasing below ends all of it but that the first row goes on from the one before: deleted, it is a new one.
    terminal.feed(b"%b\x1b[m\x1b[%d;1H\x1b[J\x1b[M\x1b[H" % (kept, rows + 1))
    terminal.resize(cols, rows)
    terminal.feed(region + margins + back)
    for mode, value in modes:
        terminal.set_mode(mode, value)
