"""An answer read off the terminal: the last resort, always marked `exact: false`.

Line-oriented programs: what they printed between the message and their next prompt, taken from the stream itself, so
that neither the screen's height nor its scrollback cuts it. Block-oriented ones: the blocks after the message's own.
"""

import re
from collections.abc import Sequence

from synapsed.profiles import AnswerSpec, Composer
from synapsed.terminal.composer import cursor_line
from synapsed.terminal.delivery import squeezed
from synapsed.terminal.portions import portions
from synapsed.terminal.screen import Guard, Screen

SCROLLBACK_LINES = 50_000
"""Lines of one answer that are read back; more is cut at the front."""

_WORD = re.compile(r"\w")

_PASTE_MODE = re.compile(rb"\x1b\[\?2004([hl])")

_UNENDED_MARK = re.compile(rb"(\x1b\[1m\x1b\[7m)[%#](\x1b\[27m\x1b\[1m\x1b\[0m +\r \r)")
"""zsh's mark, in reverse video, of a line that the command has not ended: `%`, or as root `#`; then blanks up to the
next line, so that its prompt begins one."""

ANCHOR_CHARS = 40
"""How much of a message's first line is looked for on the screen; more may be wrapped."""


def from_lines(
    spec: AnswerSpec,
    composer: Composer,
    output: bytes,
    *,
    cols: int,
    rows: int,
    prompt: str = "",
    message: str = "",
    one_by_one: bool = False,
    edits: bool = False,
    guard: Guard | None = None,
) -> str:
    """The answer in `output`: everything that was printed since the message was submitted, the next prompt included.

    The echo of the submitted line break ends the first line, which holds nothing of the answer; nor does what a line
    editor draws until it is left, or once more: `prompt`, behind which the message was typed, and `message`.
    `one_by_one`: `output` begins where the message was typed, of which the program took each line by itself; `edits`:
    in a line editor.
    """
    end = prompted(composer, output, cols=cols, rows=rows, guard=guard)
    before = prompt.encode() if one_by_one else b""  # where its editor begins to draw
    lines, last = _printed(before + output[edited(output) or 0 : end], cols=cols, rows=rows, guard=guard)
    if end is None and (tail := last.rstrip()) and lines[-1].endswith(tail):
        above = lines[-1].removesuffix(tail).rstrip()  # what the cursor's line goes on from, as it looks here
        lines[-1:] = [*([above] if above else []), *_without_prompt(composer, last, prompt)]
    if one_by_one:
        lines = _without_echo(composer, lines, message, edits=edits)
    while lines and not lines[0].strip():
        lines.pop(0)
    if lines and prompt and lines[0] == (prompt + message.rpartition("\n")[2]).rstrip():
        lines.pop(0)
    return _tidy(spec, lines)


def _printed(output: bytes, *, cols: int, rows: int, guard: Guard | None) -> tuple[list[str], str]:
    """The lines of `output`, and the one that the cursor is on, up to there."""
    screen = Screen(cols, rows, scrollback_lines=SCROLLBACK_LINES, guard=guard)
    for portion in portions(_UNENDED_MARK.sub(rb"\1 \2", output)):  # the thread's turn may come in between
        screen.feed(portion)
    return screen.text(scrollback=True).rstrip().split("\n"), cursor_line(screen.snapshot())[1]


def _without_prompt(composer: Composer, line: str, prompt: str) -> list[str]:
    """What of the last `line` is no prompt: output that was not ended may stand before it."""
    found = re.search(composer.line, line) if composer.line is not None else None
    start = found.start() if found is not None else len(line)
    if prompt.strip() and line.endswith(prompt):
        start = len(line) - len(prompt)
    return [line[:start]] if line[:start].strip() else []


def _without_echo(composer: Composer, lines: list[str], message: str, *, edits: bool) -> list[str]:
    """`lines` without those of `message`: a terminal echoes them as they come, a line editor shows them behind its
    prompt, or what it has for a further line. Behind the prompt of a program that `edits` no line stands what it has
    printed next."""
    typed = [line.strip() for line in message.split("\n")]
    left, kept = list(typed), []
    for line in lines:
        prompts = _behind_prompts(composer, line)
        behind = prompts[-1] if prompts else None
        shown = [line, *prompts, *_continued(composer, line)]
        if left and any(left[0] == each.strip() for each in shown):
            left.pop(0)
        elif any(each.strip() in typed for each in _continued(composer, line)):
            continue  # drawn once more
        elif len(left) == 1 and left[0] and not edits and line.startswith(left[0]):  # its end is typed later
            printed = line.removeprefix(left.pop())
            rest = _behind_prompts(composer, printed)
            kept += [last] if (last := rest[-1] if rest else printed) else []
        elif behind is None or (edits and behind.strip() not in typed):
            kept.append(line)
        elif behind.strip() not in ("", *typed):
            kept.append(behind)
    return kept


