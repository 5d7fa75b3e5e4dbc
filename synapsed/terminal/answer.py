"""Reads an answer off the terminal: the last resort, always marked `exact: false`. This is for programs that draw
blocks of text: the answer is in the blocks below the message. `printed` reads the output of line-oriented programs."""

import re
import zlib
from collections.abc import Collection, Iterable, Sequence

from synapsed.profiles.screen_spec import AnswerSpec
from synapsed.shared.regex import regex
from synapsed.terminal.delivery import squeezed

SCROLLBACK_LINES = 50_000
"""Lines of one answer that are read back; if there are more, the first are missing, and counted."""

_WORD = regex(r"\w")

PASTE_MODE = regex(rb"\x1b\[\?2004([hl])")

ANCHOR_CHARS = 40
"""Characters of a message's first line that are searched for on the screen; a longer text may be wrapped."""


def edited(output: bytes) -> int | None:
    """Returns the place in `output`, which begins at the submission of a message, at which the program leaves its line
    editor; None if it is not shown. An editor (readline, zle, prompt_toolkit) has bracketed paste on while a line is
    edited. It may draw the message once more when it is submitted, then switches the mode off, and the command runs. If
    the mode is switched on first, that belongs to the next prompt, or to a program that the command has started."""
    switch = PASTE_MODE.search(output)
    return switch.end() if switch is not None and switch[1] == b"l" else None


def anchor_of(message: str) -> str:
    """Returns the beginning of `message` that is searched for on the screen; empty for a message without text."""
    return message.strip().split("\n")[0].strip()[:ANCHOR_CHARS].rstrip()


def below_message(text: str, message: str, start: re.Pattern[str] | None = None) -> str:
    """Returns the text below the last place where the program shows `message`; all of `text` if it is not shown.
    `start`: as for `position_below`."""
    lines = text.split("\n")
    return "\n".join(lines[position_below(lines, message, start) or 0 :])


def position_below(
    lines: Sequence[str], message: str, start: re.Pattern[str] | None = None, *, quoted_too: bool = True
) -> int | None:
    """Returns the number of the line below the last one in which the program shows the beginning of `message`, as it
    was typed; None if it is not shown. An answer may quote the message: a line that begins an answer (`start`), or has
    words before the message, is only taken if there is no better one, and only with `quoted_too`. Among these, a line
    that begins with the message and has an answer below comes first: some programs put the same sign before both."""
    first = anchor_of(message)
    echoed: int | None = None
    quoted: int | None = None
    for n in range(len(lines) - 1, -1, -1) if first else ():
        before = _before(lines[n], first)
        if before is None:
            continue
        sign = start.search(lines[n]) if start is not None else None
        if start is None or sign is None:
            if _WORD.search(before) is None:
                return n + 1
        elif echoed is None and sign.end() >= len(before) and any(map(start.search, lines[n + 1 :])):
            echoed = n + 1
        quoted = quoted or n + 1
    return (echoed or quoted) if quoted_too else None


def numbers_of(rows: Iterable[str]) -> list[int]:
    """Returns a number for each row that has words; rows of rules and frames are left out, as they do not move."""
    return [zlib.crc32(row.encode(errors="replace")) for row in rows if any(map(str.isalnum, row))]


def is_cut(spec: AnswerSpec, text: str, message: str, stood: Collection[int], *, kept: bool) -> bool:
    """Returns True if the beginning of the answer to `message` may be missing in `text`, or above the place where it is
    taken for the message: an answer may repeat that. `stood`: `TurnState.stood`, which has `numbers_of` rows; `kept`:
    no row has left the text."""
    lines = text.split("\n")
    below = position_below(lines, message, spec.start)
    if spec.start is not None and any(map(spec.start.search, lines[below or 0 :])):
        return False
    above = numbers_of(lines[: (below or 1) - 1])
    if below is None or not above or above[-1] in stood:
        return below is None and not kept
    return not kept or position_below(lines[: below - 1], message, spec.start) is not None


def shows(line: str, first: str) -> bool:
    """Returns True if `line` of a screen shows `first`, an `anchor_of` a typed message."""
    return bool(first) and _before(line, first) is not None


def _before(line: str, first: str) -> str | None:
    """Returns the text in `line` before `first`; None if the line does not have it. Programs show tabs, and characters
    with several forms, each in their own way."""
    before, found, _ = line.partition(first)
    if found:
        return before
    if first.isascii() and first.isprintable():
        return None
    before, found, _ = squeezed(line).partition(squeezed(first) or line)
    return before if found else None


def from_screen(spec: AnswerSpec, text: str, message: str, skip: re.Pattern[str] | None = None) -> str:
    """Returns the answer in `text` (screen with scrollback, wrapped lines joined): the last block that `spec.start`
    begins after the last place of `message`. A block that is no text (`skip`, of `StreamSpec`) counts only if there is
    no other."""
    lines = below_message(text.rstrip(), message, spec.start).split("\n")
    if spec.end is not None:
        stop = next((n for n, line in enumerate(lines) if spec.end.search(line)), None)
        lines = lines if stop is None else lines[:stop]
    if spec.start is not None:
        begins = [n for n, line in enumerate(lines) if spec.start.search(line)]
        if begins:
            begin = next((n for n in reversed(begins) if not is_skipped(lines, n, skip)), begins[-1])
            lines = lines[begin : next((n for n in begins if n > begin and is_skipped(lines, n, skip)), None)]
            lines[0] = spec.start.sub("", lines[0], count=1)
    return tidy(spec, lines)


def is_skipped(lines: Sequence[str], number: int, skip: re.Pattern[str] | None) -> bool:
    """Returns True if the block that begins in this line is no text (`StreamSpec.skip`)."""
    return skip is not None and skip.search("\n".join(lines[number : number + 2])) is not None


def stripped(spec: AnswerSpec, line: str) -> str:
    """Returns `line` without the parts that the profile strips off its two ends."""
    if spec.strip is None:
        return line
    line = line.rstrip()
    found = list(spec.strip.finditer(line))
    if found and found[-1].end() == len(line):
        line = line[: found[-1].start()]
    return line[found[0].end() :] if found and found[0].start() == 0 else line


def tidy(spec: AnswerSpec, lines: list[str]) -> str:
    lines = [stripped(spec, line) for line in lines]
    return "\n".join(line.rstrip() for line in lines).strip("\n")
