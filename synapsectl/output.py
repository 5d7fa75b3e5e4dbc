"""Output for a person and for a script: tables for a terminal, tab-separated lines for a pipe, one JSON document.

Results go to stdout, remarks about them to stderr. Text of agents and other people never reaches a terminal with its
control characters, which it would obey.
"""

import json
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from synapsectl.colours import DIM, painted
from synapsed.shared.visible import visible

if TYPE_CHECKING:
    from synapsed.terminal.viewer_filter import ViewerFilter

PROGRAM = "synapsectl"
GAP = "  "
MIN_COLUMN = 8
"""Columns that a clipped column keeps."""

UNBROKEN = 1 << 20
"""Columns of output that no terminal shows."""

LEAST_FOLDED = 20
"""Least columns of a terminal in which lines are broken at words."""

_FOLDED = re.compile(rf"(?<=:) +{PROGRAM} [a-z].*| *\(?'{PROGRAM} [^']*'[^ ]*| *[^ ]+")
"""Pieces that are not broken: a command at the end of a line, a command in quotes, a word."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\udc80-\udcff]")
"""Control characters, and bytes that are no UTF-8, in Python's form of them."""
_TURNS = re.compile(r"[\u202a-\u202e\u2066-\u2069]")
"""Characters that reverse the order in which the following text is drawn."""

_UNSEEN_JSON = re.compile(
    r"[\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e0fff]"
)
"""Characters that JSON allows and a terminal obeys, or that are invisible. Joiners, which emoji and scripts need,
stay."""


def display_width(text: str) -> int:
    """Returns the columns that `text` takes in a terminal: two for a wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    import unicodedata  # most text does not need it

    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def clip(text: str, columns: int) -> str:
    """Returns `text` in at most `columns` columns, with an ellipsis if something is left out."""
    if display_width(text) <= columns:
        return text
    kept, used = [], 1
    for character in text:
        used += _width(character)
        if used > columns:
            break
        kept.append(character)
    return "".join(kept) + "…" if columns > 0 else ""


def pad(text: str, columns: int) -> str:
    return text + " " * (columns - display_width(text))


def fold(text: str, columns: int, *, indent: int | None = None) -> str:
    """Returns `text` in lines that break at words if they do not fit; a command to copy is kept whole. `indent`:
    columns before the continuation of a line; without it two more than the line has."""
    lines = []
    for line in text.split("\n"):
        if columns < LEAST_FOLDED or display_width(line) <= columns:
            lines.append(line)
            continue
        before = " " * (len(line) - len(line.lstrip(" ")) + len(GAP) if indent is None else indent)
        current = ""
        for word in _FOLDED.findall(line):
            if current.strip() and display_width(current) + display_width(word) > columns:
                lines.append(current)
                current = before + word.lstrip(" ")
            else:
                current += word
        lines.append(current)
    return "\n".join(lines)


def harmless(text: str) -> str:
    """Returns `text` with everything made visible that a terminal would obey: control characters except newline and
    tab, characters that reverse the order of text, and bytes that are no UTF-8."""
    text = _CONTROL.sub(lambda match: f"\\x{ord(match[0]) & 0xFF:02x}", text)
    return text if text.isascii() else _TURNS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def as_json(document: Any, *, indent: int | None = None) -> str:
    """Returns `document` as JSON that a terminal can show; parsed, it is the same document."""
    text = json.dumps(document, ensure_ascii=False, indent=indent)
    return text if text.isascii() else _UNSEEN_JSON.sub(lambda match: json.dumps(match[0])[1:-1], text)


def one_line(text: str) -> str:
    """Returns `text` on one line, with invisible characters made visible."""
    return visible(" ".join(text.split()))


def named(name: str) -> str:
    """Returns the name of a file on one line; unlike `one_line`, this keeps every character."""
    return harmless(name).replace("\n", "\\n").replace("\t", "\\t")


def is_text(value: str) -> bool:
    """Returns False for a value with bytes that are no UTF-8."""
    return value.isascii() or not any("\udc80" <= character <= "\udcff" for character in value)


def short_id(task_id: str) -> str:
    """Returns the first eight characters of a task's id, enough for every verb that takes one."""
    return task_id[:8]


class TableCell(NamedTuple):
    """A cell of a table: `style` is its colours (`synapsectl.colours`), `most` the columns that its column may have."""

    text: object
    style: str = ""
    most: int | None = None


