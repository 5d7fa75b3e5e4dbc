"""Blocks by indentation, as Python's prompt takes them: one statement at a time, a block until an empty line. Pure.

A message of several lines is a file to whoever wrote it: there a block ends where the next line stands at the margin,
and empty lines mean nothing. At the prompt an empty line ends the block, and a line at the margin without one is an
error. So each block is given its empty line, and those within one are left out. A line that goes on with a statement
(`else:`) ends none, and what is in brackets or in quotes is no line of its own.
"""

import re

from synapsed.profiles.screen_spec import Indented

_TOKEN = re.compile(r"""\\.|\"{3}|'{3}|["'#()\[\]{}]""", re.DOTALL)
_TRIPLE = frozenset({'"""', "'''"})
_LINES_MAX = 20_000
"""A message that has more is typed as it is."""


def as_typed(spec: Indented, text: str, *, whole: bool) -> str:
    """`text` as it is typed at such a prompt. `whole`: the program takes it as one, blocks and all, and only wants the
    empty line at its end."""
    lines = text.split("\n")
    if whole or len(lines) > _LINES_MAX:
        return f"{text}\n" if len(lines) > 1 or spec.opens.search(text) else text
    typed: list[str] = []
    nesting, block, before = _Nesting(), False, ""
    for line in lines:
        if not nesting.inside and block and not line.strip():
            continue  # whether the block is over tells the next line
        if not nesting.inside and line[:1].strip() and not line.startswith("#"):
            goes_on = block and (spec.goes_on.search(line) or spec.leads.search(before))
            if block and not goes_on:
                typed.append("")
            block = bool(goes_on or spec.opens.search(line))
            before = line
        nesting.read(line)
        typed.append(line)
    return "\n".join([*typed, ""] if block else typed)


class _Nesting:
    """Whether the next line is still inside brackets, or a text in triple quotes, or goes on behind a backslash."""

    def __init__(self) -> None:
        self._depth = 0
        self._quote = ""
        self._continued = False

    @property
    def inside(self) -> bool:
        return self._depth > 0 or bool(self._quote) or self._continued

    def read(self, line: str) -> None:
        self._continued = line.endswith("\\")
        for found in _TOKEN.finditer(line):
            sign = found[0]
            if self._quote:
                self._quote = "" if sign == self._quote else self._quote
            elif sign == "#":
                break
            elif sign in _TRIPLE or sign in "\"'":
                self._quote = sign
            elif sign in "([{":
                self._depth += 1
            elif sign in ")]}":
                self._depth = max(0, self._depth - 1)
        if self._quote not in _TRIPLE:
            self._quote = ""  # a text in single quotes ends with its line
