"""The text of a turn, published in pieces while it runs: from a channel that reports it, the output, or the screen.

A courtesy: pieces are events and nothing else, at most five a second, and bounded; the turn's end neither waits for
them nor looks at them. Text from a screen is published when two looks agree on it, so that half-drawn frames are not.
Pieces go on from each other; if published text turns out to be wrong, the rest is left to the turn's end, which knows
the answer. Another message replaces the one before.
"""

import os.path
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from synapsed.model.agent import Activity
from synapsed.model.facts import AssistantSaid, AssistantSaying, ChannelFact
from synapsed.model.masking import unfinished
from synapsed.profiles.profile import Profile
from synapsed.pty.turn import PtyTurn
from synapsed.pty.turn_types import Phase
from synapsed.terminal.growing_answer import LineText, ScreenText
from synapsed.terminal.look import Look

TOLD_EVERY_S = 0.2
"""Seconds between two pieces of a turn, and between two looks at the screen for them."""

TOLD_MAX = 256 * 1024
"""Characters of all the pieces of one turn; no more are published."""

EARLY_MAX = 512
"""Number of chunks of output that are kept until the start of the turn's is known, and of pieces that a channel reports
before their turn is known, in both cases the last ones: text without its beginning is left to the turn's end."""

EARLY_SIZE = 64 * 1024
"""Bytes of that output, which are read all at once then. It has little more of the turn than the echo of a line break,
and before that the echo of the message."""


_MAY_WORK = frozenset({Phase.SUBMITTED, Phase.WORKING, Phase.READING})
"""Phases in which the very look that is asked for may show that the program works."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of text. `append` false: `text` replaces the earlier text, as it is another message, or the earlier text
    is unknown."""

    text: str
    append: bool


class _Source(Protocol):
    """A source of text. `text` is the known part of the present message, `message` its number; `settled` says that a
    further look would change nothing."""

    @property
    def text(self) -> str: ...

    @property
    def message(self) -> int: ...

    @property
    def settled(self) -> bool: ...


class _Said:
    """Reports of a channel about the present message."""

    settled = True

    def __init__(self) -> None:
        self.text = ""
        self.message = 0
        self._id: str | None = None

    def told(self, fact: AssistantSaying) -> None:
        if fact.message_id != self._id:
            self.message += 1
            self._id, self.text = fact.message_id, ""
        self.text += fact.piece


class _Printed:
    """Output of a line-oriented program since the message was submitted."""

    settled = True
    message = 0

    def __init__(self) -> None:
        self._lines: LineText | None = None
        self._early: deque[tuple[int, bytes]] = deque()
        self._early_size = 0

    @property
    def text(self) -> str:
        """Returns the text without the line break at its end, which belongs to the answer if more follows."""
        return self._lines.text.strip("\n") if self._lines is not None else ""

    def submitted(self, offset: int) -> None:
        if self._lines is None:
            self._lines = LineText(offset)
            for start, data in self._early:
                self.printed(start, data)
            self._early.clear()

    def printed(self, offset: int, data: bytes) -> None:
        if self._lines is not None:
            self._lines.feed(offset, data)
            return
        self._early.append((offset, data))
        self._early_size += len(data)
        while len(self._early) > EARLY_MAX or self._early_size > EARLY_SIZE:
            self._early_size -= len(self._early.popleft()[1])


class _Drawn:
    """Text on the screen, as far as two looks in a row agree on it."""

    def __init__(self, text: ScreenText) -> None:
        self.text = ""
        self.message = 0
        self._screen = text
        self._read = (0, "")

    @property
    def settled(self) -> bool:
        return self._read == (self.message, self.text)

    def seen(self, screen: str, kinds: str | None, cols: int) -> None:
        (number, before), text = self._read, self._screen.read(screen, kinds, cols=cols)
        self._read = (self._screen.message, text)
        if number != self._screen.message:
            return
        both = os.path.commonprefix([before, text])  # noqa: RUF071 - characters are what is meant
        if number != self.message or not self.text.startswith(both):
            self.message, self.text = number, both


