"""Publishes the text of a turn in pieces while the turn runs: from a channel that reports it, the output, or the
screen.

The pieces are only events: at most five a second, and bounded; the end of the turn neither waits for them nor uses
them. Text from the screen is published when two looks agree on it, so that half-drawn frames are not. Each piece
continues the one before. If published text turns out to be wrong, no more is published: the turn's end has the answer.
Another message replaces the one before.
"""

import os.path
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from synapsed.model.agent import Activity
from synapsed.model.facts import AssistantSaid, AssistantSaying, ChannelFact
from synapsed.model.masking import unfinished
from synapsed.profiles.profile import Profile
from synapsed.pty.turn import PtyTurn
from synapsed.pty.turn_types import Phase
from synapsed.terminal.growing_answer import LineText, ScreenText
from synapsed.terminal.look import Look

TOLD_EVERY_S = 0.2
"""Seconds between two pieces of a turn, and between two readings of the screen for them."""

TOLD_MAX = 256 * 1024
"""Largest number of characters of all pieces of one turn."""

EARLY_MAX = 512
"""Number of chunks of output that are kept until it is known where the turn's output begins, and number of a channel's
pieces that are kept until their turn is known. The last ones are kept; text without its beginning is not published."""

EARLY_SIZE = 64 * 1024
"""Largest number of bytes of that output, which are handled all at once. Of the turn it has hardly more than the echoes
of the message and of a line break."""


_MAY_WORK = frozenset({Phase.SUBMITTED, Phase.WORKING, Phase.READING})
"""Phases in which the next look may show that the program works."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of text. If `append` is False, `text` replaces the earlier text, because it is of another message, or
    because the earlier text is unknown."""

    text: str
    append: bool


class _Said:
    """The present message from a channel's reports."""

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
    """The output of a line-oriented program since the message was submitted."""

    message = 0

    def __init__(self) -> None:
        self._lines: LineText | None = None
        self._early: deque[tuple[int, bytes]] = deque()
        self._early_size = 0

    @property
    def text(self) -> str:
        """Returns the text without line breaks at its end, which are part of the answer only if more text follows."""
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
    """The text on the screen, as far as two readings in a row agree on it."""

    def __init__(self, text: ScreenText) -> None:
        self.text = ""
        self.message = 0
        self._screen = text
        self._read = (0, "")

    @property
    def settled(self) -> bool:
        """Returns True if another reading would change nothing."""
        return self._read == (self.message, self.text)

    def seen(self, screen: str, kinds: str | None, cols: int, said: str) -> None:
        (number, before), text = self._read, self._screen.read(screen, kinds, cols=cols, said=said)
        self._read = (self._screen.message, text)
        if number != self._screen.message:
            return
        both = os.path.commonprefix([before, text])  # noqa: RUF071 - compares characters, as wanted
        if number != self.message or not self.text.startswith(both):
            self.message, self.text = number, both


class _Both:
    """A channel that reports whole lines, and from the screen the text that follows them, as far as it is certain."""

    def __init__(self, said: _Said, drawn: _Drawn) -> None:
        self._said = said
        self._drawn = drawn

    @property
    def text(self) -> str:
        return self._drawn.text if self._drawn.text.startswith(self._said.text) else self._said.text

    @property
    def message(self) -> int:
        return self._said.message or 1 + self._drawn.message


type _Source = _Said | _Printed | _Drawn | _Both
"""A source of text. `text` is the known part of the present message, `message` the message's number."""


