"""Decides by the screen and by channels if the program has taken a turn's message: finds the message in the composer
(the program's input line) or elsewhere, and assigns the channels' reports to turns. Pure.

A composer without the message proves little: a program that ends its start-up draws its composer again, empty for a
moment, and then with the former text. So the message, if it stands in the composer and was not proved to be taken, is
still synapsed's own.

===============================  =================  ==========================
the message in the composer      proved to be taken  not proved to be taken
===============================  =================  ==========================
stands there again, was away     it was given back   it is untaken, and ours
stands there, never left         it is drawn late    it is untaken, and ours
is hidden for a moment           no conclusion       no conclusion yet
is not there                     no conclusion       wait for a sign
===============================  =================  ==========================
"""

import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from synapsed.model.agent import Activity
from synapsed.model.facts import ChannelFact, PromptAccepted, TurnEnded
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import Composer
from synapsed.pty.turn_types import BEFORE_SUBMISSION, OWN_SOURCES, Phase, Seen, TurnState, works
from synapsed.shared.regex import regex
from synapsed.terminal.answer import anchor_of, shows
from synapsed.terminal.delivery import Typed, squeezed
from synapsed.terminal.look import Look

HIDDEN_S = 1.0
"""Seconds after which a composer that cannot be seen is not just being drawn again."""

ROW_KNOWN_BY = 30
"""Number of characters, without blanks, by which the first row of a wrapped message is recognised."""

FOUND_BY = range(12, 20)
"""Least and largest number of characters, without blanks, by which a message is found after other text."""

_WORD = regex(r"\w")


class MessageInComposer:
    """The message in the composer. `text` is the typed text; `told`: a side channel reports each prompt taken."""

    def __init__(self, profile: Profile, text: str, *, told: bool) -> None:
        self._line_oriented = is_line_oriented(profile)
        self._text = text
        self._told = told
        self._stood_at: float | None = None
        """Time when the message was last seen in the composer; None once the composer was seen without it."""

    def submitted(self, now: float) -> None:
        """Notes that the submit key is about to be pressed: the message is in the composer."""
        self._stood_at = now

    def note(self, seen: Seen, state: TurnState) -> None:
        """Notes in `state` if the composer is seen without the message, and if the program then works."""
        if seen.composer == "draft" and self.holds(seen.text, state):
            self._stood_at = seen.now
        elif seen.composer != "absent":
            self._stood_at, state.left = None, True
            state.worked_without = state.worked_without or (seen.composer == "empty" and works(seen))

    def is_taken(self, seen: Seen, state: TurnState) -> bool:
        """Returns True if it is proved that the program took the message: it has reported so or, if it has no such
        reports, has shown the message elsewhere. If a person is at the terminal, who may have stopped the turn at once,
        work while the composer was without the message is a proof, too."""
        if state.taken or not state.left:
            return state.taken
        elsewhere = state.located and (seen.person or not self._told)
        return elsewhere or (state.worked_without and seen.person)

    def is_untaken(self, seen: Seen, state: TurnState) -> bool:
        """Returns True if the message is in the composer, and never left it or is not proven to be taken."""
        if not state.shown or (state.left and self.is_taken(seen, state)):
            return False
        if seen.composer == "draft":
            return self.holds(seen.text, state)
        hidden = seen.composer == "absent" and not self._line_oriented and self._stood_at is not None
        return hidden and seen.now < (self._stood_at or 0.0) + HIDDEN_S

    def is_given_back(self, seen: Seen, state: TurnState) -> bool:
        """Returns True if the program took the message, rests, and has the message in its composer again: programs put
        it back if they are stopped before their first words. The text is not a person's draft, and it would delay the
        next messages."""
        rests = state.busy_seen and seen.verdict.settled and seen.composer == "draft"
        stands = rests and state.left and bool(state.shown) and self.holds(seen.text, state)
        return stands and self.is_taken(seen, state)

    def is_returned(self, seen: Seen, state: TurnState) -> bool:
        """Returns True if only a side channel says that the turn runs, the channel has reported that the program took
        the message, and the message is in the composer again: some versions of programs do not report the end of a turn
        that was stopped before its first words."""
        alone = seen.verdict.activity is Activity.BUSY and seen.verdict.source not in OWN_SOURCES
        return alone and state.taken and seen.composer == "draft" and self.holds(seen.text, state)

    def stands_behind_other(self, composer: str) -> bool:
        """Returns True if that row of a composer has other text, and the message after it: a program that was stopped
        may put back an earlier message just before ours is typed. Submitted, both would be one message."""
        first, row = squeezed(self._text.strip().split("\n")[0])[: FOUND_BY.stop], squeezed(composer)
        before, found, _ = row.partition(first)
        if self._line_oriented or len(first) < FOUND_BY.start or not found or _WORD.search(before) is None:
            return False
        return row not in squeezed(self._text)  # a later line of the message may quote its first line

    def stands_twice(self, composer: str) -> bool:
        """Returns True if that row of a composer has the message twice: the first paste has arrived after all."""
        row = masked(squeezed(composer))
        half, odd = divmod(len(row), 2)
        return half >= FOUND_BY.start and not odd and row[:half] == row[half:]

    def holds(self, composer: str, state: TurnState) -> bool:
        """Returns True if a composer with this text in its row has the message or its placeholder, alone."""
        return is_text_of(self._text, composer, shown=state.shown)


