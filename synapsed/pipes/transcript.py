"""The transcript of a program without a terminal, for a person: the questions and texts, and a line to write in; and
the screen on which this is drawn as a terminal program's output would be.

Everything becomes bytes for a terminal; the program's text contains no escape sequence.

It is kept in a spool of its own beside the program's, so that this daemon and the next can draw the screen again from
it; `told_to` is the offset of the program's output up to which it has been written.
"""

import codecs
import contextlib
import os
import re
from pathlib import Path

from synapsed.keeper.spool import Spool

PROMPT = "› "
ERASE = "\r\x1b[K"
_DIM, _BOLD, _PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[0m"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_SEQUENCE = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[O]?.|\x1b")
DRAFT_MAX = 4096
"""Largest number of characters in a line that a person writes."""


class TranscriptView:
    """Draws the transcript. `draft` is the text that a person has written and not sent."""

    def __init__(self) -> None:
        self.draft = ""
        self._middle = False
        """True while the last text has not ended its line."""
        self._shown = False
        """True while the line to write in stands below everything."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")

    def said(self, text: str) -> bytes:
        """Draws the next piece of the program's text."""
        if not text:
            return b""
        clean = harmless(text)
        out = self._above() + clean.replace("\n", "\r\n")
        self._middle = not clean.endswith("\n")
        return out.encode()

    def line(self, text: str, *, bold: bool = False) -> bytes:
        """Draws a line of its own: dim, or a person's words in bold."""
        style = _BOLD if bold else _DIM
        shown = harmless(text).rstrip("\n").replace("\n", f"{_PLAIN}\r\n{style}")
        out = f"{self._above()}{self._break()}{style}{shown}{_PLAIN}\r\n"
        return out.encode()

    def rest(self) -> bytes:
        """Draws the line to write in, because nothing more comes for now."""
        if self._shown:
            return b""
        self._shown = True
        return f"{self._break()}{PROMPT}{self.draft}".encode()

    def keys(self, data: bytes) -> tuple[bytes, list[str]]:
        """Takes a person's keys; returns the bytes that show them, and the requests: lines to send, and "\\x03" for
        Ctrl-C."""
        data = _SEQUENCE.sub(b"", data.replace(b"\x1b[200~", b"").replace(b"\x1b[201~", b""))
        text = self._decoder.decode(data)
        asked, out = [], "" if self._shown else self._break() + PROMPT + self.draft
        self._shown = True
        for character in text:
            if character == "\r":
                line, self.draft = self.draft, ""
                out += ERASE
                self._shown = False
                if line.strip():
                    asked.append(line)
                out += self.rest().decode()
            elif character == "\x03":
                asked.append(character)
            elif character in "\x7f\x08":
                self.draft = self.draft[:-1]
                out += f"{ERASE}{PROMPT}{self.draft}"
            elif character == "\x15":
                self.draft = ""
                out += f"{ERASE}{PROMPT}"
            elif not _CONTROL.match(character) and character != "\n" and len(self.draft) < DRAFT_MAX:
                self.draft += character
                out += character
        return out.encode(), asked

    def erased(self) -> bytes:
        """Removes the draft."""
        self.draft = ""
        return f"{ERASE}{PROMPT}".encode() if self._shown else b""

    def _above(self) -> str:
        """Makes room above the line to write in."""
        shown, self._shown = self._shown, False
        return ERASE if shown else ""

    def _break(self) -> str:
        middle, self._middle = self._middle, False
        return "\r\n" if middle else ""


def harmless(text: str) -> str:
    """Returns the text without control characters that a terminal would obey."""
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\t", "    "))


RETENTION = 4 * 1024 * 1024
"""Bytes of the transcript that are kept."""

SHOWN = 128 * 1024
"""Bytes of it that a screen is drawn from when a daemon takes it up."""

_DIGITS = 20


class TranscriptSpool:
    """Keeps the transcript. Blocks on the disk: some hundred bytes at a time. Raises OSError from `__init__` alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "spool-transcript"
        self._spool = Spool(str(self.folder), retention=RETENTION, segment_size=RETENTION // 4)
        self._place = os.open(folder / "transcript-told", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.begin = max(self._spool.start, self._spool.end - SHOWN)
        """Offset from which on a screen is drawn from it."""

    def earlier(self) -> tuple[int, bytes]:
        """Returns the part from which a screen is drawn at first."""
        pieces, at = [], self.begin
        while at < self._spool.end:
            start, data = self._spool.read(at, self._spool.end - at)
            if not data:
                break
            pieces.append(data)
            at = start + len(data)
        return self.begin, b"".join(pieces)

    def append(self, data: bytes) -> int:
        """Returns the offset of the stored data; data that a full disk refuses is not shown again later."""
        at = self._spool.end
        self._spool.append(data)
        return at

    def told_to(self, launch: str) -> int:
        """Returns the offset of the output of that launch up to which it is in the transcript; 0 for another launch."""
        try:
            kept = os.pread(self._place, 256, 0).decode("ascii", "replace").split()
        except OSError:
            return 0
        return int(kept[0]) if len(kept) == 2 and kept[1] == launch and kept[0].isdecimal() else 0

    def note(self, offset: int, launch: str) -> None:
        with contextlib.suppress(OSError):  # then some lines are told once more
            os.pwrite(self._place, f"{offset:0{_DIGITS}d} {launch}\n".encode(), 0)

    def close(self) -> None:
        self._spool.close()
        os.close(self._place)