def _behind_prompts(composer: Composer, line: str) -> list[str]:
    """What stands behind each of the prompts that `line` begins with."""
    behind: list[str] = []
    while composer.line is not None:
        found = re.search(composer.line, f"{line} ")
        if found is None or found.start() > 0 or found["text"] in (None, f"{line} "):
            break
        line = found["text"].rstrip()
        behind.append(line)
    return behind


def _continued(composer: Composer, line: str) -> list[str]:
    """What stands behind the mark of a further line, where `line` begins with one."""
    if composer.continuation is None or (found := re.match(composer.continuation, f"{line} ")) is None:
        return []
    return [line[found.end() :]]


def edited(output: bytes) -> int | None:
    """Where in `output`, which begins where a message was submitted, the program leaves its line editor; None where
    that is not to be seen.

    An editor (readline, zle, prompt_toolkit) has bracketed paste on while a line is edited. It may draw the message
    once more when it is submitted, then switches the mode off, and the command runs. A switch that goes on first is
    another's: of the next prompt, or of what the command has started.
    """
    switch = _PASTE_MODE.search(output)
    return switch.end() if switch is not None and switch[1] == b"l" else None


def prompted(composer: Composer, output: bytes, *, cols: int, rows: int, guard: Guard | None = None) -> int | None:
    """Where in `output` the program's next prompt begins, for which its line editor switches bracketed paste on again;
    None where that is not to be seen, or follows the prompt."""
    switches = list(_PASTE_MODE.finditer(output))
    if not switches or switches[-1][1] != b"h" or composer.line is None:
        return None
    _, behind = _printed(output[switches[-1].end() :], cols=cols, rows=rows, guard=guard)
    return switches[-1].start() if re.search(composer.line, behind) else None


def anchor_of(message: str) -> str:
    """The beginning of `message` that is looked for on the screen; empty for a message without text."""
    return message.strip().split("\n")[0].strip()[:ANCHOR_CHARS].rstrip()


def below_message(text: str, message: str, start: str | None = None) -> str:
    """What stands in `text` below the last place where the program shows `message`; all of it where that is not to be
    seen. `start`: as for `position_below`."""
    lines = text.split("\n")
    return "\n".join(lines[position_below(lines, message, start) or 0 :])


def position_below(
    lines: Sequence[str], message: str, start: str | None = None, *, quoted_too: bool = True
) -> int | None:
    """Number of the line below the last one in which the program shows the beginning of `message`, which is what was
    typed; None where that is not to be seen. An answer may quote it: a line that begins an answer (`start`), or with
    words before it, is only taken for want of a better one, and for none unless `quoted_too`."""
    first = anchor_of(message)
    quoted: int | None = None
    for n in range(len(lines) - 1, -1, -1) if first else ():
        before = _before(lines[n], first)
        if before is None:
            continue
        if _WORD.search(before) is None and (start is None or re.search(start, lines[n]) is None):
            return n + 1
        quoted = quoted or n + 1
    return quoted if quoted_too else None


def is_cut(spec: AnswerSpec, text: str, message: str) -> bool:
    """Whether the beginning of the answer to `message` is not in `text`, the whole of a screen that keeps nothing that
    leaves it."""
    lines = text.split("\n")
    begins = spec.start is not None and any(re.search(spec.start, line) for line in lines)
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
        stop = next((n for n, line in enumerate(lines) if re.search(spec.end, line)), None)
        lines = lines if stop is None else lines[:stop]
    if spec.start is not None:
        begins = [n for n, line in enumerate(lines) if re.search(spec.start, line)]
        if begins:
            lines = lines[begins[-1] :]
            lines[0] = re.sub(spec.start, "", lines[0], count=1)
    return _tidy(spec, lines)


def stripped(spec: AnswerSpec, line: str) -> str:
    """`line` without what the profile strips off its two ends."""
    if spec.strip is None:
        return line
    line = line.rstrip()
    found = list(re.finditer(spec.strip, line))
    if found and found[-1].end() == len(line):
        line = line[: found[-1].start()]
    return line[found[0].end() :] if found and found[0].start() == 0 else line


def _tidy(spec: AnswerSpec, lines: list[str]) -> str:
    lines = [stripped(spec, line) for line in lines]
    return "\n".join(line.rstrip() for line in lines).strip("\n")
