"""Makes invisible characters, and those that reverse text, visible in a text that a person approves. Pure.

All places where a person approves something use this function; the page has the same one in `web/js/visible.js`.
Joiners and variation selectors stay where an emoji or a script needs them: there they hide nothing.
"""

import re
from functools import cache
from typing import Final

_CONTROL: Final = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]"
_UNSEEN: Final = (
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_SIGNS: Final = r"\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff"
"""Signs that are drawn as emoji or as letters, depending on the character after them."""
_JOINED: Final = r"\u0600-\u0dff"
"""Scripts whose letters are joined, or need joiners."""
_JOINER: Final = (
    rf"(?<![{_JOINED}])\u200c|\u200c(?![{_JOINED}])"
    rf"|(?<![{_JOINED}{_SIGNS}\ufe0f])\u200d|\u200d(?![{_JOINED}{_SIGNS}])"
)
_SELECTOR: Final = rf"(?<![{_SIGNS}])(?<![0-9#*](?=\ufe0f\u20e3))[\ufe0e\ufe0f]"


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(f"{_CONTROL}|{_UNSEEN}|{_JOINER}|{_SELECTOR}")


def visible(text: str) -> str:
    """Returns `text` with the code of each invisible character in its place; newlines and tabs stay."""
    return text if text.isprintable() and text.isascii() else _pattern().sub(_code, text)


def _code(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF or code < 0x100:  # a byte that is not UTF-8, which Python decodes like this
        return f"\\x{code & 0xFF:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
