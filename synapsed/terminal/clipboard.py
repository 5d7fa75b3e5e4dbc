"""A terminal's output without what sets the clipboard of the terminal that shows it. Pure.

A program that writes OSC 52 (or kitty's 5522, or iTerm2's 1337;Copy) has its words pasted by the person later, into
whatever is in front then: a shell, for one.
"""

import re
from typing import Final

_OSC = rb"(?:\x1b\]|\xc2\x9d)"
"""How an operating system command begins; the second form, one character of eight bits, is obeyed by some."""
_HEAD: Final = re.compile(
    _OSC + rb"0{0,9}(?:52|5522|1337;(?:end)?copy[a-z]{0,16}+)(?=[;=\x07\x18\x1a\x1b\xc2])", re.IGNORECASE
)
_PARTIAL: Final = re.compile(rb"(?:\x1b|\xc2|" + _OSC + rb"[0-9]{0,13}+(?:;[A-Za-z]{0,23}+)?)\Z")
_HEAD_MAX: Final = 48
"""Bytes of a head, and more: what is longer is no head."""
_END: Final = re.compile(rb"\x07|\x18|\x1a|\xc2\x9c|\x1b\\?|\xc2\Z")


class ClipboardFilter:
    """One for each stream; any chunking gives the same bytes. `dropped`: how often the clipboard would be set."""

    def __init__(self) -> None:
        self.dropped = 0
        self._held = b""
        self._inside = False

    @property
    def holds(self) -> bool:
        """Whether what was fed may end inside of what sets the clipboard."""
        return self._inside or bool(self._held)

    def feed(self, data: bytes) -> bytes:
        """What may be shown of it now."""
        if data.isascii() and b"\x1b" not in data and not self.holds:
            return data
        data, self._held = self._held + data, b""
        kept = []
        at = 0
        while at < len(data):
            if self._inside:
                at = self._end(data, at)
            elif (head := _HEAD.search(data, at)) is not None:
                kept.append(data[at : head.start()])
                at = head.end()
                self._inside = True
                self.dropped += 1
            else:
                partial = _PARTIAL.search(data, max(at, len(data) - _HEAD_MAX))
                end = partial.start() if partial is not None else len(data)
                self._held = data[end:]
                kept.append(data[at:end])
                at = len(data)
        return b"".join(kept)

    def _end(self, data: bytes, at: int) -> int:
        """Where the sequence that `at` is inside of has ended; the end of `data` where it goes on."""
        end = _END.search(data, at)
        if end is None:
            return len(data)
        if end.end() == len(data) and end[0] in (b"\x1b", b"\xc2"):
            self._held = end[0]  # what follows tells
            return len(data)
        if end[0] == b"\xc2":
            return end.end()
        self._inside = False
        return end.start() if end[0] == b"\x1b" else end.end()  # another sequence begins, which ends this one
