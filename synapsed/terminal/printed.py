"""Reads the answer of a line-oriented program, between a message and the next prompt, from the output itself, so that
neither the height of the agent's screen nor its scrollback cuts it."""

from collections import deque
from collections.abc import Generator

from synapsed.profiles.screen_spec import AnswerSpec, Composer
from synapsed.shared.regex import regex
from synapsed.terminal.answer import PASTE_MODE, SCROLLBACK_LINES, edited, tidy
from synapsed.terminal.composer import cursor_line
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.emulator_input import portions
from synapsed.terminal.screen_messages import LinesRead

_UNENDED_MARK = regex(rb"(\x1b\[1m\x1b\[7m)[%#](\x1b\[27m\x1b\[1m\x1b\[0m +\r \r)")
"""zsh's mark, in reverse video, of a line that the command has not ended: `%`, or as root `#`; then blanks up to the
next line, so that its prompt begins one."""

TAKEN_EVERY = 5_000
"""Rows that may have left the screen before they are taken off it; the emulator keeps four times as many."""

_ERASE_ABOVE = b"\x1b[3J"
_ERASES_ABOVE = (_ERASE_ABOVE, b"\x1bc")

type _Reading[T] = Generator[None, None, T]


def read_lines(
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
) -> _Reading[LinesRead]:
    """Returns the answer in `output`, which is everything that was printed since the message was submitted, with the
    next prompt.

    The echo of the submitted line break ends the first line, which holds nothing of the answer. The same is true of
    text that a line editor draws before the program leaves it, or once more: `prompt`, after which the message was
    typed, and `message`. `one_by_one`: `output` begins where the message was typed, and the program took each of its
    lines separately; `edits`: in a line editor. It yields at each step, so that other work can go on.
    """
    end = yield from prompted(composer, output, cols=cols, rows=rows)
    before = prompt.encode() if one_by_one else b""  # the place where its editor begins to draw
    lines, last, missing = yield from _printed(before + output[edited(output) or 0 : end], cols=cols, rows=rows)
    if end is None and (tail := last.rstrip()) and lines[-1].endswith(tail):
        above = lines[-1].removesuffix(tail).rstrip()  # the emulator counts it to that line, the snapshot does not
        lines[-1:] = [*([above] if above else []), *_without_prompt(composer, last, prompt)]
    if one_by_one:
        lines = _without_echo(composer, lines, message, edits=edits)
    elif edited(output) is None and _echoes(lines, message):
        lines.pop(0)
    while lines and not lines[0].strip():
        lines.pop(0)
    if lines and prompt and lines[0] == (prompt + message.rpartition("\n")[2]).rstrip():
        lines.pop(0)
    if missing and not output[edited(output) or 0 :].partition(b"\n")[0].strip():
        missing -= 1  # the line that the echo has ended
    return LinesRead(tidy(spec, lines), missing)


class _Above:
    """The lines that have left a screen at its top: removed from it now and then, because the emulator limits its rows
    in bytes and does not report dropped ones."""

    def __init__(self, screen: Screen, cols: int) -> None:
        self._screen = screen
        self._cols = cols
        self.lines: deque[str] = deque()
        self.missing = 0
        self._begun = ""
        """Beginning of a line whose rest is on the screen."""
        self._since = 0

    def feed(self, portion: bytes) -> None:
        """Draws `portion`. If a program erases the rows above its screen, the lines that were taken go, too."""
        ended = portion.rfind(b"\n") + 1
        for piece in (portion[:ended], portion[ended:]) if self._since > TAKEN_EVERY else (portion,):
            self._screen.feed(piece)
            if any(erases in piece for erases in _ERASES_ABOVE):
                self.lines.clear()
                self.missing, self._begun = 0, ""
            self._since += piece.count(b"\n") + len(piece) // self._cols
            if self._since > TAKEN_EVERY and piece.endswith(b"\n") and not self._screen.pending:
                self._take()

    def all(self) -> list[str]:
        """Returns the lines, with those that are on the screen."""
        first, *rest = self._screen.text(scrollback=True).rstrip().split("\n")
        self._keep([self._begun + first, *rest])
        return list(self.lines)

    def _take(self) -> None:
        if self._screen.snapshot().alternate:
            return
        whole, shown = (self._screen.text(scrollback=above).split("\n") for above in (True, False))
        at = max(0, len(whole) - len(shown))
        gone, goes_on = whole[:at], at < len(whole) and whole[at] != shown[0] and whole[at].endswith(shown[0])
        begun = whole[at].removesuffix(shown[0]) if goes_on else ""
        self._screen.feed(_ERASE_ABOVE)
        if gone:
            self._keep([self._begun + gone[0], *gone[1:]])
            self._begun = begun
        else:
            self._begun += begun
        self._since = 0

    def _keep(self, lines: list[str]) -> None:
        self.lines += lines
        while len(self.lines) > SCROLLBACK_LINES:
            self.lines.popleft()
            self.missing += 1


