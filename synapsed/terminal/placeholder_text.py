"""Text in a composer that nobody typed: a placeholder, a suggestion of the program's own. Pure.

A profile names the placeholders of the versions that it knows. Of others the rule is this evidence, all of it:

- the text came while no key had been typed for `TYPED_S`, by a person or by synapsed: as the composer first appeared in
  this launch, or later. What a program gives back after an interrupt, or shows late, has been typed;
- it has not changed since;
- the cursor stands at its beginning, as the terminal's own or as the one cell in reverse that a program draws for one.
  Behind a draft, also one that a program restores from its last session, it stands at the end.

Whatever does not show all of it is a draft, and messages wait (`held` is `typing`).
"""

from collections.abc import Sequence

from synapsed.terminal.composer import ComposerState
from synapsed.terminal.snapshot import Cell, ScreenSnapshot

TYPED_S = 3.0
"""What a key brings about is on the screen by then; a program that has not read it is known to have not."""

KNOWN_MAX = 16


class OwnText:
    """Which texts in the composer of one launch are the program's own. Times are monotonic seconds. `known` are those
    of an earlier look at the same launch: with them, what stands there now may have been typed meanwhile."""

    def __init__(self, known: Sequence[str] | None = None, now: float = 0.0) -> None:
        self._known = list(known or ())
        self._typed_at = now if known is not None else float("-inf")
        self._text = ""
        self._own = False

    @property
    def known(self) -> list[str]:
        """Those that were seen, for a checkpoint."""
        return list(self._known)

    def typed(self, now: float) -> None:
        """Keys went to the program, or it has read some."""
        self._typed_at = now

    def is_own(self, composer: ComposerState, *, before: bool, now: float) -> bool:
        """Whether what stands in `composer` is. `before`: the cursor stands at its beginning."""
        text = composer.text if composer.state == "draft" else ""
        if text != self._text:
            self._text = text
            self._own = bool(text) and (text in self._known or now - self._typed_at >= TYPED_S)
        if not (self._own and before):
            return False
        if text not in self._known:
            self._known = [*self._known, text][-KNOWN_MAX:]
        return True


def stands_before(composer: ComposerState, screen: ScreenSnapshot, cells: Sequence[Cell]) -> bool:
    """Whether the cursor stands at the beginning of the text in `composer`, whose row has these `cells`."""
    if composer.row is None or not composer.text:
        return False
    at = "".join(cell.text for cell in cells).find(composer.text)
    if at < 0:
        return False
    column = passed = 0
    for cell in cells:
        if passed >= at:
            break
        passed += len(cell.text)
        column += cell.width
    row, cursor = screen.cursor
    if screen.cursor_visible and row == composer.row:
        return cursor <= column
    drawn = _reversed(cells)
    return len(drawn) == 1 and drawn[0] == column


def _reversed(cells: Sequence[Cell]) -> list[int]:
    """The columns of the cells in reverse."""
    found, column = [], 0
    for cell in cells:
        if cell.inverse:
            found.append(column)
        column += cell.width
    return found
