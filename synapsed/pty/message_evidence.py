"""Evidence of the fate of a turn's message: its place, in the composer or elsewhere, and the turn of a channel's
report. Pure.

A composer that was seen without the message says little: a program that has come to the end of its start-up draws it
again, empty for a moment, and then with its former text. So a text in it that was not proved to be taken is ours.

==========================  ================  =============================
the message                 it was taken      it was not proved to be taken
==========================  ================  =============================
stands there, and was away  it is given back  it is untaken, and ours
never left                  it is drawn late  it is untaken, and ours
is hidden for a moment      nothing           nothing yet
is not there                nothing           a sign is waited for
==========================  ================  =============================
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
from synapsed.terminal.answer import anchor_of, shows
from synapsed.terminal.delivery import Typed, squeezed
from synapsed.terminal.look import Look

HIDDEN_S = 1.0
"""A composer that is out of sight for so long is not only being drawn."""

ROW_KNOWN_BY = 30
"""Number of characters, without blanks, of a wrapped message's first row by which it is recognised."""

FOUND_BY = range(12, 20)
"""Numbers of characters, without blanks, of a message's first line by which it is found behind other text."""

_WORD = re.compile(r"\w")


class MessageInComposer:
    """The message in the composer. `text` is the typed text; `told`: a side channel reports each prompt that the
    program takes."""

    def __init__(self, profile: Profile, text: str, *, told: bool) -> None:
        self._line_oriented = is_line_oriented(profile)
        self._text = text
        self._told = told
        self._stood_at: float | None = None
        """Time when the message was last seen in the composer; None after it was seen without it."""

    def submitted(self, now: float) -> None:
        """Notes that the submit key is about to be pressed: the message is there."""
        self._stood_at = now

    def note(self, seen: Seen, state: TurnState) -> None:
        """Keeps in `state` that the composer was seen without it, and the program at work meanwhile."""
        if seen.composer == "draft" and self.holds(seen.text, state):
            self._stood_at = seen.now
        elif seen.composer != "absent":
            self._stood_at, state.left = None, True
            state.worked_without = state.worked_without or (seen.composer == "empty" and works(seen))

    def is_taken(self, seen: Seen, state: TurnState) -> bool:
        """Returns True if it is proved that the program took it: it has reported that or, without such reports, has
        shown the message elsewhere. If a person is there, who may have stopped it at once, work without it is proof,
        too."""
        if state.taken or not state.left:
            return state.taken
        elsewhere = state.located and (seen.person or not self._told)
        return elsewhere or (state.worked_without and seen.person)

    def is_untaken(self, seen: Seen, state: TurnState) -> bool:
        """Returns True if it is where it was when the submit key was pressed: it never left, or there is no proof that
        it was taken from there."""
        if not state.shown or (state.left and self.is_taken(seen, state)):
            return False
        if seen.composer == "draft":
            return self.holds(seen.text, state)
        hidden = seen.composer == "absent" and not self._line_oriented and self._stood_at is not None
        return hidden and seen.now < (self._stood_at or 0.0) + HIDDEN_S

    def is_given_back(self, seen: Seen, state: TurnState) -> bool:
        """Returns True if the program took the message, rests, and has the message in its composer again: it puts it
        back if it is stopped before its first words. The message is not a person's draft, and would delay the next
        ones."""
        rests = state.busy_seen and seen.verdict.settled and seen.composer == "draft"
        stands = rests and state.left and bool(state.shown) and self.holds(seen.text, state)
        return stands and self.is_taken(seen, state)

    def is_returned(self, seen: Seen, state: TurnState) -> bool:
        """Returns True if a side channel alone holds the turn open, it reported that the program took the message, and
        the message is in the composer again: some versions send no report of a turn that was stopped before its first
        words."""
        alone = seen.verdict.activity is Activity.BUSY and seen.verdict.source not in OWN_SOURCES
        return alone and state.taken and seen.composer == "draft" and self.holds(seen.text, state)

    def stands_behind_other(self, composer: str) -> bool:
        """Returns True if that row of a composer has other text, and then the message: a program that was stopped may
        put back an earlier message at that very moment. If submitted, both would be one message."""
        first, row = squeezed(self._text.strip().split("\n")[0])[: FOUND_BY.stop], squeezed(composer)
        before, found, _ = row.partition(first)
        if self._line_oriented or len(first) < FOUND_BY.start or not found or _WORD.search(before) is None:
            return False
        return row not in squeezed(self._text)  # a later line of it may quote the first

    def stands_twice(self, composer: str) -> bool:
        """Returns True if that row of a composer has it two times: the first paste has come after all."""
        row = masked(squeezed(composer))
        half, odd = divmod(len(row), 2)
        return half >= FOUND_BY.start and not odd and row[:half] == row[half:]

    def holds(self, composer: str, state: TurnState) -> bool:
        """Returns True if a composer with this text in its row holds the message, and nothing else. A message shown as
        a placeholder may be put back in full."""
        return is_text_of(self._text, composer, shown=state.shown)


