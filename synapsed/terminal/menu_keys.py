"""A menu or a window that asks, as it was read, and the keys that answer it: the effect of each step must be seen
before the next one. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from synapsed.terminal.menu_rows import MenuOption

DONE = "done"
"""Key of the option that goes on with the ticked ones."""
_LEFT, _RIGHT, _UP, _DOWN = "DCAB"
_ENTER, _TAB, _SPACE, _KILL = b"\r", b"\t", b" ", b"\x15"
_ON = "(*) "


class Move(NamedTuple):
    """Keys to press, and the mark to see after them (one of `Menu.marks`); None if the keys end the menu."""

    keys: bytes
    mark: str | None


@dataclass(frozen=True, slots=True)
class MenuWindow:
    """Parts of a window besides its list: buttons, the first of which goes on."""

    buttons: tuple[MenuOption, ...]
    focus: int | None = None
    """The button that has the keyboard's focus."""
    radio: bool = False
    """True if one row of the list is chosen, with a key of its own."""
    field: bool = False
    """True if there is a text field instead of a list."""
    typed: str = ""
    """Text in the field."""
    hides: bool = False
    """True if the typed text is a secret, and is not checked."""


@dataclass(frozen=True, slots=True)
class Menu:
    """A menu. `asked` is the text above the options; `marked` the option that Enter would take. `across`: the options
    stand in one row. `ticks`: each is ticked or not with `tick`, and Enter takes all that are ticked. `rows` are those
    of the whole menu. With a `window`, Enter counts on its buttons alone, and `marked` is -1 if no row of the list is
    known to be marked."""

    asked: tuple[str, ...]
    options: tuple[MenuOption, ...]
    marked: int
    rows: range
    across: bool = False
    ticks: bool = False
    tick: Literal["space", "right"] = "space"
    window: MenuWindow | None = None
    framed: bool = False
    """True if more than its rows, such as a frame, shows that this is a menu: a prompt's sign at the cursor in it is
    then no prompt."""

    @property
    def mark(self) -> str:
        """The label of the option that is marked."""
        return self.options[self.marked].label if self.marked >= 0 else ""

    @property
    def marks(self) -> frozenset[str]:
        """All marks now: an option, a button that has the keys, the text in the field."""
        found = {self.mark}
        if self.window is not None:
            if self.window.focus is not None:
                found.add(_focus(self.window, self.window.focus))
            if self.window.field:
                found.add(_words(self.window, self.window.typed))
        return frozenset(found)

    @property
    def choices(self) -> list[MenuOption]:
        """All choices: the options, then the one that goes on with the ticked ones, then the other buttons."""
        found = [*self.options]
        if self.ticks:
            found.append(MenuOption(DONE, "Go on with what is ticked", self.rows.stop, 0))
        return [*found, *(self.window.buttons[1:] if self.window is not None else ())]

    @property
    def default(self) -> str | None:
        """Key of the choice that Enter would take."""
        if self.ticks:
            return DONE
        return self.options[self.marked].key if self.marked >= 0 else None


def _focus(window: MenuWindow, button: int) -> str:
    return f"\0button {window.buttons[button].label}"


def _words(window: MenuWindow, words: str) -> str:
    return "\0words " if window.hides else f"\0words {' '.join(words.split())}"


def route(menu: Menu, key: str | None, words: str = "", *, application: bool) -> list[Move]:
    """Returns the keys that answer `menu` with option `key`, or with `words`; `application` is the mode of the cursor
    keys (DECCKM)."""
    window = menu.window
    button = _button(window, key)
    row = next((n for n, option in enumerate(menu.options) if option.key == key), None)
    if row is None:
        if window is None:
            return [Move(_ENTER, None)]
        return [*_typed(window, words, typed=key is None), *_pressed(window, button)]
    moves = _to(menu, row, application=application)
    if menu.ticks:
        return [*moves, Move(_keys(_RIGHT, application=application) if menu.tick == "right" else _SPACE, None)]
    if window is None:
        return [*moves, Move(_ENTER, None)]
    label = menu.options[row].label
    if window.radio and not label.startswith(_ON):
        moves.append(Move(_SPACE, _ON + re.sub(r"^\(.\) ", "", label)))
    return [*moves, *_pressed(window, 0)]


def _button(window: MenuWindow | None, key: str | None) -> int:
    buttons = window.buttons if window is not None else ()
    return next((n for n, each in enumerate(buttons) if each.key == key), 0)


def _keys(arrow: str, *, application: bool) -> bytes:
    return f"\x1b{'O' if application else '['}{arrow}".encode()


def _to(menu: Menu, wanted: int, *, application: bool) -> list[Move]:
    """Returns the moves of the mark to the option `wanted`, one step each."""
    at = max(menu.marked, 0)
    forth = wanted > at
    arrow = (_RIGHT if forth else _LEFT) if menu.across else (_DOWN if forth else _UP)
    keys = _keys(arrow, application=application)
    step = 1 if forth else -1
    passed = range(at + step, wanted + step, step) if wanted != at else range(0)
    return [Move(keys, menu.options[n].label) for n in passed]


def _typed(window: MenuWindow, words: str, *, typed: bool) -> list[Move]:
    if not (window.field and typed):
        return []
    kill = [Move(_KILL, _words(window, ""))] if window.typed else []
    return [*kill, Move(words.encode(), _words(window, words))]


def _pressed(window: MenuWindow, button: int) -> list[Move]:
    """Returns the moves that press Tab until `button` has the focus, then Enter."""
    count = len(window.buttons)
    passed: Iterable[int] = range(button + 1)
    if window.focus is not None:
        passed = ((window.focus + n) % count for n in range(1, (button - window.focus) % count + 1))
    return [*(Move(_TAB, _focus(window, n)) for n in passed), Move(_ENTER, None)]
