"""Decides if the text at the cursor is a prompt at which a message may be typed: one function over the known facts.
Pure.

The text is never a prompt if typed text is not shown, or while another program than the turn's has the terminal; nor on
the alternate screen, or if the cursor is hidden, except for a known prompt of a program that is seen to read a line
there: a killed full-screen program leaves the terminal so. Once a prompt is known, only known prompts count
(`learned`). Before that, a first message may be typed if the row looks like a prompt (the profile's `composer.line`),
directly before the cursor, if there is evidence that a line is read, and if there is no sign of a question in the row
or the one above it: no question mark, no choices, no default, no frame.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from synapsed.profiles.screen_spec import Composer
from synapsed.shared.regex import regex
from synapsed.terminal.composer import ComposerState, cursor_line
from synapsed.terminal.line_prompts.evidence import TerminalFacts, evidence
from synapsed.terminal.line_prompts.learned import TEXT_MAX, LearnedPrompt, compiled
from synapsed.terminal.snapshot import ScreenSnapshot

ABOVE_ROWS = 3
"""Rows above the cursor's; the nearest of them with words counts as the one above it."""

ECHO_CHARS = 20
"""Characters of a message's first line by which it is recognised after a prompt."""

_QUESTION = regex(r"[?？]")
_ASKS = regex(r"\w[\"')\]]*\s*[?？](?:\s|$)")
"""A sentence that ends in a question mark, for the row above: banners have question marks in other places."""
_CHOICES = regex(
    r"[\[(（［]\s*\w{1,16}(?:\s*[/,|]\s*[\w?]{1,16})+\s*[\])）］]"
    r"|[\[(（［]\w{1,2}[\])）］]\s*\w[^()\[\]]*[\[(（［]\w{1,2}[\])）］]\s*\w"
)
"""`[y/N]`, `[y,n,q,?]`, `(1) red (2) blue`, `(Y)es/(N)o`."""
_DEFAULT = regex(r"\S[ \u00a0]+[\[(（［][^\[\]()（）［］]{0,60}[\])）］]\s*+[:：>❯›»]*+\s*+$")
"""`Name (x): `, `Which one [1] > `."""
_FRAME = regex(r"[─-╿▀-▟]")
_LISTED = regex(r"\A(?:\s*[\[(（［]?\d{1,2}[\])）］.:]\s*\S|\s*[•❯›>●○◯◉☐☑]\s+\S)")
"""A row of a menu."""
_ASIDE = regex(r" {2,}\S")
"""Text apart from the cursor, after it: a prompt on the right."""
_SIGNS = ((_QUESTION, "a question mark"), (_CHOICES, "choices"), (_DEFAULT, "a default"), (_FRAME, "a frame"))
_SIGNS_ABOVE = ((_ASKS, "a question"), (_CHOICES, "choices"), (_LISTED, "a menu"), (_FRAME, "a frame"))
"""Signs of a question, in the row and in the one above it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Facts besides the screen."""

    facts: TerminalFacts | None
    learned: Sequence[LearnedPrompt] = ()
    before: str = ""
    """Text of the unended line before the prompt came."""
    edits_from: int = 0
    """Spool offset at which bracketed paste was switched on last."""
    offset: int = 0
    """Spool offset up to which the screen shows the output."""


def _absent(why: str) -> ComposerState:
    return ComposerState("absent", why=why)


def read_prompt(spec: Composer, screen: ScreenSnapshot, known: Known) -> ComposerState:
    """Returns the text at the cursor, as a composer: `empty` at a prompt, `draft` if there is text after one."""
    facts = known.facts
    if facts is None:
        return _absent("who reads its terminal is not known yet")
    if (never := _never(facts)) is not None:
        return _absent(never)
    row, line = cursor_line(screen)
    cursor = _cursor_in(screen, row, line)
    behind = line[cursor:]
    if not behind.strip() or _ASIDE.match(behind):
        line = line[:cursor]  # a prompt on the right is no draft
    states = [state for one in known.learned if (state := _recognised(one, known, facts, row, line)) is not None]
    if screen.alternate or not screen.cursor_visible:
        states = [state for state in states if state.learned and _is_read(screen, known, facts)]
        if not states:
            return _absent("it shows its other screen" if screen.alternate else "the cursor is hidden")
    if states:
        return min(states, key=lambda state: state.state == "draft")
    if any(one.confirmed for one in known.learned):
        return _absent("no prompt that is known")
    return _first(spec, screen, known, facts, row, line)


def _recognised(one: LearnedPrompt, known: Known, facts: TerminalFacts, row: int, line: str) -> ComposerState | None:
    """Returns the content of `line` if the prompt `one` is in it, else None. By a prompt that is not confirmed only
    drafts are recognised."""
    if not one.of(facts) or (not one.text and line.strip()):
        return None
    draft = None
    for start in _starts(one, line, known.before, facts):
        found = compiled(one.pattern).match(line, start)
        if found is None:
            continue
        prompt, text = line[start : found.end()], line[found.end() :].strip()
        if text:
            draft = draft or ComposerState("draft", text, row, prompt, learned=one.confirmed)
        elif one.confirmed:
            why = _not_reading(one, facts)
            return _absent(why) if why else ComposerState("empty", "", row, prompt, why="a prompt that is known")
    return draft


