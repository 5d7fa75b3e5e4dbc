"""Reads the beginning of an answer while the program still writes it; the turn's end gives the whole answer.

Line-oriented programs (`LineText`): the output itself, line by line. Block-oriented ones (`ScreenText`): the block of
text that is being drawn, taken from one screen after the other; text that has scrolled away stays, and new text is
joined at the overlap.
"""

import os.path
import re
from collections.abc import Sequence

from synapsed.profiles.screen_spec import AnswerSpec, StreamSpec
from synapsed.shared.regex import regex
from synapsed.terminal.answer import edited, is_skipped, position_below, stripped
from synapsed.terminal.prose import Line, Wrapping, certain
from synapsed.terminal.snapshot import PLAIN

HELD_MAX = 256 * 1024
"""Bytes of output that are kept while an earlier piece is missing, or while a line does not end."""

_PASTE_MODE = b"\x1b[?2004"

_UNMOVED = regex(
    rb"\x1b(?:\[[\d;:]*m|\[\?(?:25|2004)[hl]|\[[012]?K|\[\?2026[hl]"
    rb"|[\]PX^_](?:[^\x07\x1b]|\x1b(?!\\))*+(?:\x07|\x1b\\|\Z)|\([0B]|[=>])"
    rb"|[\x00\x07]"
)
"""Sequences that leave the cursor in its place."""

_UNMOVED_WITHIN = regex(rb"\x1b(?:\[[\d;]*m|\[\?(?:25|2004)[hl]|\[[012]?K|\[\?2026[hl]|\([0B]|[=>])|[\x00\x07]")
"""Sequences among them that never continue in the next line."""

_ERASED = regex(rb"\x1b\[[02]?K")

_MOVED = regex(rb"[\x00-\x08\x0b-\x1f\x7f]")

SAID_MAX = 32 * 1024
"""Largest number of characters of a text that is compared with the rows that show it, which takes 2 ms."""

_FENCE = regex(r"^ *(?:`{3,}|~{3,}).*$", re.MULTILINE)
_UNDRAWN = regex(r"[\W_]+")
"""Blanks, and characters that a program may draw differently: marks, bullets, frames."""


class LineText:
    """Collects the lines of the output from `start`, the offset at which the message was submitted. It leaves out the
    first line, which is the end of the echoed input, and all that a line editor draws until it ends. An unfinished last
    line may be the next prompt, and counts only when it has ended. The text ends before a line that only a terminal can
    draw."""

    def __init__(self, start: int) -> None:
        self.text = ""
        self._at = start
        self._first = True
        self._lost = False
        self._editing = True
        """True while a line editor may still draw, as far as is known."""
        self._rest = bytearray()
        self._early: dict[int, bytes] = {}
        """Output after a gap, by offset."""
        self._held = 0

    def feed(self, offset: int, data: bytes) -> None:
        """Takes output, in any order if a gap is filled later; `text` then has the lines that ended with it."""
        if offset > self._at:
            if self._held < HELD_MAX:
                self._early[offset] = data
                self._held += len(data)
            return
        self._take(data[self._at - offset :])
        while (after := self._early.pop(self._at, None)) is not None:
            self._take(after)

    def _take(self, data: bytes) -> None:
        self._at += len(data)
        *ended, rest = data.rsplit(b"\n", 1)
        if ended:
            self._lines(bytes(self._rest + ended[0]))
            self._rest.clear()
        self._rest += rest
        del self._rest[:-HELD_MAX]

    def _lines(self, ended: bytes) -> None:
        """Takes lines, without the break after the last. Most are plain, and are read all at once."""
        edited_in = self._editing and _PASTE_MODE in ended
        if self._first and not edited_in:
            self._first = False
            _, more, ended = ended.partition(b"\n")
            if not more:
                return
        shown = None if edited_in or self._lost else _all_shown(ended)
        if shown is not None:
            self.text += shown
            return
        for line in ended.split(b"\n"):
            self._line(line)

    def _line(self, line: bytes) -> None:
        if self._editing and _PASTE_MODE in line:
            self._editing = False
            if (left := edited(line)) is not None:
                self.text, self._lost, line = "", False, line[left:]
        if not self._first and not self._lost:
            shown = _shown(line)
            self._lost = shown is None
            self.text += "" if shown is None else f"{shown}\n"
        self._first = False


def _all_shown(lines: bytes) -> str | None:
    """Returns `lines` as a terminal shows them, each with a break; None if they have to be read one by one."""
    text = _UNMOVED_WITHIN.sub(b"", lines).replace(b"\r\n", b"\n").removesuffix(b"\r")
    if _MOVED.search(text) is not None:
        return None
    try:
        shown = text.decode()
    except UnicodeDecodeError:
        return None
    if "\t" in shown:
        if not shown.isascii():
            return None
        shown = shown.expandtabs(8)
    return "".join([f"{line.rstrip()}\n" for line in shown.split("\n")])


def _shown(line: bytes) -> str | None:
    """Returns the line as a terminal shows it; None if only a terminal can draw it. The last text written over the line
    counts, if it hides all the text before."""
    *over, last = line.rstrip(b"\r").split(b"\r")
    shown = _plain(last)
    if over and _ERASED.search(last) is None:
        hidden = [_plain(each) for each in over]
        if shown is None or any(each is None or len(each) > len(shown) for each in hidden):
            return None
    return shown


def _plain(line: bytes) -> str | None:
    try:
        text = _UNMOVED.sub(b"", line).decode()
    except UnicodeDecodeError:
        return None
    if "\t" in text and text.isascii():
        text = text.expandtabs(8)
    return text.rstrip() if _MOVED.search(text.encode()) is None and "\t" not in text else None