class _Both:
    """Reports of a channel, whole lines of them, and more of that from the screen, as far as it is certain."""

    def __init__(self, said: _Said, drawn: _Drawn) -> None:
        self._said = said
        self._drawn = drawn

    @property
    def text(self) -> str:
        return self._drawn.text if self._drawn.text.startswith(self._said.text) else self._said.text

    @property
    def message(self) -> int:
        return self._said.message or 1 + self._drawn.message

    @property
    def settled(self) -> bool:
        return self._drawn.settled


class TurnStream:
    """One turn's text. Pure: `now` is monotonic seconds.

    `begun`: the turn was under way when this was made (the daemon was restarted), and the published text is not known.
    """

    def __init__(self, profile: Profile, message: str, *, begun: bool) -> None:
        self._said = self._printed = self._drawn = None
        source: _Source
        if profile.answer.mode == "lines":
            source = self._printed = _Printed()
        else:
            source = self._drawn = _Drawn(ScreenText(profile.stream, profile.answer, message, begun=begun))
        if profile.stream.source == "channel":
            source = self._said = _Said()
            self._printed = None
            if self._drawn is not None and profile.answer.start is not None:
                source = _Both(self._said, self._drawn)
            else:
                self._drawn = None
        self._source = source
        self._told: str | None = None if begun else ""
        self._message = 0
        """Number of the published message."""
        self._replaced = 0
        """Number of messages that have replaced a published one."""
        self._whole = 0
        """Number of messages of the turn that are known whole."""
        self._begun = begun
        self._due = 0.0
        self._left = TOLD_MAX

    @property
    def reads_output(self) -> bool:
        """Returns True if `printed` wants the output since the submission, all of it."""
        return self._printed is not None

    def submitted(self, offset: int) -> None:
        """Notes that the output from `offset` on is of this turn; may be called again."""
        if self._printed is not None:
            self._printed.submitted(offset)

    def printed(self, offset: int, data: bytes) -> None:
        """Takes the program's output `data` at `offset`."""
        if self._printed is not None and self._left > 0:
            self._printed.printed(offset, data)
            if len(self._printed.text) > TOLD_MAX:
                self._left = 0

    def told(self, fact: ChannelFact) -> None:
        """Takes a report of a channel about this turn."""
        if self._said is not None and isinstance(fact, AssistantSaying) and len(self._said.text) < TOLD_MAX:
            self._said.told(fact)

    def wants_screen(self, now: float) -> bool:
        return self._drawn is not None and now >= self._due and self._left > 0

    def seen(self, screen: str, kinds: str | None = None, *, cols: int = 80) -> None:
        """Takes the text of the screen (wrapped rows joined) while the program works, and its kinds of characters."""
        if self._drawn is not None:
            self._drawn.seen(screen, kinds, cols)

    @property
    def due(self) -> float | None:
        """Returns the time when `take`, or a look at the screen, is worthwhile; None while nothing is open."""
        open_ = not self._source.settled or self._new() is not None
        return self._due if open_ and self._left > 0 else None

    def _new(self, *, whole: bool = False) -> Piece | None:
        text, told = self._source.text, self._told
        if not whole:  # so that a secret is whole in one piece, and can be masked there
            text = text[: len(text) - unfinished(text)]
        if not text:
            return None
        if told is None or (told and self._source.message != self._message):
            return Piece(text, append=False)
        return Piece(text[len(told) :], append=True) if text.startswith(told) and text != told else None

    def take(self, now: float) -> Piece | None:
        """Returns the new text since the last piece, if it is time for one."""
        if now < self._due or self._left <= 0:
            return None
        self._due = now + TOLD_EVERY_S
        if (new := self._new()) is None:
            return None
        if self._printed is not None and not self._begun:
            self._begun = True  # an answer that is complete at once is published once, whole
            return None
        return self._given(new)

    def rest(self) -> Piece | None:
        """Returns the unpublished text, at any time: the program goes on with something else than text."""
        new = self._new(whole=True) if self._left > 0 else None
        return self._given(new) if new is not None else None

    def said(self, text: str) -> Piece | None:
        """Takes a finished message of the turn, with all its `text`; returns the unpublished rest, if it is the
        published message. The screen never gives the last word, and a program that then waits for a person draws no
        more."""
        self._whole += 1
        told = self._told
        if not told or self._whole <= self._replaced or self._left <= 0 or not text.startswith(told) or text == told:
            return None
        message = self._message
        piece = self._given(Piece(text[len(told) :], append=True))
        self._message = message
        return piece

    def _given(self, new: Piece) -> Piece | None:
        self._left -= len(new.text)
        if self._left <= 0:
            return None
        self._replaced += bool(self._told and not new.append)
        self._told = new.text if not new.append else (self._told or "") + new.text
        self._message = self._source.message
        return new


