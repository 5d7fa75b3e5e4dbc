"""The composer, the place where a program takes a message, and its content: nothing, text of the program's own that was
not typed, or text that must not be mixed with a message. Pure.

A profile names the placeholders of the versions that it knows. Any other text is taken for the program's own only with
all of this evidence:

- the text came while no key had been typed for `TYPED_S`, by a person or by synapsed: as the composer first appeared in
  this launch, or later. Text that a program gives back after an interrupt, or shows late, has been typed;
- it has not changed since;
- the cursor stands at its beginning, as the terminal's own or as the one cell in reverse that a program draws for one.
  In a draft, also one that a program restores from its last session, it stands at the end.

Any text without all of this evidence is a draft, and messages wait (`held` is `typing`).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from synapsed.profiles.screen_spec import Composer, DeliverySpec, PutOff
from synapsed.shared.regex import regex
from synapsed.terminal.prose import columns
from synapsed.terminal.snapshot import Cell, ScreenSnapshot


@dataclass(frozen=True, slots=True)
class ComposerState:
    """The state of the composer. `absent`: it is not on the screen (a dialog, a start-up, a running line program)."""

    state: Literal["empty", "draft", "absent"]
    text: str = ""
    """The draft."""
    row: int | None = None
    prompt: str = ""
    """Text before the draft, if the composer is at the cursor."""
    learned: bool = True
    """True if the prompt was learned, for a program that no profile describes."""
    why: str = field(default="", compare=False)
    """Reason for the state."""


ABSENT = ComposerState("absent")
END_CHARS = 40
"""Characters of a message's end that are searched for at the cursor; the text before may be above the screen."""
AROUND_ROWS = 3
"""Rows above and below the composer's row that count as its surroundings; `Composer.rows_above` may differ."""


def needs_composer(spec: Composer) -> bool:
    """Returns True if a program without its composer on the screen asks something else, or cannot be read."""
    return spec.line is not None and spec.needed and not spec.at_cursor


def cursor_line(screen: ScreenSnapshot) -> tuple[int, str]:
    """Returns the first row and the text of the logical line (soft-wrapped rows joined) that the cursor is on."""
    row, col = screen.cursor
    first = row
    while first > 0 and screen.wrapped[first - 1]:
        first -= 1
    head = "".join(screen.lines[r].ljust(screen.cols) for r in range(first, row))
    tail = screen.lines[row]
    return first, head + tail.ljust(col)


def unended(screen: ScreenSnapshot) -> str:
    """Returns the text that a program has left on the cursor's line without ending it, before its prompt."""
    text = cursor_line(screen)[1]
    # A wide character takes two columns, so the number of blanks at the end is known in plain ASCII only.
    return (text if text.isascii() else text.rstrip()) if text.strip() else ""


def _at_cursor(pattern: re.Pattern[str], line: str, before: str) -> re.Match[str] | None:
    """Returns the prompt on the cursor's `line`, after the `unended` text. A program may switch to editing only after
    printing its prompt: then the prompt is the unended text, and no other follows."""
    rest = line.removeprefix(before)
    behind = rest if before.isascii() or rest == line else rest.lstrip()
    return pattern.search(behind) or pattern.search(line)


def read_composer(
    spec: Composer, screen: ScreenSnapshot, bright: Callable[[int], str] | None = None, *, before: str = ""
) -> ComposerState:
    """Returns the content of the composer that `spec` finds on `screen`. `bright(row)` is a row's text with faint cells
    blanked; with it, and if the profile says so, faint text is a placeholder and not a draft. `before`: the `unended`
    text when the prompt came."""
    if spec.line is None or (spec.shows_cursor and not screen.cursor_visible):
        return ABSENT
    pattern = spec.line
    if spec.at_cursor:
        row, text = cursor_line(screen)
        found = _at_cursor(pattern, text, before)
        if found is None or not _stands(spec.around, screen, row, spec.rows_above):
            return ABSENT
        typed = found["text"] or ""
        prompt = found.string[found.start() : found.end() if found["text"] is None else found.start("text")]
        return replace(_judge(spec, screen, typed, row), prompt=prompt)
    for row in range(len(screen.lines) - 1, -1, -1):
        found = pattern.search(screen.lines[row])
        if found is None or not _stands(spec.around, screen, row, spec.rows_above):
            continue
        text = found["text"] or ""
        if spec.dim_is_placeholder and bright is not None and text.strip():
            start, end = found.span("text")
            text = text if bright(row)[start:end].strip() else ""
        return _judge(spec, screen, text, row)
    return ABSENT