class ScreenText:
    """The text of the block that is being drawn below `message`. `begun`: the turn was under way already, so that its
    message may have scrolled away; without it no text counts before the message is on the screen."""

    def __init__(self, stream: StreamSpec, answer: AnswerSpec, message: str, *, begun: bool = False) -> None:
        self._stream = stream
        self._answer = answer
        self._message = message
        self._begun = begun
        self._lines: list[Line] = []
        self.message = 0
        """Number that grows with every block that replaces another one."""

    def read(self, screen: str, kinds: str | None = None, *, cols: int = 80, said: str = "") -> str:
        """Takes a screen (wrapped rows joined; `kinds`: the style of each character, None if all are plain); returns
        the text so far, as far as it is certain, up to its last whole word. `said` is the known beginning of the text:
        the part after it may be certain even if the drawing of the beginning is not."""
        lines = screen.split("\n")
        drawn = kinds.split("\n") if kinds is not None else [PLAIN * len(line) for line in lines]
        below = position_below(lines, self._message, self._answer.start)
        self._begun = self._begun or below is not None
        begin, end = self._block(lines, below or 0)
        if self._begun and (begin is not None or (below is None and self._lines)):
            end = (begin or 0) + len(self._cut(lines[begin or 0 : end], first=begin is None))
            block = list(zip(lines[begin or 0 : end], drawn[begin or 0 : end], strict=True))
            if begin is not None and block:
                block[0] = self._begins(block[0])
            block = _trimmed([self._stripped(line) for line in block])
            # A program that draws all of its conversation again shows older blocks before it shows the message.
            if below is not None or begin is None or not _is_another(self._lines, block):
                self._take(block, first=begin is not None)
        stream = self._stream
        wrapping = Wrapping(cols - stream.indent, stream.slack, stream.breaks, stream.flat, stream.listed)
        text = certain(self._lines, wrapping)
        return text if text.startswith(said) else said + certain(self._below(said), wrapping, first=False)

    def _below(self, said: str) -> list[Line]:
        """Returns the paragraph below the rows that show all of `said`; empty if other rows are above it, too."""
        texts = [text for text, _ in self._lines]
        begin = next((number for number in range(len(texts), 0, -1) if not texts[number - 1]), 0)
        if not begin or not said.endswith("\n\n") or len(said) > SAID_MAX or len(_FENCE.findall(said)) % 2:
            return []
        shown = [_UNDRAWN.sub("", text) for text in texts[:begin] if text]
        return self._lines[begin:] if shown[-1] and "".join(shown) == _UNDRAWN.sub("", _FENCE.sub("", said)) else []

    def _take(self, block: list[Line], *, first: bool) -> None:
        """Takes a block; `first`: its first line is on the screen."""
        if block and not first:
            self._lines = _joined(self._lines, block)
        elif block:
            self.message += _is_another(self._lines, block)
            self._lines = block

    def _begins(self, line: Line) -> Line:
        """Returns a block's first line without its mark."""
        found = self._answer.start.search(line[0]) if self._answer.start is not None else None
        begin, end = found.span() if found is not None else (0, 0)
        return line[0][:begin] + line[0][end:], line[1][:begin] + line[1][end:]

    def _stripped(self, line: Line) -> Line:
        text = stripped(self._answer, line[0]).rstrip()
        begin = line[0].find(text)
        return text, line[1][begin : begin + len(text)]

    def _block(self, lines: Sequence[str], below: int) -> tuple[int | None, int]:
        """Returns the beginning of the last block of text (None if it is not on the screen), and its end."""
        end = len(lines)
        if self._answer.start is None:
            return None, end
        for number in range(end - 1, below - 1, -1):
            if self._answer.start.search(lines[number]):
                if not is_skipped(lines, number, self._stream.skip):
                    return number, end
                end = number
        return None, end

    def _cut(self, block: list[str], *, first: bool) -> list[str]:
        """Returns the block without the rows below the text, and without a tool call whose mark is not drawn at the
        moment. The first line of a block is always text."""
        ends = [pattern for pattern in (self._stream.end, self._answer.end) if pattern is not None]
        for number in range(0 if first else 1, len(block)):
            if any(pattern.search(block[number]) for pattern in ends):
                return block[:number]
            if is_skipped(block, number, self._stream.skip):
                return block[: next((row for row in range(number, 0, -1) if not block[row]), 0)]
        return block


def _trimmed(lines: Sequence[Line]) -> list[Line]:
    written = [number for number, (text, _) in enumerate(lines) if text]
    return list(lines[written[0] : written[-1] + 1]) if written else []


def _is_another(old: Sequence[Line], new: Sequence[Line]) -> bool:
    """Returns True if the block `new` is a different one than `old`, which grows at its end, and in which marks (`**`)
    may come and go."""
    if not old or not new:
        return False
    (before, _), (now, _) = old[0], new[0]
    same = os.path.commonprefix([before, now])  # noqa: RUF071 - characters are what is meant
    return 2 * len(same) < min(len(before), len(now))


def _joined(old: list[Line], new: list[Line]) -> list[Line]:
    """Returns `old` continued by `new`, which repeats the end of `old`: the longest possible overlap, at least a whole
    line with text. The last line of `old` may have grown. Without an overlap (another screen, or too much was missed)
    it returns `old`."""
    before, now = [text for text, _ in old], [text for text, _ in new]
    for start in range(max(0, len(old) - len(new)), len(old)):
        kept = before[start:]
        if not any(kept[:-1]):
            break
        if kept[:-1] == now[: len(kept) - 1] and now[len(kept) - 1].startswith(kept[-1]):
            return [*old[:start], *new]
    return old
