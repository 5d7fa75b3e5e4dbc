"""An answer read off the terminal: the last resort, always marked `exact: false`.

Block-oriented programs: the blocks after the message's own. What line-oriented ones printed is read in `printed`.
"""

import re
from collections.abc import Sequence

from synapsed.profiles.screen_spec import AnswerSpec
from synapsed.terminal.delivery import squeezed

SCROLLBACK_LINES = 50_000
"""Lines of one answer that are read back; of more the first are missing, and counted."""

_WORD = re.compile(r"\w")

PASTE_MODE = re.compile(rb"\x1b\[\?2004([hl])")

ANCHOR_CHARS = 40
"""How much of a message's first line is looked for on the screen; more may be wrapped."""


def edited(output: bytes) -> int | None:
    """Where in `output`, which begins where a message was submitted, the program leaves its line editor; None where
    that is not to be seen.

    An editor (readline, zle, prompt_toolkit) has bracketed paste on while a line is edited. It may draw the message
    once more when it is submitted, then switches the mode off, and the command runs. A switch that goes on first is
    another's: of the next prompt, or of what the command has started.
    """
    switch = PASTE_MODE.search(output)
    return switch.end() if switch is not None and switch[1] == b"l" else None


def anchor_of(message: str) -> str:
    """The beginning of `message` that is looked for on the screen; empty for a message without text."""
    return message.strip().split("\n")[0].strip()[:ANCHOR_CHARS].rstrip()


def below_message(text: str, message: str, start: re.Pattern[str] | None = None) -> str:
    """What stands in `text` below the last place where the program shows `message`; all of it where that is not to be
    seen. `start`: as for `position_below`."""
    lines = text.split("\n")
    return "\n".join(lines[position_below(lines, message, start) or 0 :])


def position_below(
    lines: Sequence[str], message: str, start: re.Pattern[str] | None = None, *, quoted_too: bool = True
) -> int | None:
    """Number of the line below the last one in which the program shows the beginning of `message`, which is what was
    typed; None where that is not to be seen. An answer may quote it: a line that begins an answer (`start`), or with
    words before it, is only taken for want of a better one, and for none unless `quoted_too`. Of these one that begins
    with the message, and has an answer below, counts first: some programs put the same sign before both."""
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


def is_cut(spec: AnswerSpec, text: str, message: str) -> bool:
    """Whether the beginning of the answer to `message` is not in `text`, the whole of a screen that keeps nothing that
    leaves it."""
    lines = text.split("\n")
    begins = spec.start is not None and any(spec.start.search(line) for line in lines)
    return not begins and position_below(lines, message, spec.start) is None


def shows(line: str, first: str) -> bool:
    """Whether `line` of a screen shows `first`, an `anchor_of` what was typed."""
    return bool(first) and _before(line, first) is not None


def _before(line: str, first: str) -> str | None:
    """What stands in `line` before `first`; None where that is not in it. Programs show tabs, and characters that have
    several forms, each in their own way."""
    before, found, _ = line.partition(first)
    if found:
        return before
    if first.isascii() and first.isprintable():
        return None
    before, found, _ = squeezed(line).partition(squeezed(first) or line)
    return before if found else None


def from_screen(spec: AnswerSpec, text: str, message: str) -> str:
    """The answer in `text` (screen with scrollback, wrapped lines joined): the last block that `spec.start` begins
    after the last place where `message` stands."""
    lines = below_message(text.rstrip(), message, spec.start).split("\n")
    if spec.end is not None:
        stop = next((n for n, line in enumerate(lines) if spec.end.search(line)), None)
        lines = lines if stop is None else lines[:stop]
    if spec.start is not None:
        begins = [n for n, line in enumerate(lines) if spec.start.search(line)]
        if begins:
            lines = lines[begins[-1] :]
            lines[0] = spec.start.sub("", lines[0], count=1)
    return tidy(spec, lines)


def stripped(spec: AnswerSpec, line: str) -> str:
    """`line` without what the profile strips off its two ends."""
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
