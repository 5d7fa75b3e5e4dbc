"""What a person sees of a program without a terminal: what was asked and said, and a line to write in. Pure.

Everything becomes bytes for a terminal, in which nothing of the program's is an escape sequence.
"""

import codecs
import re

PROMPT = "› "
ERASE = "\r\x1b[K"
_DIM, _BOLD, _PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[0m"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_SEQUENCE = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[O]?.|\x1b")
DRAFT_MAX = 4096
"""Characters of a line that a person writes."""


class TranscriptView:
    """`draft` is what a person has written and not sent."""

    def __init__(self) -> None:
        self.draft = ""
        self._middle = False
        """Text stands that has not ended its line."""
        self._shown = False
        """The line to write in stands below everything."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")

    def said(self, text: str) -> bytes:
        """The next piece of what the program says."""
        if not text:
            return b""
        clean = harmless(text)
        out = self._above() + clean.replace("\n", "\r\n")
        self._middle = not clean.endswith("\n")
        return out.encode()

    def line(self, text: str, *, bold: bool = False) -> bytes:
        """A line of its own: dim, or a person's words in bold."""
        style = _BOLD if bold else _DIM
        shown = harmless(text).rstrip("\n").replace("\n", f"{_PLAIN}\r\n{style}")
        out = f"{self._above()}{self._break()}{style}{shown}{_PLAIN}\r\n"
        return out.encode()

    def rest(self) -> bytes:
        """Nothing more comes for now: the line to write in."""
        if self._shown:
            return b""
        self._shown = True
        return f"{self._break()}{PROMPT}{self.draft}".encode()

    def keys(self, data: bytes) -> tuple[bytes, list[str]]:
        """Keys of a person: what they show, and what was asked for: lines to send, and "\\x03" for Ctrl-C."""
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
        """The draft is gone."""
        self.draft = ""
        return f"{ERASE}{PROMPT}".encode() if self._shown else b""

    def _above(self) -> str:
        """The line to write in makes room."""
        shown, self._shown = self._shown, False
        return ERASE if shown else ""

    def _break(self) -> str:
        middle, self._middle = self._middle, False
        return "\r\n" if middle else ""


def harmless(text: str) -> str:
    """Text without what a terminal would obey."""
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\t", "    "))
