"""Colours Markdown as it comes: text goes in by pieces, the same text comes out with escape sequences between.

No character is changed or moved, so that the text can be copied. A piece is shown at once, except the first characters
of a line and marks (`*`, backticks) until the next character decides their meaning. The kind of a line (a heading, a
list, a quote, code) is seen from its first characters; a style within a line (code, strong, emphasis) begins and ends
with its marks, and ends with the line at the latest. Pure.
"""

import re
from collections.abc import Iterator

from synapsectl.colours import BOLD, CYAN, DIM, GREEN, MAGENTA, OFF

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(?: |$)")
_QUOTE = re.compile(r" {0,3}>")
_ITEM = re.compile(r"( *)(?:[-*+]|[0-9]{1,9}[.)]) ")
_UNDECIDED = re.compile(r" {0,8}(?:#{0,6}|`{0,2}|~{0,2}|[-*+]|[0-9]{0,9}[.)]?)\Z")
"""Beginning of a line whose next character decides its kind."""

_HEAD, _CODE, _QUOTED, _MARK = f"{BOLD};{MAGENTA}", CYAN, f"{DIM};{GREEN}", DIM
_ITALIC = "3"


class MarkdownColours:
    """Colours the pieces of one text; call `end` when it is over."""

    def __init__(self) -> None:
        self._line = ""
        """Beginning of the line, while its kind is not decided."""
        self._kind = ""
        """Kind of the line: its style, `text` for one with marks in it, empty while it is not decided."""
        self._fence = ""
        """The marks that end a block of code; empty outside of one."""
        self._code = False
        self._strong = False
        self._marks = ""
        """Stars or backticks whose number is not known yet."""

    def feed(self, piece: str) -> str:
        return "".join(self._feed(piece))

    def end(self) -> str:
        """Returns the rest that was not decided, and ends the styles."""
        return "".join(self._over())

    def _feed(self, piece: str) -> Iterator[str]:
        for character in piece:
            if character == "\n":
                yield from self._over()
                yield "\n"
            elif not self._kind:
                self._line += character
                if not _UNDECIDED.fullmatch(self._line):
                    yield from self._decided()
            else:
                yield from self._within(character)

    def _decided(self) -> Iterator[str]:
        """Handles a line whose kind is known."""
        line, self._line = self._line, ""
        fence = _FENCE.match(line)
        if self._fence:
            self._kind = "fence" if fence and line.strip().startswith(self._fence) else _CODE
            self._fence = "" if self._kind == "fence" else self._fence
        elif fence:
            self._kind, self._fence = "fence", fence[1]
        elif _HEADING.match(line):
            self._kind = _HEAD
        elif _QUOTE.match(line):
            self._kind = _QUOTED
        else:
            self._kind = "text"
        if self._kind == "text":
            if item := _ITEM.match(line):
                yield f"\x1b[{BOLD};{GREEN}m{item[0]}{OFF}"
                line = line[len(item[0]) :]
            for character in line:
                yield from self._within(character)
        else:
            yield f"\x1b[{_MARK if self._kind == 'fence' else self._kind}m{line}"

    def _within(self, character: str) -> Iterator[str]:
        if self._kind != "text":
            yield character
        elif character in "*`" and (not self._code or character == "`"):
            if self._marks and self._marks[0] != character:
                yield from self._marked("")
            self._marks += character
        elif self._marks:
            yield from self._marked(character)
            yield character
        else:
            yield character

    def _marked(self, following: str) -> Iterator[str]:
        """Handles complete marks: they switch a style. A star before a blank is only a star."""
        marks, self._marks = self._marks, ""
        if marks[0] == "`":
            self._code = not self._code
            yield f"\x1b[{_CODE}m{marks}" if self._code else f"{marks}{OFF}{self._pen()}"
        elif self._strong:
            self._strong = False
            yield f"{marks}{OFF}"
        elif following in ("", " "):
            yield marks
        else:
            self._strong = True
            yield f"\x1b[{BOLD if len(marks) > 1 else _ITALIC}m{marks}"

    def _pen(self) -> str:
        return f"\x1b[{BOLD}m" if self._strong else ""

    def _over(self) -> Iterator[str]:
        """Ends the line, and with it every style that began in it."""
        if not self._kind and self._line:
            yield from self._decided()
        if self._marks:
            yield from self._marked("")
        if self._kind and (self._kind != "text" or self._code or self._strong):
            yield OFF
        self._kind, self._line, self._code, self._strong = "", "", False, False
