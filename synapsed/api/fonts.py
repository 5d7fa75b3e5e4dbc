"""The fonts that this machine has, for pictures: a monospaced one, and others for what that one has not.

Fontconfig chooses, so that a person's own settings count; without it there are the fonts of macOS, and at last the one
that Pillow brings.
"""

import shutil
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

from PIL import ImageFont

LOOKUPS_MAX = 32
"""Characters for which fontconfig is asked in one picture: 20 ms each. What is left is drawn as a box."""

MATCH_SECONDS = 5.0

_KNOWN = (
    "/System/Library/Fonts/Menlo.ttc",
    "/System/Library/Fonts/Hiragino Sans GB.ttc",
    "/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf",
)
_NO_CHARACTER = "\uffff"


class Fonts:
    """Of one picture: its characters are `size` pixels high."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lookups = 0
        self._others: list[Any] = []
        self._chosen: dict[tuple[str, bool, bool], Any] = {}
        self.base: Any = self._load(_match("monospace")) or ImageFont.load_default(size)
        """The monospaced one."""

    def font(self, text: str, *, bold: bool = False, italic: bool = False) -> Any | None:
        """One that has the first character of `text`; None if no font has it."""
        key = (text[0], bold, italic)
        if key not in self._chosen:
            self._chosen[key] = self._find(*key)
        return self._chosen[key]

    def _find(self, char: str, bold: bool, italic: bool) -> Any | None:
        style = (":weight=bold" if bold else "") + (":slant=italic" if italic else "")
        first = self._load(_match(f"monospace{style}")) if style else None
        for font in [*([first] if first is not None else []), self.base, *self._others]:
            if _has(font, char):
                return font
        if self._lookups >= LOOKUPS_MAX:
            return None
        self._lookups += 1
        font = self._load(_match(f"monospace:charset={ord(char):x}"))
        if font is None or not _has(font, char):
            return None
        self._others.append(font)
        return font

    def _load(self, place: tuple[str, int] | None) -> Any | None:
        if place is None:
            return None
        try:
            return ImageFont.truetype(place[0], self._size, index=place[1])
        except OSError:  # a bitmap font of other sizes (colour emoji), or no font after all
            return None


def _has(font: Any, char: str) -> bool:
    """Whether it draws something else than what it draws for no character."""
    return bytes(font.getmask(char)) != bytes(font.getmask(_NO_CHARACTER))


@lru_cache(maxsize=256)
def _match(pattern: str) -> tuple[str, int] | None:
    """The file of the font that fits best, and its place in it."""
    tool = shutil.which("fc-match")
    if tool is None:
        return next(((path, 0) for path in _KNOWN if Path(path).exists()), None) if pattern == "monospace" else None
    command = [tool, "--format", "%{file}\n%{index}", pattern]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=MATCH_SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    file, _, index = found.partition("\n")
    return (file, int(index) if index.isdecimal() else 0) if file else None
