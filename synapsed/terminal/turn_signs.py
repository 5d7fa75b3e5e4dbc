"""What a program tells of its turns: which one is open, by its side channels, and whether that was asked to stop; and
in its own chrome that one failed, or was interrupted. Pure: what the screen says against an open turn is `verdict`'s.

Such words stay on the screen when the next turn has begun. What stands below the turn's message is of this turn; where
the message is not to be seen (a placeholder stands for it, a character is shown as another), the marks that were there
when it was submitted are not.
"""

import re
from collections.abc import Iterator, Sequence

from synapsed.model.facts import ChannelFact, PromptAccepted, TurnAnswered, TurnEnded, TurnFailed, TurnInterrupted
from synapsed.profiles.profile import Profile
from synapsed.terminal.answer import position_below
from synapsed.terminal.look import Look

REPORTED_LATE_S = 5.0
"""A prompt that is reported as accepted so soon after its turn was asked to stop may be of that turn: a hook takes its
time to start on a busy machine."""


class OpenTurn:
    """The open turn of one launch of a program."""

    def __init__(self) -> None:
        self.channel: str | None = None
        """The one that told that a turn began; None while none is open."""
        self.lost_ns: int | None = None
        """When the end of the open turn was found to be lost (CLOCK_MONOTONIC); None while its channel is believed."""
        self.stop_asked_at: float | None = None
        """When the turn was asked to stop."""

    def told(self, fact: ChannelFact) -> None:
        """A side channel reported."""
        if isinstance(fact, PromptAccepted):
            self.opened(fact.channel, fact.at_ns)
        elif isinstance(fact, TurnAnswered | TurnEnded | TurnFailed | TurnInterrupted):
            self.closed()

    def opened(self, channel: str, at_ns: int) -> None:
        """`channel` reported at `at_ns` that the program had taken a prompt."""
        if self.lost_ns is not None and at_ns < self.lost_ns:
            return  # told late: of the turn that is over
        self.channel = channel
        self.lost_ns = None
        if self.stop_asked_at is not None and at_ns > (self.stop_asked_at + REPORTED_LATE_S) * 1e9:
            self.stop_over()

    def closed(self) -> None:
        """A channel reported that the program's turn is over."""
        self.channel = None

    def asked_to_stop(self, now: float) -> None:
        """What stops the running turn was typed."""
        self.stop_asked_at = now

    def stop_over(self) -> None:
        """The turn that was asked to stop has ended, or goes on."""
        self.stop_asked_at = None


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
    below = position_below(_without_chrome(profile, rows), message, profile.answer.start)
    text = "\n".join(rows[below or 0 :])
    errors, interruptions = (0, 0) if below is not None else old
    starts = _errors(profile, text)[errors:]
    error = _error(profile, text[starts[0] :]) if starts else None
    return error, len(list(_interruptions(profile, text))) > interruptions


def _without_chrome(profile: Profile, rows: Sequence[str]) -> list[str]:
    """Returns the rows, blank those that begin with the program's own words, which may have a short message in them."""
    text = "\n".join(rows)
    marks = [*_errors(profile, text), *(match.start() for match in _interruptions(profile, text))]
    before = [text[:at].split("\n") for at in marks]
    chrome = {len(lines) - 1 for lines in before if not lines[-1].strip()}
    return ["" if n in chrome else row for n, row in enumerate(rows)]


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