class CommandOutput:
    """Output of results and remarks. `columns` is the width of the terminal on stdout, None if stdout is no terminal;
    `coloured`: colours are wanted there."""

    def __init__(self, stdout: TextIO, stderr: TextIO, *, columns: int | None, coloured: bool = False) -> None:
        self.stdout = stdout
        self.stderr = stderr
        self.columns = columns
        self.coloured = coloured
        self._viewer: ViewerFilter | None = None

    @property
    def on_terminal(self) -> bool:
        return self.columns is not None

    def line(self, text: str = "") -> None:
        """Prints a line of the result."""
        print(harmless(text) if self.on_terminal else text, file=self.stdout)

    def sentence(self, text: str) -> None:
        """Prints a line of the result that is read, not cut into fields: on a terminal it breaks at words."""
        self.line(fold(harmless(text), self.columns) if self.columns is not None else text)

    def text(self, text: str) -> None:
        """Prints a text that is the result: whole and unchanged into a pipe, ending with a newline."""
        self.line(text.removesuffix("\n"))
        self.stdout.flush()

    def piece(self, text: str) -> None:
        """Prints a piece of a text that grows."""
        self.stdout.write(harmless(text) if self.on_terminal else text)
        self.stdout.flush()

    def control(self, text: str) -> None:
        """Prints our own control sequences."""
        self.stdout.write(text)

    def raw(self, data: bytes) -> None:
        """Prints bytes of a program unchanged; on a terminal only with the sequences that an attached terminal gets."""
        if self.on_terminal:
            from synapsed.terminal.viewer_filter import ViewerFilter

            self._viewer = self._viewer or ViewerFilter()
            data = self._viewer.feed(data)
        self.stdout.flush()
        self.stdout.buffer.write(data)
        self.stdout.buffer.flush()

    def document(self, document: Any) -> None:
        """Prints the one JSON document of `--json`; indented for a person."""
        # In one piece: an unbuffered stdout would write each of the many pieces of `json.dump` by a call of its own.
        self.stdout.write(as_json(document, indent=2 if self.on_terminal else None) + "\n")

    def either(self, document: Any, *, as_json: bool, line: str = "", note: str = "") -> None:
        """Prints the document of `--json`, or else a line, or a remark."""
        if as_json:
            self.document(document)
        elif note:
            self.note(note)
        else:
            self.line(line)

    def note(self, text: str, *, end: str = "\n") -> None:
        """Prints a remark, on stderr."""
        self.remark(f"{PROGRAM}: {text}", end=end)

    def remark(self, text: str = "", *, end: str = "\n") -> None:
        """Prints a line of a longer remark, on stderr, without our name. It is dropped if the terminal hung up."""
        self.stdout.flush()
        text = visible(text)
        with suppress(OSError):  # it is no terminal
            text = fold(text, os.get_terminal_size(self.stderr.fileno()).columns)
        with suppress(OSError):
            print(text, file=self.stderr, end=end, flush=True)

    def styled(self, text: str, style: str) -> str:
        """Returns `text`, harmless and on one line, in a style if colours are wanted."""
        return painted(one_line(text), style) if self.coloured else one_line(text)

    def styled_line(self, text: str) -> None:
        """Prints a line of the result that `styled` made."""
        print(text, file=self.stdout)

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[object]], *, grows: str = "") -> None:
        """Prints `rows` under `headings`, fitted into the terminal by clipping the column headed `grows` first; in a
        pipe, or without headings, tab-separated and whole. A value may be a `TableCell`."""
        for line in self.table_lines(headings, rows, grows=grows):
            print(line, file=self.stdout)

    def rows_of(
        self,
        found: Sequence[Any],
        headings: Sequence[str],
        row: Callable[[Any], Sequence[object]],
        *,
        as_json: bool,
        none: str,
        grows: str = "",
    ) -> None:
        """Prints the results `found`: the document of `--json`, or a table with a row for each, or the remark
        `none`."""
        if as_json:
            self.document(found)
        elif not found:
            self.note(none)
        else:
            self.table(headings, [row(one) for one in found], grows=grows)

    def table_lines(
        self, headings: Sequence[str], rows: Sequence[Sequence[object]], *, grows: str = "", columns: int | None = None
    ) -> list[str]:
        """Returns the lines that `table` prints, in `columns` columns if they are given."""
        columns = self.columns if columns is None else columns
        table = [[_cell(value) for value in values] for values in rows]
        if columns is None or not headings:
            return ["\t".join(self._painted(text, cell) for text, cell in line) for line in table]
        table.insert(0, [(heading, TableCell(heading, DIM)) for heading in headings])
        widths = [
            max(min(display_width(line[i][0]), line[i][1].most or columns) for line in table)
            for i in range(len(headings))
        ]
        widths = fit(widths, columns, headings.index(grows) if grows else len(headings) - 1)
        return [self._fitted(line, widths, columns) for line in table]

    def _fitted(self, line: Sequence[tuple[str, TableCell]], widths: Sequence[int], columns: int) -> str:
        """Returns the cells in their columns; nothing stands after the last text, and nothing beyond the terminal."""
        last = max((i for i, (text, _) in enumerate(line) if text), default=-1)
        pieces, left = [], columns
        for i, ((text, cell), width) in enumerate(zip(line[: last + 1], widths, strict=False)):
            gap = GAP if i else ""
            shown = clip(text, min(width, left - len(gap)))
            pieces.append(
                gap + self._painted(shown, cell) + ("" if i == last else pad("", width - display_width(shown)))
            )
            left -= len(gap) + width
            if left <= 0:
                break
        return "".join(pieces).rstrip()

    def _painted(self, text: str, cell: TableCell) -> str:
        return painted(text, cell.style) if self.coloured else text


def _cell(value: object) -> tuple[str, TableCell]:
    """Returns the text of `value`, harmless and on one line; and its cell, which has the style."""
    cell = value if isinstance(value, TableCell) else TableCell(value)
    return one_line("" if cell.text is None else str(cell.text)), cell


def fit(widths: Sequence[int], columns: int, first: int) -> list[int]:
    """Returns column widths that fit into `columns`: the column `first` is narrowed first, then the widest ones."""
    fitted = list(widths)
    excess = sum(fitted) + len(GAP) * (len(fitted) - 1) - columns
    for index in [first, *sorted(range(len(fitted)), key=lambda i: -widths[i])]:
        if excess <= 0:
            break
        give = max(0, min(excess, fitted[index] - MIN_COLUMN))
        fitted[index] -= give
        excess -= give
    return fitted
