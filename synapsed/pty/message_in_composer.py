"""A turn's message in the program's composer: whether it stands there, was taken from it, or was given back. Pure."""

import re

from synapsed.profiles import Profile
from synapsed.pty.turn_types import Seen, TurnState
from synapsed.terminal.delivery import squeezed

HIDDEN_S = 1.0
"""A composer that is out of sight for so long is not only being drawn."""

ROW_KNOWN_BY = 30
"""Characters but for blanks of a wrapped message's first row by which it is known again."""

FOUND_BY = range(12, 20)
"""Of so many characters but for blanks, of a message's first line, it is found behind other text."""

_WORD = re.compile(r"\w")


class MessageInComposer:
    """`text` is what was typed."""

    def __init__(self, profile: Profile, text: str) -> None:
        self._line_oriented = is_line_oriented(profile)
        self._text = text
        self._stood_at = 0.0
        """When the message was last seen in the composer."""

    def submitted(self, now: float) -> None:
        """The submit key is about to be pressed: it stands there."""
        self._stood_at = now

    def note(self, seen: Seen, state: TurnState) -> None:
        """Keep in `state` whether the composer was seen without it."""
        if seen.composer == "draft" and self.holds(seen.text, state):
            self._stood_at = seen.now
        elif seen.composer != "absent":
            state.left = True

    def is_untaken(self, seen: Seen, state: TurnState) -> bool:
        """Whether it stands where it stood when the submit key was pressed, and has not been away since."""
        if state.left or not state.shown:
            return False
        if seen.composer == "draft":
            return self.holds(seen.text, state)
        return seen.composer == "absent" and not self._line_oriented and seen.now < self._stood_at + HIDDEN_S

    def is_given_back(self, seen: Seen, state: TurnState) -> bool:
        """Whether the program worked, rests, and the message stands in its composer again: it does so where it is
        stopped before it said anything. The message is not a person's draft, and would keep the next ones waiting."""
        rests = state.busy_seen and seen.verdict.settled and seen.composer == "draft"
        return rests and state.left and bool(state.shown) and self.holds(seen.text, state)

    def stands_behind_other(self, composer: str) -> bool:
        """Whether that row of a composer has other text, and then the message: a program that was stopped may give back
        what it had at that very moment. Submitted, both would be one message."""
        first, row = squeezed(self._text.strip().split("\n")[0])[: FOUND_BY.stop], squeezed(composer)
        before, found, _ = row.partition(first)
        if self._line_oriented or len(first) < FOUND_BY.start or not found or _WORD.search(before) is None:
            return False
        return row not in squeezed(self._text)  # a later line of it may quote the first

    def holds(self, composer: str, state: TurnState) -> bool:
        """Whether a composer with this text in its row holds the message, and nothing else. What was shown as a
        placeholder may be given back in full."""
        return is_text_of(self._text, composer, shown=state.shown)


def is_line_oriented(profile: Profile) -> bool:
    """Whether the next prompt at the cursor shows that the program took the last line; a full-screen program's composer
    is empty as soon as it has been sent."""
    return profile.composer.at_cursor and profile.answer.mode == "lines"


def masked(text: str) -> str:
    """A long paste is shown as a placeholder with a number, which differs when it comes back."""
    return re.sub(r"\d+", "#", text)


def is_text_of(text: str, composer: str, *, shown: str) -> bool:
    """Whether a composer with that in its row holds `text`, which it showed as `shown` (masked), and nothing else."""
    if shown and masked(composer) == shown:
        return True
    first, row = squeezed(text.strip().split("\n")[0]), squeezed(composer)
    wrapped = len(row) >= ROW_KNOWN_BY and first.startswith(row)
    return bool(row) and (row == first or wrapped)
