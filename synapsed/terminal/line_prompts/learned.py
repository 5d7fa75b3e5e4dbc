"""Learned prompts: the text before a line that a program took, and its variable parts. Pure.

Digits vary (a counter, the time), and so do the names of days and months, AM and PM; the folder, with a branch or a
status behind it; and an environment in parentheses before all of it. The rest has to be the same, letter by letter.
"""

import re
from functools import lru_cache
from pathlib import PurePath
from typing import Literal, NamedTuple

from synapsed.shared.regex import regex
from synapsed.terminal.line_prompts.evidence import TerminalFacts

TEXT_MAX = 200
"""Characters of the longest text that is taken for a prompt."""

KEPT_MAX = 16
"""Prompts of one agent that are kept; beyond that the oldest are forgotten."""

FOLDERS_MAX = 2
"""Folders of a prompt that vary, the last ones of it: with many, the time of a search would have no bound."""

_STATUS = r" ?(?:\w{1,3}:)?[(\[][^()\[\]\n?]{1,80}[)\]](?:\*| ?[✗✘✔✓±●])?"
"""A branch or a status in brackets: `(main)`, `[main]*`, `git:(main) ✗`."""
FOLDER = rf"(?:[~/][^\n?()\[\]|<>]{{0,120}}?|[\w.@+-]{{1,60}})(?:{_STATUS})?"
"""A path, or the last part of one; behind it a status."""
_DATES = ("Mon|Tue|Wed|Thu|Fri|Sat|Sun", "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec", "AM|PM", "am|pm")
"""Words of dates and times, of which any other of its kind may stand in the place of one."""
_PARTS = regex(
    rf"(?<![^\W\d])(?P<date>{'|'.join(_DATES)})(?!\w)|"
    r"(?P<folder>(?<![\w/])~[\w.-]*(?:/[^\s:$#%>❯›»λ\])]*)?|(?<![\w/~])/[^\s:$#%>❯›»λ\])]*)|(?P<digits>\d+)|(?P<other>.)",
    re.DOTALL,
)
_BEHIND_FOLDER = regex(_STATUS)
_ENVIRONMENT = regex(r"\([\w.+-]{1,40}\) (?=\S)")
_BLANKS = r"[ \u00a0]*"


class LearnedPrompt(NamedTuple):
    """A prompt: `program` is the program that shows it, and `mode` the terminal's mode at that time; None for any
    program, and for either mode."""

    text: str
    """Its text when it was learned, without the blanks at its end."""
    pattern: str
    program: str | None = None
    mode: Literal["lines", "keys"] | None = None
    confirmed: bool = True
    """True if a line was taken there, or a person said so; else it only recognises the text before a draft."""

    def of(self, facts: TerminalFacts) -> bool:
        """Returns True if it may be the prompt of the program in the foreground."""
        return None in (self.program, facts.program) or self.program == facts.program


def learn(text: str, facts: TerminalFacts, *, confirmed: bool = True) -> LearnedPrompt:
    """Returns the prompt `text` of the program that has the terminal now."""
    text = text.rstrip()
    return LearnedPrompt(text, pattern_of(text, facts.cwd), facts.program, facts.mode, confirmed)


def said(text: str, cwd: str | None) -> LearnedPrompt:
    """Returns the prompt that a person gave, for any program."""
    text = text.rstrip()
    return LearnedPrompt(text, pattern_of(text, cwd))


def pattern_of(text: str, cwd: str | None) -> str:
    """Returns an expression for the prompt `text`, shown in the folder `cwd`."""
    env = _ENVIRONMENT.match(text)
    parts = [rf"(?:{_ENVIRONMENT.pattern})?"] if text else []
    at = env.end() if env is not None else 0
    name = PurePath(cwd).name if cwd is not None else ""
    folders: list[tuple[int, str]] = []
    while at < len(text):
        start = at
        if name and text.startswith(name, at) and _is_word(text, at, at + len(name)):
            at += len(name)
            folder = True
        else:
            found = _PARTS.match(text, at)
            assert found is not None
            at, folder = found.end(), found["folder"] is not None
            if not folder:
                parts.append(_varying(found))
        if folder:
            behind = _BEHIND_FOLDER.match(text, at)
            at = behind.end() if behind is not None else at
            folders.append((len(parts), re.escape(text[start:at])))
            parts.append(FOLDER)
    for place, same in folders[:-FOLDERS_MAX]:
        parts[place] = same
    end = f"(?!{re.escape(text[-1:])})" if text else ""  # `>` does not begin `>>>`
    pattern = f"{''.join(parts)}{end}{_BLANKS}"
    return pattern if compiled(pattern).fullmatch(text) else re.escape(text) + end + _BLANKS


def _varying(found: re.Match[str]) -> str:
    """Returns an expression for a part of a prompt that is no folder."""
    if found["date"] is not None:
        return f"(?:{next(words for words in _DATES if found['date'] in words.split('|'))})"
    return r"\d+" if found["digits"] is not None else re.escape(found["other"])


def _is_word(text: str, start: int, end: int) -> bool:
    around = (text[start - 1 : start], text[end : end + 1])
    return not any(each.isalnum() or (each and each in "_-./") for each in around)


def add(known: tuple[LearnedPrompt, ...], one: LearnedPrompt) -> tuple[LearnedPrompt, ...]:
    """Returns `known` with `one`, which counts as the newest."""
    same = (one.pattern, one.program, one.mode)
    return (*(each for each in known if (each.pattern, each.program, each.mode) != same), one)[-KEPT_MAX:]


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
