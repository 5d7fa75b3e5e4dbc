"""Signs of a program's turns: the open turn, by its side channels, and a request to stop it; and messages in its own
chrome (the fixed parts of its screen) that a turn failed, or was interrupted. Pure. `verdict` has the signs on the
screen that an open turn is over.

The words of such a message stay on the screen when the next turn has begun. Words below the turn's message belong to
this turn; if the message is not on the screen (a placeholder stands for it, a character is shown as another), the marks
that were on the screen when it was submitted belong to earlier turns.
"""

import re
from collections.abc import Iterator, Sequence

from synapsed.model.facts import ChannelFact, PromptAccepted, TurnAnswered, TurnEnded, TurnFailed, TurnInterrupted
from synapsed.profiles.profile import Profile
from synapsed.terminal.answer import position_below
from synapsed.terminal.look import Look

REPORTED_LATE_S = 5.0
"""Seconds after a request to stop in which a prompt that is reported as accepted may belong to the stopped turn: a hook
takes its time to start on a busy machine."""


class OpenTurn:
    """The open turn of one launch of a program."""

    def __init__(self) -> None:
        self.channel: str | None = None
        """The channel that reported the turn's beginning; None while no turn is open."""
        self.lost_ns: int | None = None
        """Time at which the open turn's end was found lost (CLOCK_MONOTONIC); None while its channel is believed."""
        self.stop_asked_at: float | None = None
        """Time at which the turn was asked to stop."""

    def told(self, fact: ChannelFact) -> None:
        """Takes a report of a side channel."""
        if isinstance(fact, PromptAccepted):
            self.opened(fact.channel, fact.at_ns)
        elif isinstance(fact, TurnAnswered | TurnEnded | TurnFailed | TurnInterrupted):
            self.closed()

    def opened(self, channel: str, at_ns: int) -> None:
        """Notes that `channel` reported at `at_ns` that the program had taken a message."""
        if self.lost_ns is not None and at_ns < self.lost_ns:
            return  # a late report, of the turn that is over
        self.channel = channel
        self.lost_ns = None
        if self.stop_asked_at is not None and at_ns > (self.stop_asked_at + REPORTED_LATE_S) * 1e9:
            self.stop_over()

    def closed(self) -> None:
        """Notes that a channel reported the end of the program's turn."""
        self.channel = None

    def asked_to_stop(self, now: float) -> None:
        """Notes that the keys to stop the running turn were typed."""
        self.stop_asked_at = now

    def stop_over(self) -> None:
        """Notes that the turn that was asked to stop has ended, or goes on."""
        self.stop_asked_at = None


CHROME_ROWS = 40
"""Rows from the bottom that are searched for the program's own words for an error or an interruption."""

type Marks = tuple[int, int]
"""Number of error marks, and number of interruption marks."""

NONE: Marks = (0, 0)

type Said = tuple[tuple[str, str] | None, bool]
"""An error as (code, words), or None; and True if the turn was interrupted."""


def marks_in(profile: Profile, rows: Sequence[str]) -> Marks:
    text = "\n".join(rows[-CHROME_ROWS:])
    return len(_errors(profile, text)), sum(1 for _ in _interruptions(profile, text))


def read_chrome(profile: Profile, rows: Sequence[str], message: str, old: Marks = NONE) -> Said:
    """Returns the messages below `message`, as it was typed. `old`: number of marks on the screen, from the top, that
    belong to earlier turns; it is used if the message is not on the screen."""
    rows = rows[-CHROME_ROWS:]
    below = position_below(_without_chrome(profile, rows), message, profile.answer.start)
    text = "\n".join(rows[below or 0 :])
    errors, interruptions = (0, 0) if below is not None else old
    starts = _errors(profile, text)[errors:]
    error = _error(profile, text[starts[0] :]) if starts else None
    return error, len(list(_interruptions(profile, text))) > interruptions


def _without_chrome(profile: Profile, rows: Sequence[str]) -> list[str]:
    """Returns the rows, blanks for those that begin with the program's own words, which may have a message in them."""
    text = "\n".join(rows)
    marks = [*_errors(profile, text), *(match.start() for match in _interruptions(profile, text))]
    before = [text[:at].split("\n") for at in marks]
    chrome = {len(lines) - 1 for lines in before if not lines[-1].strip()}
    return ["" if n in chrome else row for n, row in enumerate(rows)]


def refused_below(profile: Profile, rows: Sequence[str], message: str) -> str | None:
    """Returns the words with which a person's hook refused `message`, in the place of an answer, or None."""
    pattern, start = profile.delivery.refused, profile.answer.start
    below = position_below(rows, message, start) if pattern is not None else None
    if pattern is None or start is None or below is None:
        return None
    first = next((n for n in range(below, len(rows)) if start.search(rows[n])), len(rows))
    found = pattern.match("\n".join(rows[first:]))
    return "\n".join(line.strip() for line in found["text"].splitlines()).strip() if found is not None else None


def said_of_turn(profile: Profile, look: Look, message: str, old: Marks = NONE) -> Said:
    """Returns the messages about the turn of `message`. A turn that ended well by the program's status record has no
    messages: similar words then belong to the answer."""
    if look.record == "done":
        return None, False
    error, interrupted = read_chrome(profile, look.screen.lines, message, old)
    if error is None and look.record == "error":
        error = ("MODEL_ERROR", "the program reports an error")
    return error, interrupted


def _errors(profile: Profile, text: str) -> list[int]:
    """Returns the places in `text` where the program's words for an error begin. Some may match several patterns."""
    return sorted({match.start() for spec in profile.error for match in spec.pattern.finditer(text)})


def _error(profile: Profile, text: str) -> tuple[str, str] | None:
    """Returns the error of the first matching pattern: the patterns are in the order of their meaning."""
    for spec in profile.error:
        if (match := spec.pattern.search(text)) is not None:
            return spec.code, match.group().strip()
    return None


def _interruptions(profile: Profile, text: str) -> Iterator[re.Match[str]]:
    pattern = profile.interrupt.screen
    return pattern.finditer(text) if pattern is not None else iter(())
