"""Finds a line `@agent message` in the keys that a person types in an attached terminal, and parses it. Pure.

`KeyLine` follows the keys on their way to the program and stops at each Enter with the typed line, if it is sure of
that line. It knows the editing keys that all programs share; after any other key (history, completion) it is not sure,
and returns no line until a new one begins. The caller has to check that the program's composer agrees
(`composer.shows_line`): the keys alone are no proof.
"""

import re
import unicodedata
from codecs import utf_8_decode
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from synapsed.shared.regex import regex

LINE_MAX = 16_384
"""Most characters of a line that is followed; a longer one is left alone."""

_TOKEN = regex(
    rb"(?P<paste>\x1b\[200~)"
    rb"|(?P<csi>\x1b\[[0-?]*[ -/]*[@-~])"
    rb"|(?P<other>\x1bO[ -~]|\x1b[\]P_^X][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[^\[O\]P_^X\x1b])"
    rb"|(?P<control>[\x00-\x1f\x7f])"
    rb"|(?P<text>[^\x00-\x1f\x7f]+)",
    re.DOTALL,
)
_CUT = regex(rb"\x1b(?:\[[0-?]*[ -/]*|O|[\]P_^X][^\x07\x1b]*\x1b?)\Z")
"""An escape sequence that continues in the next piece. A single escape at the end of a piece is the key."""
_SEQUENCE_MAX = 4096

_ESCAPE = b"\x1b"
_PASTE_END = b"\x1b[201~"
_UNSEEN = regex(rb"\x1b\[(?:[IO]|<[\d;]*[Mm]|M|\d*;\d+:3(?:u|[A-Z~]))")
"""Reports of focus, the mouse, and released keys, which edit nothing."""
_KITTY = regex(rb"\x1b\[(?P<code>\d+)(?::\d*)*(?:;(?P<modifiers>\d*)(?::[12])?(?:;[\d:]*)?)?u")
_KITTY_CONTROL, _KITTY_LOCKS = 4, 64 | 128


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys for the program, unchanged."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Enter:
    """The key that submits, as the terminal sent it; `line` is the submitted line, None if it is unknown."""

    data: bytes
    line: str | None


