"""Draws a program without a terminal for a person, as a terminal program would draw itself: the messages, texts and
questions so far (the transcript), and a line to write in.

All of it becomes bytes for a terminal. Control characters are removed from the program's text.

The transcript is kept in a spool of its own beside the program's, so that this daemon and the next can draw the screen
again. `told_to` is the offset of the program's output up to which the transcript has it.
"""

import codecs
import contextlib
import os
from pathlib import Path

from synapsed.keeper.spool import Spool
from synapsed.shared.regex import regex

PROMPT = "› "
ERASE = "\r\x1b[K"
_DIM, _BOLD, _PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[0m"
_CONTROL = regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_SEQUENCE = regex(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[O]?.|\x1b")
DRAFT_MAX = 4096
"""Largest number of characters in a line that a person writes."""


class TranscriptView:
    """Makes the bytes that draw the transcript. `draft` is the text that a person has written and not sent."""

    def __init__(self) -> None:
        self.draft = ""
        self._middle = False
        """True while the last text has not ended with a line break."""
        self._shown = False
        """True while the line to write in is drawn, below all else."""
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
        """Draws the text on lines of its own: dim, or in bold for a person's words."""
        style = _BOLD if bold else _DIM
        shown = harmless(text).rstrip("\n").replace("\n", f"{_PLAIN}\r\n{style}")
        out = f"{self._above()}{self._break()}{style}{shown}{_PLAIN}\r\n"
        return out.encode()

    def rest(self) -> bytes:
        """Draws the line to write in, because no more text is expected now."""
        if self._shown:
            return b""
        self._shown = True
        return f"{self._break()}{PROMPT}{self.draft}".encode()

    def keys(self, data: bytes) -> tuple[bytes, list[str]]:
        """Takes a person's keys. Returns the bytes that show them, and the person's requests: lines to send, and
        "\\x03" for Ctrl-C."""
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
        self.draft = ""
        return f"{ERASE}{PROMPT}".encode() if self._shown else b""

    def _above(self) -> str:
        """Erases the line to write in, so that text can be drawn in its place."""
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
"""Bytes at the transcript's end from which a daemon draws the screen after its start."""

HELD_MAX = 1024 * 1024
"""Bytes that are held while the disk refuses them; beyond it they are missing when the screen is drawn again."""

_DIGITS = 20


class TranscriptSpool:
    """Keeps the transcript on disk. It blocks, for some hundred bytes at a time. Only `__init__` raises OSError."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "spool-transcript"
        self._spool = self._opened(0)
        self._held = b""
        """The end of the transcript, which the disk has not taken yet."""
        self._place = os.open(folder / "transcript-told", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.begin = max(self._spool.start, self._spool.end - SHOWN)
        """Offset in the transcript from which on the screen is drawn."""

    def earlier(self) -> tuple[int, bytes]:
        """Returns the offset `begin` and the transcript from there on: the screen is drawn from it at first."""
        pieces, at = [], self.begin
        while at < self._spool.end:
            start, data = self._spool.read(at, self._spool.end - at)
            if not data:
                break
            pieces.append(data)
            at = start + len(data)
        return self.begin, b"".join(pieces)

    def _opened(self, at_least: int) -> Spool:
        return Spool(str(self.folder), at_least=at_least, retention=RETENTION, segment_size=RETENTION // 4)

    def append(self, data: bytes) -> int:
        """Stores the data and returns its offset, which no other data has had: data that a full disk refuses is held,
        and stored with the next."""
        at = self._spool.end + len(self._held)
        self._held += data
        self._held = self._held[self._spool.append(self._held) :]
        if len(self._held) > HELD_MAX:
            with contextlib.suppress(OSError):
                again = self._opened(at + len(data))
                self._spool.close()
                self._spool, self._held = again, b""
        return at

    def told_to(self, launch: str) -> int:
        """Returns the offset up to which the transcript has the output of that launch; 0 if it is of another launch."""
        try:
            kept = os.pread(self._place, 256, 0).decode("ascii", "replace").split()
        except OSError:
            return 0
        return int(kept[0]) if len(kept) == 2 and kept[1] == launch and kept[0].isdecimal() else 0

    def note(self, offset: int, launch: str) -> None:
        with contextlib.suppress(OSError):  # then some lines are shown and reported once more
            os.pwrite(self._place, f"{offset:0{_DIGITS}d} {launch}\n".encode(), 0)

    def close(self) -> None:
        self._spool.close()
        os.close(self._place)
