"""Filters a program's output for a viewer's terminal: text passes, and the sequences in `passed_sequences`. Pure."""

from functools import lru_cache
from typing import Final, NamedTuple

from synapsed.terminal.passed_sequences import passes, sets_clipboard
from synapsed.terminal.tokenizer import (
    NOTHING,
    REMEMBERED,
    SHORT,
    ControlSequence,
    EscapeSequence,
    Token,
    Tokenizer,
    cleaned,
    tokens,
)

MAX_PASSED: Final = 1024 * 1024
"""Bytes of a string that passes, a picture for example. A longer one is dropped as a whole."""

_SCREENS: Final = frozenset({47, 1047, 1049})
"""Modes of the alternate screen."""
_ABOVE: Final = 3
"""The number with which ED erases the rows above the screen."""


class ViewerFilter:
    """A filter for one stream; any chunking gives the same bytes, which are valid UTF-8 and whole sequences.

    `clipboard`: the program may set the clipboard. `one_screen`: the viewer's terminal shows everything on its
    alternate screen, so that the person's own text on the main screen, and in the rows above it, stays. When the
    program changes to its other screen, no more output passes, and the caller has to draw that screen.
    """

    def __init__(self, *, clipboard: bool = False, one_screen: bool = False) -> None:
        self.unset = 0
        """Number of times that the clipboard would have been set."""
        self.switched = False
        """True if the program went to its other screen."""
        self._clipboard = clipboard
        self._one_screen = one_screen
        self._tokenizer = Tokenizer(MAX_PASSED)

    def feed(self, data: bytes) -> bytes:
        """Returns the bytes that a viewer gets now."""
        if self.switched:
            return b""
        whole = self._tokenizer.take(data)
        if b"\x1b" not in whole:
            return cleaned(whole)
        parts, at = [], 0
        for start, end, executed, token in tokens(whole, MAX_PASSED):
            write = _remembered if end - start <= SHORT else _written
            shown, switches, unset = write(token, self._clipboard, self._one_screen)
            parts += [whole[at:start], executed, shown]
            at = end
            self.unset += unset
            if switches:
                self.switched = True
                at = len(whole)
                break
        return cleaned(b"".join([*parts, whole[at:]]) if parts else whole)


class _Written(NamedTuple):
    """A sequence as it is shown. `switches`: it goes to the other screen; `unset`: it would have set the clipboard."""

    shown: bytes
    switches: bool = False
    unset: bool = False


def _written(token: Token | None, clipboard: bool, one_screen: bool) -> _Written:
    if token is None:
        return _Written(NOTHING)
    if one_screen:
        if _switches(token):
            return _Written(NOTHING, switches=True)
        if isinstance(token, ControlSequence) and token.final == b"J" and _ABOVE in token.values:
            return _Written(NOTHING)
    passed = passes(token, clipboard=clipboard)
    return _Written(bytes(passed)) if passed is not None else _Written(NOTHING, unset=sets_clipboard(token))


_remembered = lru_cache(REMEMBERED, typed=True)(_written)


def _switches(token: Token) -> bool:
    """Returns True if `token` sets, resets or restores the mode of the alternate screen, or resets the terminal, which
    ends that mode."""
    if isinstance(token, ControlSequence):
        return token.prefix == b"?" and token.final in b"hlr" and not _SCREENS.isdisjoint(token.values)
    return token == EscapeSequence(b"c")