class Speech:
    """The stream of the turn that runs on a terminal, nothing if the profile switches it off.

    `tell` is given the pieces.
    """

    def __init__(self, profile: Profile, tell: Callable[[Piece], None]) -> None:
        self._profile = profile
        self._tell = tell
        self._turn: PtyTurn | None = None
        self._stream: TurnStream | None = None
        self._early: deque[AssistantSaying] = deque(maxlen=EARLY_MAX)
        """Reports of channels while no turn was known: again, after a restart in mid-turn."""

    def begin(self, turn: PtyTurn) -> None:
        """Begins a turn that is delivered, or taken up again after a restart: then see `missed_from`."""
        if self._profile.stream.enabled:
            self._turn = turn
            self._stream = TurnStream(self._profile, turn.message, begun=turn.state.submitted)
            for fact in self._early:
                self.told(fact)
        self._early.clear()

    @property
    def missed_from(self) -> int | None:
        """Returns the offset from which output is to be read back for a turn that was under way before, and given to
        `printed`; None if nothing is."""
        reads = self._stream is not None and self._stream.reads_output
        return self._turn.state.submit_offset if reads and self._turn is not None else None

    def end(self) -> None:
        self._turn = self._stream = None

    def printed(self, offset: int, data: bytes) -> None:
        if self._stream is not None:
            self._stream.printed(offset, data)

    def told(self, fact: AssistantSaying) -> None:
        if self._turn is None:
            self._early.append(fact)
        if self._stream is not None and self._turn is not None and self._turn.is_younger(fact):
            self._stream.told(fact)

    def said(self, fact: AssistantSaid) -> None:
        """Takes a whole message of a turn that goes on, from a channel."""
        if self._stream is None or self._turn is None or not self._turn.is_younger(fact):
            return
        if (piece := self._stream.said(fact.text)) is not None:
            self._tell(piece)

    def wants_screen(self, now: float) -> bool:
        """Returns True if `seen` wants to know how the screen's characters are drawn."""
        turn, stream = self._turn, self._stream
        return turn is not None and stream is not None and turn.state.phase in _MAY_WORK and stream.wants_screen(now)

    def seen(self, look: Look, now: float) -> None:
        """Takes a judged screen, and publishes its news."""
        turn, stream = self._turn, self._stream
        if turn is None or stream is None or turn.state.phase is not Phase.WORKING:
            return
        if turn.state.submit_offset is not None:
            stream.submitted(turn.state.submit_offset)
        if look.verdict.activity is Activity.BUSY and look.kinds is not None and stream.wants_screen(now):
            stream.seen(look.screen.text(), look.kinds, cols=look.screen.cols)
        if (piece := stream.take(now)) is not None:
            self._tell(piece)

    @property
    def due(self) -> float | None:
        """Returns the time when `seen` wants to be called again, None while nothing is open."""
        return self._stream.due if self._stream is not None else None