def _printed(output: bytes, *, cols: int, rows: int) -> _Reading[tuple[list[str], str, int]]:
    """Returns the lines of `output`, the line with the cursor, up to the cursor, and how many lines are missing."""
    screen = Screen(cols, rows, scrollback_lines=4 * TAKEN_EVERY)
    above = _Above(screen, cols)
    for portion in portions(_UNENDED_MARK.sub(rb"\1 \2", output)):
        above.feed(portion)
        yield
    return above.all(), cursor_line(screen.snapshot())[1], above.missing


def _without_prompt(composer: Composer, line: str, prompt: str) -> list[str]:
    """Returns the part of the last `line` that is no prompt: unended output may stand before it."""
    found = composer.line.search(line) if composer.line is not None else None
    start = found.start() if found is not None else len(line)
    if prompt.strip() and line.endswith(prompt):
        start = len(line) - len(prompt)
    return [line[:start]] if line[:start].strip() else []


def _without_echo(composer: Composer, lines: list[str], message: str, *, edits: bool) -> list[str]:
    """Returns `lines` without those of `message`: a terminal echoes them as they come, a line editor shows them after
    its prompt, or after its mark of a further line. A program that `edits` prints no output directly after its prompt,
    so a line that seems to have some is kept whole."""
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
        elif len(left) == 1 and left[0] and not edits and line.startswith(left[0]):  # its break is typed later
            printed = line.removeprefix(left.pop())
            rest = _behind_prompts(composer, printed)
            kept += [last] if (last := rest[-1] if rest else printed) else []
        elif behind is None or (edits and behind.strip() not in typed):
            kept.append(line)
        elif behind.strip() not in ("", *typed):
            kept.append(behind)
    return kept


def _echoes(lines: list[str], message: str) -> bool:
    """Returns True if the first of `lines`, which the echo of the submitted line break ends, is the message's own echo:
    on a busy machine the terminal's comes late. A single line is the answer of a program without an echo."""
    last = message.rpartition("\n")[2].strip()
    return bool(last) and lines[0].strip() == last and any(line.strip() for line in lines[1:])


def _behind_prompts(composer: Composer, line: str) -> list[str]:
    """Returns the texts after each of the prompts that `line` begins with."""
    behind: list[str] = []
    while composer.line is not None:
        found = composer.line.search(f"{line} ")
        if found is None or found.start() > 0 or found["text"] in (None, f"{line} "):
            break
        line = found["text"].rstrip()
        behind.append(line)
    return behind


def _continued(composer: Composer, line: str) -> list[str]:
    """Returns the text after the mark of a further line, if `line` begins with one."""
    if composer.continuation is None or (found := composer.continuation.match(f"{line} ")) is None:
        return []
    return [line[found.end() :]]


def prompted(composer: Composer, output: bytes, *, cols: int, rows: int) -> _Reading[int | None]:
    """Returns the place in `output` where the program's next prompt begins, by its line editor, which switches
    bracketed paste on again; None if the editor does not, or does so after the prompt."""
    switches = list(PASTE_MODE.finditer(output))
    if not switches or switches[-1][1] != b"h" or composer.line is None:
        return None
    _, behind, _ = yield from _printed(output[switches[-1].end() :], cols=cols, rows=rows)
    return switches[-1].start() if composer.line.search(behind) else None
