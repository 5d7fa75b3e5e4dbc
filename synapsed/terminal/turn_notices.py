"""What a program's own chrome says of a turn: that it failed, that it was interrupted. Pure.

Such words stay on the screen when the next turn has begun. What stands below the turn's message is of this turn; where
the message is not to be seen (a placeholder stands for it, a character is shown as another), the marks that were there
when it was submitted are not.
"""

import re
from collections.abc import Iterator, Sequence

from synapsed.profiles.profile import Profile
from synapsed.terminal.answer import position_below
from synapsed.terminal.look import Look

CHROME_ROWS = 40
"""How far up from the bottom the program's own words for an error or an interruption are looked for."""

type Marks = tuple[int, int]
"""How many of an error, and how many of an interruption."""

NONE: Marks = (0, 0)

type Said = tuple[tuple[str, str] | None, bool]
"""An error as (code, words), or None; whether the turn was interrupted."""


def marks_in(profile: Profile, rows: Sequence[str]) -> Marks:
    """The marks on a screen."""
    text = "\n".join(rows[-CHROME_ROWS:])
    return len(_errors(profile, text)), sum(1 for _ in _interruptions(profile, text))


def read_chrome(profile: Profile, rows: Sequence[str], message: str, old: Marks = NONE) -> Said:
    """What is said below `message`, as it was typed. `old`: of the marks on the screen so many, from the top, are of
    earlier turns; they count where the message is not to be seen."""
    rows = rows[-CHROME_ROWS:]
    below = position_below(rows, message, profile.answer.start)
    text = "\n".join(rows[below or 0 :])
    errors, interruptions = (0, 0) if below is not None else old
    starts = _errors(profile, text)[errors:]
    error = _error(profile, text[starts[0] :]) if starts else None
    return error, len(list(_interruptions(profile, text))) > interruptions


def refused_below(profile: Profile, rows: Sequence[str], message: str) -> str | None:
    """The words with which a hook of the person's refused `message`: they stand in the place of an answer. None where
    they do not."""
    pattern, start = profile.delivery.refused, profile.answer.start
    below = position_below(rows, message, start) if pattern is not None else None
    if pattern is None or start is None or below is None:
        return None
    first = next((n for n in range(below, len(rows)) if start.search(rows[n])), len(rows))
    found = pattern.match("\n".join(rows[first:]))
    return "\n".join(line.strip() for line in found["text"].splitlines()).strip() if found is not None else None


def said_of_turn(profile: Profile, look: Look, message: str, old: Marks = NONE) -> Said:
    """What is said of the turn of `message`. Of one that ended well, as the program's status record has it, nothing:
    what reads like that is the answer."""
    if look.record == "done":
        return None, False
    error, interrupted = read_chrome(profile, look.screen.lines, message, old)
    if error is None and look.record == "error":
        error = ("MODEL_ERROR", "the program reports an error")
    return error, interrupted


def _errors(profile: Profile, text: str) -> list[int]:
    """Where in `text` the program's words for an error begin. The same words may match several patterns."""
    return sorted({match.start() for spec in profile.error for match in spec.pattern.finditer(text)})


def _error(profile: Profile, text: str) -> tuple[str, str] | None:
    """The first pattern that `text` has counts: they stand in the order of what they say."""
    for spec in profile.error:
        if (match := spec.pattern.search(text)) is not None:
            return spec.code, match.group().strip()
    return None


def _interruptions(profile: Profile, text: str) -> Iterator[re.Match[str]]:
    pattern = profile.interrupt.screen
    return pattern.finditer(text) if pattern is not None else iter(())