def is_line_oriented(profile: Profile) -> bool:
    """Returns True if the program is line-oriented: the next prompt at the cursor shows that it took the last line. (In
    a full-screen program, the composer is empty as soon as the message is submitted.)"""
    return profile.composer.at_cursor and profile.answer.mode == "lines"


def masked(text: str) -> str:
    """Returns the text with its numbers masked: a placeholder's number may differ when the text is put back."""
    return re.sub(r"\d+", "#", text)


def is_text_of(text: str, composer: str, *, shown: str) -> bool:
    """Returns True if a composer with `composer` in its row has `text`, or the masked `shown` for it, alone."""
    if shown and masked(composer) == shown:
        return True
    first, row = squeezed(text.strip().split("\n")[0]), squeezed(composer)
    wrapped = len(row) >= ROW_KNOWN_BY and first.startswith(row)
    return bool(row) and (row == first or wrapped)


class TurnReports:
    """Assigns a channel's reports to turns: a program that was given several prompts reports about all of them, with
    turn ids of its own if it has any."""

    def __init__(self) -> None:
        self._others: set[str] = set()
        """Ids of other prompts' turns."""

    def is_younger(self, fact: ChannelFact, state: TurnState) -> bool:
        """Returns True if the fact is from after the message's submission: it may be of this turn."""
        if state.typings > 0 and state.phase in (Phase.PREPARED, Phase.SETTLING):  # the message was typed before
            submitted = state.submit_ns > 0 and isinstance(fact, PromptAccepted)
        else:
            submitted = state.submitted and state.phase not in BEFORE_SUBMISSION
        return submitted and fact.at_ns >= state.submit_ns

    def is_prompt_of(self, fact: PromptAccepted, typed: Typed, state: TurnState) -> bool:
        """Returns True if the accepted prompt is the one that was `typed`, and then keeps its turn's id in `state`."""
        if typed.may_be(fact.prompt):
            state.turn = state.turn or fact.turn
            return True
        if fact.turn is not None and fact.turn != state.turn:
            self._others.add(fact.turn)
        return False

    def is_mine(self, fact: ChannelFact, typed: Typed, state: TurnState) -> bool:
        """Returns True if the fact may be of this turn, as every accepted prompt may."""
        if isinstance(fact, TurnEnded) and not typed.may_be(fact.prompt):
            return False
        known = None not in (fact.turn, state.turn)
        same = fact.turn == state.turn if known else fact.turn not in self._others
        return isinstance(fact, PromptAccepted) or same


WRAPPED_FROM = 12
"""Least number of letters and digits of a row that is also found if the program has wrapped it differently."""


class Misreading:
    """Finds, in one launch, that the profile looks for the program's composer in the wrong place: after a paste the
    composer seems to be empty, and new text is elsewhere. `kept` is the value of `left` that the last daemon has kept.

    Once the composer has shown typed text, its place is proven for the launch: then only the message's own words count.
    Before that, any new row with words may be the message, since programs show it in different forms. Such a message is
    not pasted again, nor is another one typed while it is on the screen (`readiness`).
    """

    def __init__(self, spec: Composer, kept: Any = None) -> None:
        self._is_searched = spec.line is not None and not spec.at_cursor
        self._proven = False
        self.left = [row for row in kept if isinstance(row, str)] if isinstance(kept, list) else []
        """The words of rows that appeared with a paste: of the rows that show the beginning of the message; if there is
        none, of all new rows."""

    def before(self, look: Look) -> list[int]:
        """Returns a checksum of each row of `look`, the screen before a message is pasted."""
        return [zlib.crc32(words.encode()) for words, _ in _rows(look)] if self._is_searched else []

    def proven(self) -> None:
        """Notes that the composer has shown typed text."""
        self._proven, self.left = True, []

    def found(self, look: Look, message: str, before: Sequence[int] | None) -> bool:
        """Returns True if `message` was pasted and may be shown elsewhere than in the composer; `left` then has its
        known rows. `before` are the rows from before the paste, None if unknown."""
        if not self._is_searched or look.composer.state != "empty":
            return False
        old, first = Counter(before), anchor_of(message)
        new, shown = list[str](), list[str]()
        for words, line in _rows(look):
            old[row := zlib.crc32(words.encode())] -= 1
            if old[row] < 0:
                new.append(words)
                shown += [words] if shows(line, first) else []
        self.left = shown if self._proven or before is None else shown or new
        return bool(self.left or (new and not self._proven))

    def stands(self, look: Look) -> bool:
        """Returns True if a row of `left` is on the screen."""
        rows = [words for words, _ in _rows(look)] if self.left else []
        text = "".join(rows)
        return any(row in rows or (len(row) >= WRAPPED_FROM and row in text) for row in self.left)


def _rows(look: Look) -> Iterator[tuple[str, str]]:
    """Yields, for each row that has words, the words (numbers masked) and the row."""
    for line in look.screen.lines:
        if words := masked("".join(filter(str.isalnum, line))):
            yield words, line
