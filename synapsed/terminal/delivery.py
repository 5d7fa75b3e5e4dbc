"""Makes the keystrokes for a message: without characters that a terminal would obey, never a command by accident, and
with indented blocks as Python's prompt takes them: one statement at a time, a block until an empty line. Pure.

A body must not be able to leave a bracketed paste (`ESC [ 201 ~`), press a key (C0, C1) or turn into a program's own
command (`/clear`, `!rm`): OSC and CSI are made of control characters, of which only tab and newline pass.

A message of several lines is written like a file: there a block ends before the next line at the margin, and empty
lines mean nothing. At the prompt an empty line ends the block, and a line at the margin is an error before that. So
each block gets its empty line, and empty lines within a block are left out. A line that continues a statement (`else:`)
ends no block, and lines in brackets or in quotes are not separate.
"""

import re
import unicodedata
from dataclasses import dataclass

from synapsed.errors import TooLarge
from synapsed.profiles.screen_spec import DeliverySpec, Indented
from synapsed.shared.regex import regex

_TOKEN = regex(r"""\\.|\"{3}|'{3}|["'#()\[\]{}]""", re.DOTALL)
_TRIPLE = frozenset({'"""', "'''"})
_LINES_MAX = 20_000
"""Lines of a message up to which blocks are handled; a longer one is typed as it is."""


def as_typed(spec: Indented, text: str, *, whole: bool) -> str:
    """Returns `text` as it is typed at the prompt of `spec`. `whole`: the program takes the text as one, with its
    blocks, and needs only the empty line at its end."""
    lines = text.split("\n")
    if whole or len(lines) > _LINES_MAX:
        return f"{text}\n" if len(lines) > 1 or spec.opens.search(text) else text
    typed: list[str] = []
    nesting, block, before = _Nesting(), False, ""
    for line in lines:
        if not nesting.inside and block and not line.strip():
            continue  # the next line decides if the block is over
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
    """Tracks if the next line is still inside brackets, or a text in triple quotes, or follows a backslash."""

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


_CONTROLS = regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff]")
"""U+FEFF is among them, because programs (unlike Python) take it for white space: `exit` before one ends them."""
_NEWLINES = regex(r"\r\n?|\u2028|\u2029")
PASTE_BEGIN = "\x1b[200~"
PASTE_END = "\x1b[201~"


KNOWN_BY = 200
"""Characters of a message, without blanks and invisible ones, by which it is recognised."""

_UNSEEN = ("Cf", "Cn", "Co")
_SLICE = 4096
"""Characters that are tested together."""


@dataclass(frozen=True, slots=True)
class Typed:
    """The keystrokes of a message."""

    text: str
    """Text that the program should then have, for comparing."""
    paste: bytes
    """Typed first."""
    submit: bytes
    """Typed when the program has taken the paste in."""

    @property
    def one_by_one(self) -> bool:
        """True if the message has several lines that a line-oriented program takes one by one."""
        return b"\n" in self.paste and not self.paste.startswith(PASTE_BEGIN.encode())

    def may_be(self, prompt: str | None) -> bool:
        """Returns True if `prompt`, the prompt that the program reports, may be this message. A program may report the
        text that a command stands for; blanks and the forms of characters may differ."""
        if not prompt or self.text.startswith(("/", "!")):
            return True
        return squeezed(self.text)[:KNOWN_BY] in squeezed(prompt)


def squeezed(text: str) -> str:
    """Returns the text in the form in which programs can be compared, because they rewrite it: compatibility and
    composed forms, no invisible characters."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        text = "".join(character for character in text if unicodedata.category(character) not in _UNSEEN)
    return "".join(text.split())


def clean(text: str) -> str:
    """Returns `text` without control characters but tab and newline, and without byte order marks; line breaks as `\n`;
    no blank lines at its ends."""
    return _CONTROLS.sub("", _NEWLINES.sub("\n", text)).rstrip().lstrip("\n")


def is_blank(text: str) -> bool:
    """Returns True if `text` would be invisible once it is typed: no program takes such a text for a message."""
    slices = (text[at : at + _SLICE] for at in range(0, len(text), _SLICE))
    return not any(character.isprintable() and not character.isspace() for some in slices for character in set(some))


def type_message(spec: DeliverySpec, text: str, *, bracketed: bool, command: bool = False, prompt: str = "") -> Typed:
    """Returns the keystrokes for `text`. `bracketed`: the program has bracketed paste on now; `prompt`: the text before
    the place of typing. Raises TooLarge."""
    body = clean(text)
    if spec.indented is not None and spec.indented.prompt.search(prompt):
        body = as_typed(spec.indented, body, whole=bracketed and spec.paste != "plain")
    if not command and spec.neutralise is not None and spec.neutralise.search(body):
        body = spec.neutral_prefix + body
    if not command and spec.neutralise_end is not None and spec.neutralise_end.search(body):
        body += spec.neutral_suffix
    if len(body.encode()) > spec.max_bytes:
        raise TooLarge(
            f"the message has {len(body.encode())} bytes; this program takes at most {spec.max_bytes} at once",
            limit=spec.max_bytes,
        )
    wrap = spec.paste == "bracketed" or (spec.paste == "auto" and bracketed)
    # A command must be seen by the program as typed keys: its completion does not look at pastes.
    pasted = wrap and not command
    keys = f"{PASTE_BEGIN}{body}{PASTE_END}" if pasted else body.replace("\n", spec.newline)
    return Typed(body, keys.encode(), spec.submit.encode())