def is_line_oriented(profile: Profile) -> bool:
    """Returns True if the next prompt at the cursor shows that the program took the last line; a full-screen program's
    composer is empty as soon as it has been sent."""
    return profile.composer.at_cursor and profile.answer.mode == "lines"


def masked(text: str) -> str:
    """Returns the text with its numbers masked: a long paste is shown as a placeholder with a number, which differs
    when it comes back."""
    return re.sub(r"\d+", "#", text)


def is_text_of(text: str, composer: str, *, shown: str) -> bool:
    """Returns True if a composer with that in its row holds `text`, which it showed as `shown` (masked), and nothing
    else."""
    if shown and masked(composer) == shown:
        return True
    first, row = squeezed(text.strip().split("\n")[0]), squeezed(composer)
    wrapped = len(row) >= ROW_KNOWN_BY and first.startswith(row)
    return bool(row) and (row == first or wrapped)


class TurnReports:
    """Assigns reports to turns: a program that was given several prompts reports all of them, by ids of its own if it
    has such."""

    def __init__(self) -> None:
        self._others: set[str] = set()
        """Ids of other prompts' turns."""

    def is_younger(self, fact: ChannelFact, state: TurnState) -> bool:
        """Returns True if the fact is from after the submission: it may be of this turn."""
        if state.typings > 0 and state.phase in (Phase.PREPARED, Phase.SETTLING):  # of this message, typed before
            submitted = state.submit_ns > 0 and isinstance(fact, PromptAccepted)
        else:
            submitted = state.submitted and state.phase not in BEFORE_SUBMISSION
        return submitted and fact.at_ns >= state.submit_ns

    def is_prompt_of(self, fact: PromptAccepted, typed: Typed, state: TurnState) -> bool:
        """Returns True if the accepted prompt is the one that was `typed`; its turn's id is kept in `state` then."""
        if typed.may_be(fact.prompt):
            state.turn = state.turn or fact.turn
            return True
        if fact.turn is not None and fact.turn != state.turn:
            self._others.add(fact.turn)
        return False

    def is_mine(self, fact: ChannelFact, typed: Typed, state: TurnState) -> bool:
        """Returns True if it is of this turn; every accepted prompt may be."""
        if isinstance(fact, TurnEnded) and not typed.may_be(fact.prompt):
            return False
        known = None not in (fact.turn, state.turn)
        same = fact.turn == state.turn if known else fact.turn not in self._others
        return isinstance(fact, PromptAccepted) or same


WRAPPED_FROM = 12
"""Number of letters and digits in a row from which on it is also found if the program has wrapped it in another way."""


class Misreading:
    """Evidence, in one launch, of a profile that looks for its program's composer in the wrong place: the composer
    seems to be empty after a paste, and new text is elsewhere. `kept` is the value of `left` that the last daemon has
    kept.

    A place that has shown typed text is proven for the launch: then only the message's own words count. Before that any
    new row with words may be the message, in whatever form the program shows it. It is not pasted again, nor is
    anything after it while it is there (`readiness`).
    """

    def __init__(self, spec: Composer, kept: Any = None) -> None:
        self._is_searched = spec.line is not None and not spec.at_cursor
        self._proven = False
        self.left = [row for row in kept if isinstance(row, str)] if isinstance(kept, list) else []
        """The words of rows that came with a paste: those that show how it begins; if no row shows that, all that are
        known to be new."""

    def before(self, look: Look) -> list[int]:
        """Returns the rows of `look`, into which a message is about to be pasted, each as a number."""
        return [zlib.crc32(words.encode()) for words, _ in _rows(look)] if self._is_searched else []

    def proven(self) -> None:
        """Notes that the composer has shown typed text."""
        self._proven, self.left = True, []

    def found(self, look: Look, message: str, before: Sequence[int] | None) -> bool:
        """Returns True if `message`, which was pasted into the rows `before` (None if they are not known), may be
        elsewhere than in the composer; its known rows are then in `left`."""
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
        """Returns True if any of what is `left` is on the screen."""
        rows = [words for words, _ in _rows(look)] if self.left else []
        text = "".join(rows)
        return any(row in rows or (len(row) >= WRAPPED_FROM and row in text) for row in self.left)


def _rows(look: Look) -> Iterator[tuple[str, str]]:
    """Yields the words of each row that has any, with masked numbers, and the row."""
    for line in look.screen.lines:
        if words := masked("".join(filter(str.isalnum, line))):
            yield words, line