def _judge(spec: Composer, screen: ScreenSnapshot, text: str, row: int) -> ComposerState:
    text = text.strip()
    blank = not text or (spec.placeholder is not None and spec.placeholder.search(text) is not None)
    if blank and _stands(spec.empty, screen, row):
        return ComposerState("empty", "", row)
    return ComposerState("draft", text, row)


def emptied(spec: Composer, screen: ScreenSnapshot, composer: ComposerState) -> ComposerState:
    """Returns `composer` as empty if its text is known to be no draft."""
    if composer.row is None or not _stands(spec.empty, screen, composer.row):
        return composer
    return replace(composer, state="empty", text="")


def _stands(pattern: re.Pattern[str] | None, screen: ScreenSnapshot, row: int, rows_above: int = AROUND_ROWS) -> bool:
    """Returns True if `pattern`, if there is one, is found in the surroundings of `row`."""
    if pattern is None:
        return True
    above = [""] * max(0, rows_above - row)
    text = "\n".join([*above, *screen.lines[max(0, row - rows_above) : row + AROUND_ROWS + 1]])
    return pattern.search(text) is not None


def puts_off(spec: PutOff, screen: ScreenSnapshot, message: str) -> bool:
    """Returns True if `message`, and nothing else, is shown as put off by the program."""
    found = spec.shown.search("\n".join(screen.lines))
    shown = found["text"].strip().rstrip("…") if found is not None else ""
    return bool(shown) and " ".join(message.split()).startswith(shown)


def holds_back(spec: DeliverySpec, screen: ScreenSnapshot, composer: ComposerState) -> bool:
    """Returns True if the program says, below its composer, that it holds the text there until it has started."""
    if spec.starting is None or composer.state != "draft" or composer.row is None:
        return False
    return spec.starting.search("\n".join(screen.lines[composer.row + 1 :])) is not None


def ends_at_cursor(screen: ScreenSnapshot, message: str, *, edited: bool = False) -> bool:
    """Returns True if the last line of `message` is the last echo of the program, or of its terminal. `edited`: a line
    editor is running. Some line editors end a full row: then the cursor waits on the empty row below, which without an
    editor means that Enter was pressed."""
    last = message.rpartition("\n")[2].strip()[-END_CHARS:]
    shown = last in cursor_line(screen)[1] or (edited and _full_row_above(screen).endswith(last))
    return bool(last) and shown


def _full_row_above(screen: ScreenSnapshot) -> str:
    """Returns the line that ends with the full row above the cursor; empty if the cursor does not stand below one."""
    row, column = screen.cursor
    if row == 0 or column or screen.lines[row] or columns(screen.lines[row - 1]) < screen.cols:
        return ""
    return cursor_line(replace(screen, cursor=(row - 1, 0)))[1]


_BORDERS = regex(r"[\s│┃║|]+")


def shows_line(composer: ComposerState, screen: ScreenSnapshot, line: str) -> bool:
    """Returns True if `line` is the draft in the composer, which may go on in the rows below its first, and nothing
    else is there. Each program wraps in its own way: spaces and the sides of a box do not count."""
    if composer.state != "draft" or composer.row is None:
        return False
    wanted, seen = _BORDERS.sub("", line), _BORDERS.sub("", composer.text)
    for row in range(composer.row + 1, len(screen.lines)):
        if seen == wanted or not wanted.startswith(seen):
            break
        seen += _BORDERS.sub("", screen.lines[row])
    return bool(seen) and seen == wanted


TYPED_S = 3.0
"""Seconds after which the effect of a key is on the screen. If the program reads the key later, that is noted, too
(`OwnText.typed`)."""

KNOWN_MAX = 16


class OwnText:
    """Decides which texts in the composer of one launch are the program's own. Times are monotonic seconds. `known` are
    the texts that an earlier daemon found for the same launch: the present text may have been typed since then."""

    def __init__(self, known: Sequence[str] | None = None, now: float = 0.0) -> None:
        self._known = list(known or ())
        self._typed_at = now if known is not None else float("-inf")
        self._text = ""
        self._own = False

    @property
    def known(self) -> list[str]:
        """Returns the texts that were seen, for a checkpoint."""
        return list(self._known)

    def typed(self, now: float) -> None:
        """Notes that keys went to the program, or that the program has read some."""
        self._typed_at = now

    def is_own(self, composer: ComposerState, *, before: bool, now: float) -> bool:
        """Returns True if the text in `composer` is the program's own. `before`: the cursor stands at its beginning."""
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
    """Returns True if the cursor stands at the beginning of the text in `composer`, whose row has these `cells`."""
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
    """Returns the columns of the cells in reverse."""
    found, column = [], 0
    for cell in cells:
        if cell.inverse:
            found.append(column)
        column += cell.width
    return found
