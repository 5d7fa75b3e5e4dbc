"""The emulators that the contract is run against, each behind the same few methods.

``ghostty`` is the one in use, through `synapsed.terminal.emulated_screen`; ``par-term`` (par-term-emu-core-rust) is
what its like was chosen over. What a candidate is known to fail stands in `FAULTS`: the decision rests on it
(docs/adr/0001-terminal-emulator.md, docs/adr/0062-the-emulator-again.md).
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

import pytest

from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.snapshot import Cell

type Color = int | tuple[int, int, int] | None


@dataclass(frozen=True)
class CellView:
    """A cell as a candidate that is not in use can tell it."""

    text: str
    fg: Color
    bg: Color
    bold: bool
    underline: bool
    inverse: bool


@dataclass(frozen=True)
class View:
    """What a candidate says is on its screen."""

    lines: tuple[str, ...]
    wrapped: tuple[bool, ...]
    cursor: tuple[int, int]
    cursor_visible: bool
    alternate: bool
    title: str
    modes: tuple[bool, bool, bool, bool]
    """Bracketed paste, application cursor keys, mouse tracking, focus events."""


class Candidate(Protocol):
    """One terminal."""

    def feed(self, data: bytes) -> None: ...
    def resize(self, cols: int, rows: int) -> None: ...
    def view(self) -> View: ...
    def cells(self) -> Sequence[Sequence[Cell | CellView]]: ...
    def redraw(self) -> bytes: ...


class InUse:
    """The emulator in use."""

    def __init__(self, cols: int, rows: int) -> None:
        self.screen = Screen(cols, rows)

    def feed(self, data: bytes) -> None:
        self.screen.feed(data)

    def resize(self, cols: int, rows: int) -> None:
        self.screen.resize(cols, rows)

    def view(self) -> View:
        snapshot = self.screen.snapshot()
        modes = snapshot.modes
        return View(
            lines=tuple(line.rstrip(" ") for line in snapshot.lines),
            wrapped=snapshot.wrapped,
            cursor=snapshot.cursor,
            cursor_visible=snapshot.cursor_visible,
            alternate=snapshot.alternate,
            title=snapshot.title,
            modes=(modes.bracketed_paste, 1 in modes.dec, bool({9, 1000, 1002, 1003} & modes.dec), 1004 in modes.dec),
        )

    def cells(self) -> list[list[Cell]]:
        return [self.screen.row_cells(row) for row in range(self.screen.snapshot().rows)]

    def redraw(self) -> bytes:
        return self.screen.redraw()


class ParTerm:
    """par-term-emu-core-rust, with the best redraw it offers."""

    def __init__(self, cols: int, rows: int) -> None:
        self._terminal: Any = _module("par_term_emu_core_rust").Terminal(cols, rows)
        self._rows = rows

    def feed(self, data: bytes) -> None:
        self._terminal.process(data)

    def resize(self, cols: int, rows: int) -> None:
        self._terminal.resize(cols, rows)
        self._rows = rows

    def view(self) -> View:
        terminal = self._terminal
        column, row = terminal.cursor_position()
        return View(
            lines=tuple(self._line(row) for row in range(self._rows)),
            wrapped=tuple(bool(terminal.is_line_wrapped(index)) for index in range(self._rows)),
            cursor=(row, column),
            cursor_visible=terminal.cursor_visible(),
            alternate=terminal.is_alt_screen_active(),
            title=terminal.title(),
            modes=(
                terminal.bracketed_paste(),
                terminal.application_cursor(),
                terminal.mouse_mode() != "off",
                terminal.focus_tracking(),
            ),
        )

    def _line(self, row: int) -> str:
        """The text of a row: get_line() always speaks of the main screen, content() spaces wide characters out."""
        texts = iter([cell[0] for cell in self._terminal.get_line_cells(row)])
        line = []
        for text in texts:
            line.append(text)
            if self._terminal.char_width(text[:1]) == 2:
                next(texts, None)
        return "".join(line).rstrip(" ")

    def cells(self) -> list[list[CellView]]:
        return [
            [
                CellView(text, fg, bg, attributes.bold, attributes.underline, attributes.reverse)
                for text, fg, bg, attributes in self._terminal.get_line_cells(row)
            ]
            for row in range(self._rows)
        ]

    def redraw(self) -> bytes:
        return str(self._terminal.export_styled()).encode()


def _module(name: str) -> ModuleType:
    return importlib.import_module(name)


CANDIDATES: dict[str, Callable[[int, int], Candidate]] = {"ghostty": InUse, "par-term": ParTerm}
PACKAGES = {"ghostty": "synapsed.terminal.emulated_screen", "par-term": "par_term_emu_core_rust"}

FAULTS: dict[tuple[str, str], str] = {
    ("par-term", "redraw"): "export_styled() writes neither attributes nor the cursor nor modes",
    ("par-term", "chunks"): "a frame that is not over (2026) is shown or not, by how the bytes arrive",
    ("par-term", "palette"): "palette indexes are flattened to RGB",
}


def make(name: str, cols: int, rows: int) -> Candidate:
    """A fresh terminal; the test is skipped where the candidate is not installed."""
    pytest.importorskip(PACKAGES[name])
    return CANDIDATES[name](cols, rows)


def expect_fault(request: pytest.FixtureRequest, name: str, contract: str) -> None:
    """Mark the running test as one that this candidate is known to fail."""
    reason = FAULTS.get((name, contract))
    if reason is not None:
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