def _is_read(screen: ScreenSnapshot, known: Known, facts: TerminalFacts) -> bool:
    """Returns True if the program is seen to read a line, and not only known by its name to edit lines."""
    if facts.line_mode:
        return facts.reads == "yes"
    return facts.line_mode is False and screen.modes.bracketed_paste and known.edits_from > facts.since


def _never(facts: TerminalFacts) -> str | None:
    if facts.line_mode and facts.echo is False:
        return "what is typed is not shown"
    if facts.foreign:
        return "another program has the terminal"
    return None


def _not_reading(one: LearnedPrompt, facts: TerminalFacts) -> str | None:
    """Returns the reason why the prompt was only printed, and no line is read at it; None if one may be."""
    if one.mode == "keys" and facts.line_mode:
        return "printed, no line editor is up"
    if one.mode == "lines" and facts.line_mode is False:
        return "printed, the terminal gives keys"
    return "printed, nobody reads a line" if facts.line_mode and facts.reads == "no" else None


def _starts(one: LearnedPrompt, line: str, before: str, facts: TerminalFacts) -> Iterator[int]:
    """Yields places in `line` where the prompt may begin: after the unended text before it, or at the line's beginning.
    In line mode it may also follow other output directly, if it has a letter or digit or ends in `$`, `#` or `%`."""
    if before and line.startswith(before.rstrip()):
        rest = line[len(before) if line.startswith(before) else len(before.rstrip()) :]
        yield len(line) - len(rest.lstrip())
    yield 0
    text = one.text
    if facts.line_mode and text and (any(map(str.isalnum, text)) or text[-1] in "$#%"):
        tail = line.rstrip()
        at = tail.rfind(text)
        if at > 0 and not tail[at - 1].isspace() and tail.endswith(text) and not _asks(tail[:at]):
            yield at


def _asks(text: str) -> str | None:
    return next((sign for pattern, sign in _SIGNS if pattern.search(text)), None)


def asks(spec: Composer, text: str) -> str | None:
    """Returns the sign in `text` of a question; None for a row that the profile knows (`Composer.known`)."""
    return None if spec.known is not None and spec.known.search(text) else _asks(text)


def _asks_above(screen: ScreenSnapshot, row: int) -> str | None:
    above = next((line for line in reversed(screen.lines[max(0, row - ABOVE_ROWS) : row]) if line.strip()), "")
    return next((f"{sign} above it" for pattern, sign in _SIGNS_ABOVE if pattern.search(above)), None)


def _first(
    spec: Composer, screen: ScreenSnapshot, known: Known, facts: TerminalFacts, row: int, line: str
) -> ComposerState:
    """Returns the state at a prompt to which no message was sent yet."""
    if facts.offset < known.offset:
        return _absent("who reads its terminal is not known yet")
    told = evidence(
        facts, editors=spec.line_editors, pasting=screen.modes.bracketed_paste, pasting_since=known.edits_from
    )
    if not told.reads:
        return _absent(told.why)
    start = len(known.before) if known.before and line.startswith(known.before) else 0
    for at in dict.fromkeys((start, 0)):
        text = line[at:]
        found = spec.line.search(text) if spec.line is not None else None
        if found is None or (found["text"] or "").strip() or found.start() > 0 or len(text) > TEXT_MAX:
            continue
        sign = asks(spec, text) or _asks_above(screen, row)
        if sign is not None:
            return _absent(f"{sign}: it may be a question; if it is the prompt, say so with `prompt`")
        why = f"a prompt by its sign; {told.why}"
        return ComposerState("empty", "", row, text, learned=False, why=why)
    return _absent(f"no prompt's sign at the cursor; {told.why}")


def before_cursor(screen: ScreenSnapshot) -> str:
    """Returns the text on the cursor's line before the cursor."""
    row, line = cursor_line(screen)
    return line[: _cursor_in(screen, row, line)]


def echoes(screen: ScreenSnapshot, prompt: str, message: str) -> bool:
    """Returns True if `message` stands after `prompt` on the screen, which shows that it is read there."""
    first = message.lstrip().partition("\n")[0].strip()[:ECHO_CHARS]
    shown = re.compile(rf"{re.escape(prompt.rstrip())}\s*{re.escape(first)}")
    return bool(first) and any(shown.search(text) for text in screen.text().split("\n"))


def _cursor_in(screen: ScreenSnapshot, row: int, line: str) -> int:
    """Returns the cursor's place in `line`, which begins in `row`."""
    wanted = (screen.cursor[0] - row) * screen.cols + screen.cursor[1]
    column = 0
    for at, character in enumerate(line):
        if column >= wanted:
            return at
        if not unicodedata.combining(character):
            column += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return len(line)