class _Draft:
    """A text and the cursor in it, edited as composers do it. `sure` is False after a key whose effect differs between
    programs."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.at = 0
        self.sure = True

    def clear(self) -> None:
        self.text.clear()
        self.at = 0
        self.sure = True

    def insert(self, text: str) -> None:
        if self.sure and len(self.text) + len(text) > LINE_MAX:
            self.sure = False
        if self.sure:
            self.text[self.at : self.at] = text
            self.at += len(text)

    def _start(self) -> int:
        """Returns the beginning of the line that the cursor is on."""
        return next((n + 1 for n in range(self.at - 1, -1, -1) if self.text[n] == "\n"), 0)

    def _end(self) -> int:
        return next((n for n in range(self.at, len(self.text)) if self.text[n] == "\n"), len(self.text))

    def _remove(self, start: int, end: int) -> None:
        """Removes a part. Programs differ in how many code points of one character they remove, so the text is not sure
        then."""
        if any(_combines(char) for char in self.text[start : end + 1]):
            self.sure = False
        del self.text[start:end]
        self.at = start

    def left(self) -> None:
        self._move(self.at - 1)

    def right(self) -> None:
        self._move(self.at + 1)

    def _move(self, to: int) -> None:
        to = max(0, min(to, len(self.text)))
        if any(_combines(char) for char in self.text[min(to, self.at) : max(to, self.at) + 1]):
            self.sure = False
        self.at = to

    def home(self) -> None:
        self.at = self._start()

    def to_end(self) -> None:
        self.at = self._end()

    def backspace(self) -> None:
        if self.at:
            self._remove(self.at - 1, self.at)

    def delete(self) -> None:
        if self.at < len(self.text):
            self._remove(self.at, self.at + 1)

    def kill_line(self) -> None:
        if "\n" in self.text:
            self.sure = False  # at the start of a line some programs take the line break too
        else:
            self._remove(0, self.at)

    def kill_rest(self) -> None:
        if "\n" in self.text:
            self.sure = False
        else:
            at = self.at
            self._remove(at, len(self.text))

    def kill_word(self) -> None:
        start = self.at
        while start and self.text[start - 1] == " ":
            start -= 1
        while start and not self.text[start - 1].isspace():
            start -= 1
        self._remove(start, self.at)

    def newline(self) -> None:
        self.insert("\n")


class KeyLine:
    """The line that one person types."""

    def __init__(self) -> None:
        self._draft = _Draft()
        self._pasting = False
        self._tail = b""
        """Beginning of a sequence or character, which was passed on already."""

    @property
    def sure(self) -> bool:
        """True if the line is known."""
        return self._draft.sure

    def is_plain(self, data: bytes) -> bool:
        """Returns True if `data` is text, or simple editing, without an Enter."""
        return not (self._tail or self._pasting or b"\r" in data or b"\x1b" in data)

    def clear(self) -> None:
        """Notes that the composer is known to be empty."""
        self._draft.clear()

    def feed(self, data: bytes) -> Iterator[Keys | Enter]:
        """Yields the same bytes in the same order, cut at each Enter. The caller takes the next item only after it has
        handled that Enter."""
        whole = self._tail + data
        given = len(self._tail)
        at = 0
        while at < len(whole):
            end, key = self._take(whole, at)
            if end == at:
                break
            if key == b"\r" and not self._continues():
                line = self._line()
                self.clear()
                if at > given:
                    yield Keys(whole[given:at])
                if at >= given:
                    yield Enter(whole[at:end], line)
                    given = end
            at = end
        self._tail = whole[at:]
        if given < len(whole):
            yield Keys(whole[given:])

    def _take(self, whole: bytes, at: int) -> tuple[int, bytes]:
        """Takes the token at `at`: returns its end (`at` if it is not complete yet), and its key, if it is a key."""
        if self._pasting:
            return self._paste(whole, at), b""
        token = _TOKEN.match(whole, at)
        cut = _CUT.match(whole, at)
        if token is None or (cut is not None and token.lastgroup != "csi"):
            if cut is not None and len(whole) - at < _SEQUENCE_MAX:
                return at, b""
            self._draft.sure = False
            return at + 1, b""
        kind, value = token.lastgroup, token.group()
        if kind == "text":
            return self._typed(whole, at, token.end()), b""
        if kind == "paste":
            self._pasting = True
            return token.end(), b""
        key = value if kind == "control" else _named(value) if kind == "csi" else b"?"
        if key != b"\r":
            self._press(key)
        return token.end(), key

    def _paste(self, whole: bytes, at: int) -> int:
        """Takes pasted text, up to the possible beginning of its end."""
        end = whole.find(_PASTE_END, at)
        if end == at:
            self._pasting = False
            return at + len(_PASTE_END)
        if end < 0:
            end = len(whole)
            end -= next((n for n in range(len(_PASTE_END) - 1, 0, -1) if whole.endswith(_PASTE_END[:n], at)), 0)
        return self._typed(whole, at, end)

    def _typed(self, whole: bytes, at: int, end: int) -> int:
        value = whole[at:end]
        if end == len(whole):
            value = value[: utf_8_decode(value, "replace", False)[1]]
        self._draft.insert(value.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n"))
        return at + len(value)

    def _continues(self) -> bool:
        """Returns True for a backslash before Enter, which some composers take as a line break; the others do not
        submit such a line either."""
        draft = self._draft
        if draft.sure and draft.at and draft.text[draft.at - 1] == "\\":
            draft.sure = False
            return True
        return False

    def _line(self) -> str | None:
        return "".join(self._draft.text) if self._draft.sure and self._draft.text else None

    def _press(self, key: bytes) -> None:
        if key == b"":
            return
        if key == b"\x03":
            self.clear()
            return
        if key == _ESCAPE and not self._draft.text:
            return  # if this key brings a line back, the composer shows it
        act = _ACTS.get(key)
        if act is None:
            self._draft.sure = False
        elif self._draft.sure:
            act(self._draft)


_ACTS: dict[bytes, Callable[[_Draft], None]] = {
    b"\x7f": _Draft.backspace,
    b"\x08": _Draft.backspace,
    b"\x01": _Draft.home,
    b"\x05": _Draft.to_end,
    b"\x02": _Draft.left,
    b"\x06": _Draft.right,
    b"\x0a": _Draft.newline,
    b"\x0b": _Draft.kill_rest,
    b"\x15": _Draft.kill_line,
    b"\x17": _Draft.kill_word,
    b"delete": _Draft.delete,
}
_CSI_KEYS = {
    b"\x1b[D": b"\x02",
    b"\x1b[C": b"\x06",
    b"\x1b[H": b"\x01",
    b"\x1b[1~": b"\x01",
    b"\x1b[7~": b"\x01",
    b"\x1b[F": b"\x05",
    b"\x1b[4~": b"\x05",
    b"\x1b[8~": b"\x05",
    b"\x1b[3~": b"delete",
}


def _named(sequence: bytes) -> bytes:
    """Returns the key of a CSI sequence: a control character, a name, b"" if it edits nothing, b"?" for a key that is
    not followed."""
    if _UNSEEN.fullmatch(sequence):
        return b""
    if sequence in _CSI_KEYS:
        return _CSI_KEYS[sequence]
    kitty = _KITTY.fullmatch(sequence)
    if kitty is None:
        return b"?"
    code, modifiers = int(kitty["code"]), int(kitty["modifiers"] or 1) - 1 & ~_KITTY_LOCKS
    if code == 13:
        return b"\x0a" if modifiers else b"\r"
    if code in (8, 127) and not modifiers:
        return b"\x7f"
    if code == 27 and not modifiers:
        return _ESCAPE
    if modifiers == _KITTY_CONTROL and ord("a") <= code <= ord("z"):
        return bytes([code - ord("a") + 1])
    return b"?"


def _combines(char: str) -> bool:
    """Returns True if this code point may be part of a character of several."""
    return char > "\u02ff" and (
        unicodedata.category(char) in ("Mn", "Me", "Mc", "Cf", "Sk") or "\U0001f1e6" <= char <= "\U0001f1ff"
    )


@dataclass(frozen=True, slots=True)
class Mention:
    """A line for another agent: `@name [--response] text`."""

    name: str
    text: str
    response: bool


_MENTION = regex(r"@(?P<name>[^\s@]+(?:@[^\s@]+)?)(?P<response>\s+--response)?\s+(?P<text>\S.*)", re.DOTALL)


def parse_mention(line: str) -> Mention | None:
    """Returns the agent and the text of a line, or None. The whole text may be in double quotes."""
    found = _MENTION.fullmatch(line.strip())
    if found is None:
        return None
    text = found["text"]
    if len(text) > 2 and text[0] == text[-1] == '"' and '"' not in text[1:-1]:
        text = text[1:-1]
    return Mention(found["name"], text, found["response"] is not None)