class TurnStream:
    """The text of one turn. Pure: `now` is monotonic seconds. `begun`: the turn was running already (the daemon was
    restarted), so the text published so far is unknown."""

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
        """Number of messages of the turn that a channel has reported complete."""
        self._begun = begun
        self._due = 0.0
        self._left = TOLD_MAX

    @property
    def reads_output(self) -> bool:
        """Returns True if `printed` needs all output since the submission."""
        return self._printed is not None

    def submitted(self, offset: int) -> None:
        """Notes that the output from `offset` on is of this turn. May be called again."""
        if self._printed is not None:
            self._printed.submitted(offset)

    def printed(self, offset: int, data: bytes) -> None:
        """Takes the program's output `data` at `offset`."""
        if self._printed is not None and self._left > 0:
            self._printed.printed(offset, data)
            if len(self._printed.text) > TOLD_MAX:
                self._left = 0

    def told(self, fact: ChannelFact) -> None:
        """Takes a fact that a channel reports about this turn."""
        if self._said is not None and isinstance(fact, AssistantSaying) and len(self._said.text) < TOLD_MAX:
            self._said.told(fact)

    def wants_screen(self, now: float) -> bool:
        return self._drawn is not None and now >= self._due and self._left > 0

    def seen(self, screen: str, kinds: str | None = None, *, cols: int = 80) -> None:
        """Takes the text of the screen (wrapped rows joined) during its work, and the kinds of its characters."""
        if self._drawn is not None:
            self._drawn.seen(screen, kinds, cols, self._said.text if self._said is not None else "")

    @property
    def due(self) -> float | None:
        """Returns the time at which `take`, or a look at the screen, may give new text; None if none is expected."""
        open_ = (self._drawn is not None and not self._drawn.settled) or self._new() is not None
        return self._due if open_ and self._left > 0 else None

    def _new(self, *, whole: bool = False) -> Piece | None:
        text, told = self._source.text, self._told
        if not whole:  # holds back the beginning of a secret: only a complete one in one piece can be masked
            text = text[: len(text) - unfinished(text)]
        if not text:
            return None
        if told is None or (told and self._source.message != self._message):
            return Piece(text, append=False)
        return Piece(text[len(told) :], append=True) if text.startswith(told) and text != told else None

    def take(self, now: float) -> Piece | None:
        """Returns the new text since the last piece; None without new text, or if it is too early."""
        if now < self._due or self._left <= 0:
            return None
        self._due = now + TOLD_EVERY_S
        if (new := self._new()) is None:
            return None
        if self._printed is not None and not self._begun:
            self._begun = True  # waits once: an answer that comes at once is published in one piece, at the turn's end
            return None
        return self._given(new)

    def rest(self) -> Piece | None:
        """Returns the unpublished text, without waiting, because the program goes on with something other than text."""
        new = self._new(whole=True) if self._left > 0 else None
        return self._given(new) if new is not None else None

    def said(self, text: str) -> Piece | None:
        """Takes a complete message of the turn, with its `text`. Returns the rest that is not published yet, if it is
        the message published last. The screen alone may never prove the last word: a program that waits for a person
        then draws no more."""
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
    """Publishes the text of the turn that runs on a terminal, unless the profile switches this off. `tell` is called
    with the pieces."""

    def __init__(self, profile: Profile, tell: Callable[[Piece], None]) -> None:
        self._profile = profile
        self._tell = tell
        self._turn: PtyTurn | None = None
        self._stream: TurnStream | None = None
        self._early: deque[AssistantSaying] = deque(maxlen=EARLY_MAX)
        """Reports of channels that came while no turn was known, after a restart in the middle of a turn."""

    def begin(self, turn: PtyTurn) -> None:
        """Begins with a turn that is delivered, or continued after a restart (then see `missed_from`)."""
        if self._profile.stream.enabled:
            self._turn = turn
            self._stream = TurnStream(self._profile, turn.message, begun=turn.state.submitted)
            for fact in self._early:
                self.told(fact)
        self._early.clear()

    @property
    def missed_from(self) -> int | None:
        """Returns the offset from which the caller has to read back the output of a continued turn, and pass it to
        `printed`; None if that is not needed."""
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
        """Takes a complete message from a channel, of a turn that goes on."""
        if self._stream is None or self._turn is None or not self._turn.is_younger(fact):
            return
        if (piece := self._stream.said(fact.text)) is not None:
            self._tell(piece)

    def wants_screen(self, now: float) -> bool:
        """Returns True if `seen` needs a look with the kinds of the screen's characters."""
        turn, stream = self._turn, self._stream
        return turn is not None and stream is not None and turn.state.phase in _MAY_WORK and stream.wants_screen(now)

    def seen(self, look: Look, now: float) -> None:
        """Takes a look, and publishes new text."""
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
        """Returns the time at which `seen` must be called again; None if no new text is expected."""
        return self._stream.due if self._stream is not None else None
