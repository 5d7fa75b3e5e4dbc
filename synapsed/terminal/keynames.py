"""Keys by their names, and the bytes that a terminal sends for them. Pure."""

import re
from collections.abc import Sequence
from typing import Final

from synapsed.errors import InvalidRequest
from synapsed.shared.regex import regex

KEYS_MAX = 64
"""Keys at once."""

KEY_MAX = 4096
"""Characters of one literal text."""

_NAMED: Final = {
    "Enter": "\r",
    "Esc": "\x1b",
    "Tab": "\t",
    "S-Tab": "\x1b[Z",
    "BSpace": "\x7f",
    "Space": " ",
    "PgUp": "\x1b[5~",
    "PgDn": "\x1b[6~",
    "Insert": "\x1b[2~",
    "Delete": "\x1b[3~",
    "F5": "\x1b[15~",
    "F6": "\x1b[17~",
    "F7": "\x1b[18~",
    "F8": "\x1b[19~",
    "F9": "\x1b[20~",
    "F10": "\x1b[21~",
    "F11": "\x1b[23~",
    "F12": "\x1b[24~",
    **{f"F{number}": f"\x1bO{letter}" for number, letter in enumerate("PQRS", 1)},
}
_CURSOR: Final = {"Up": "A", "Down": "B", "Right": "C", "Left": "D", "End": "F", "Home": "H"}
"""Keys with another sequence while the program has switched on application cursor keys (DECCKM)."""
_ALIASES: Final = {
    "Return": "Enter",
    "Escape": "Esc",
    "Backspace": "BSpace",
    "BTab": "S-Tab",
    "PageUp": "PgUp",
    "PageDown": "PgDn",
    "Del": "Delete",
}
_MODIFIED: Final = regex(r"(?P<modifiers>(?:[CM]-){1,2})(?P<key>.+)", re.DOTALL)
_UNTYPED: Final = regex(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that no text may have: control characters, and lone surrogates, which cannot be encoded."""


_EXTENDED: Final = regex(
    rb"\x1b\[(?:(?P<code>\d{1,7})(?::\d{0,7}(?::(?P<base>\d{1,7}))?)?"
    rb"(?:;(?P<modifiers>\d{0,3})(?::[12]?)?(?:;[\d:]{0,64})?)?u"
    rb"|27;(?P<its>\d{1,3});(?P<other>\d{1,7})~)"
)
"""A key in the CSI u format, except a release, or in the format of xterm's modifyOtherKeys."""
_CTRL: Final = 4
_LOCKS: Final = 64 | 128


def as_bytes(typed: bytes) -> bytes:
    """Returns `typed` with the classic bytes for each Esc, letter or other character, alone or with Ctrl, that a
    terminal with an extended keyboard protocol wrote as a sequence. Other keys stay as they are."""
    return _EXTENDED.sub(_as_byte, typed) if b"\x1b[" in typed else typed


def _as_byte(key: re.Match[bytes]) -> bytes:
    code = int(key["other"] or key["base"] or key["code"])
    modifiers = int(key["its"] or key["modifiers"] or 1) - 1 & ~_LOCKS
    if modifiers == _CTRL and 0x40 <= code < 0x7F:
        return bytes([code & 0x1F])
    return bytes([code]) if not modifiers and code < 0x80 else key[0]


def encode(keys: Sequence[str], *, application_cursor: bool = False) -> list[bytes]:
    """Returns the bytes for each of `keys`: a name, `C-x` or `M-x`, or text as it is. Raises InvalidRequest."""
    if not 0 < len(keys) <= KEYS_MAX:
        raise InvalidRequest(f"keys: must be 1 to {KEYS_MAX}", field="keys")
    return [_encode(key, application_cursor).encode() for key in keys]


def _encode(key: str, application_cursor: bool) -> str:
    name = _ALIASES.get(key, key)
    if name in _CURSOR:
        return ("\x1bO" if application_cursor else "\x1b[") + _CURSOR[name]
    if (named := _NAMED.get(name)) is not None:
        return named
    if not key or len(key) > KEY_MAX:
        raise InvalidRequest(f"keys: a text must have 1 to {KEY_MAX} characters", field="keys")
    if _UNTYPED.search(key):
        raise InvalidRequest(
            f"keys: {key[:40]!r} has control characters in it: name the key, like Enter, Tab or C-x", field="keys"
        )
    if (found := _MODIFIED.fullmatch(key)) is not None:
        return _modified(key, found["modifiers"], found["key"], application_cursor)
    return key


def _modified(key: str, modifiers: str, plain: str, application_cursor: bool) -> str:
    sent = plain
    if "C-" in modifiers:
        if plain == "Space":
            sent = "\x00"
        elif len(plain) == 1 and ((plain.isascii() and plain.isalpha()) or plain in "@[\\]^_"):
            sent = chr(ord(plain.upper()) & 0x1F)
        else:
            raise _unknown(key)
    elif len(plain) > 1:
        sent = _encode(plain, application_cursor)
        if sent == plain:
            raise _unknown(key)
    if modifiers in ("C-C-", "M-M-"):
        raise _unknown(key)
    return f"\x1b{sent}" if "M-" in modifiers else sent


def _unknown(key: str) -> InvalidRequest:
    return InvalidRequest(
        f"keys: {key[:40]!r} is no key: C- goes with a letter or one of @ [ \\ ] ^ _ and Space, M- with a character "
        "or a key's name",
        field="keys",
    )
