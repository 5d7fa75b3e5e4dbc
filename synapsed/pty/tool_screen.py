"""Reads the tool calls of a running turn off the screen, by the profile's patterns (`ShownTools`), for programs whose
channels do not report them.

Two readings must agree on the calls, so that half-drawn frames are not published; at the turn's end, one is enough.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from synapsed.model.agent import Activity
from synapsed.model.facts import SCREEN, ShownCall, ToolsShown
from synapsed.profiles.channel_spec import TOLD_BY_SCREEN, ShownTools
from synapsed.profiles.profile import Profile
from synapsed.pty.turn import PtyTurn
from synapsed.pty.turn_types import Phase
from synapsed.terminal.answer import position_below
from synapsed.terminal.look import Look

CALLS_MAX = 200
"""Largest number of calls that are read off one screen; of more, the last ones."""


@dataclass(frozen=True, slots=True)
class _Line:
    begin: int
    end: int
    rank: int
    """Rank of the pattern: of matches that begin at the same place, the one with the lowest rank counts."""
    named: bool
    call: ShownCall


def shown_calls(spec: ShownTools, text: str) -> tuple[ShownCall, ...]:
    """Returns the calls in `text` (wrapped rows joined), from top to bottom. A line that shows the end of a call
    belongs to the last running call above it; if the line names a tool and an input, to the last one with these."""
    calls: list[ShownCall] = []
    for line in _lines(spec, text):
        call = line.call
        at = None if call.status == "started" else _above(calls, line)
        if at is not None:
            began = calls[at]
            calls[at] = replace(call, tool=began.tool, input=began.input)
        else:
            calls.append(call)
    return tuple(calls[-CALLS_MAX:])


def _above(calls: list[ShownCall], line: _Line) -> int | None:
    """Returns the index of the call in `calls` that `line` ends; None if only that line shows the call."""
    for at in range(len(calls) - 1, -1, -1):
        same = (calls[at].tool, calls[at].input) == (line.call.tool, line.call.input)
        if calls[at].status == "started" and (same or not line.named):
            return at
    return None


def _lines(spec: ShownTools, text: str) -> Iterator[_Line]:
    """Yields the matches of the patterns, from top to bottom; of two that overlap, the upper one."""
    end = 0
    for line in sorted(_found(spec, text), key=lambda line: (line.begin, line.rank)):
        if line.begin >= end:
            yield line
            end = line.end


def _found(spec: ShownTools, text: str) -> Iterator[_Line]:
    ranked = (("failed", spec.failed), ("completed", spec.completed), ("started", spec.started))
    for rank, (status, patterns) in enumerate(ranked):
        for pattern in patterns:
            for match in pattern.finditer(text):
                if match[0]:
                    yield _line(spec, rank, status, match)


def _line(spec: ShownTools, rank: int, status: str, match: re.Match[str]) -> _Line:
    groups = {name: " ".join(found.split()) for name, found in match.groupdict().items() if found}
    named = status == "started" or bool(match.re.groupindex.keys() - {"output", "error"})
    call = ShownCall(
        status=status,  # type: ignore[arg-type]  # one of the three keys
        tool=groups.get("tool") or spec.tool or "" if named else "",
        input={name: text for name, text in groups.items() if name not in TOLD_BY_SCREEN},
        output=groups.get("output"),
        error=groups.get("error") if status == "failed" else None,
        denied=status == "failed" and spec.denied is not None and spec.denied.search(match[0]) is not None,
    )
    return _Line(match.start(), match.end(), rank, named, call)


READ_EVERY_S = 0.1
"""Seconds between two readings of the screen."""

_RUNS = frozenset({Activity.BUSY, Activity.WAITING})

type _Read = tuple[int, bool, tuple[ShownCall, ...]]
"""The turn's leg; True if the screen shows the message, and so all calls of the turn; and the calls on the screen."""


class ToolScreen:
    """Reads the calls of the running turn. `reads` is False, and nothing is read, if the profile has no patterns for
    them or a channel reports them. `tell` is called with the calls on the screen when they have changed."""

    def __init__(self, profile: Profile, tell: Callable[[ToolsShown], None]) -> None:
        self._spec = profile.tools
        self._answer = profile.answer
        self.reads = profile.tools.known and not any(channel.tools for channel in profile.channels.values())
        self._tell = tell
        self._turn: PtyTurn | None = None
        self._begun = False
        self._read: _Read | None = None
        self._told: _Read | None = None
        self._changed_at: float | None = None
        """`changed_at` of the screen that was read last."""
        self._due = 0.0
        self._open = False

    def begin(self, turn: PtyTurn) -> None:
        """Begins with a turn that is delivered, or continued after a restart. Must be called only if `reads`."""
        self._turn, self._begun = turn, turn.state.submitted

    def end(self) -> None:
        self._turn = self._read = self._told = self._changed_at = None
        self._open = False

    @property
    def due(self) -> float | None:
        """Returns the time at which `seen` must be called again; None if no new call is expected."""
        return self._due if self._open else None

    def seen(self, look: Look, now: float) -> None:
        """Takes a look, and reports the calls on its screen if two readings agree on a change."""
        if self._turn is None or self._turn.state.phase is not Phase.WORKING or look.verdict.activity not in _RUNS:
            return
        if now < self._due:
            self._open = self._open or look.changed_at != self._changed_at
            return
        before = self._read
        if look.changed_at != self._changed_at or before is None:
            self._read = self._of(look.screen.text())
            self._changed_at = look.changed_at
        self._due = now + READ_EVERY_S
        self._open = self._read not in (None, self._told)
        if self._open and self._read == before:
            self._say(now)

    def last(self, screen: str, now: float) -> None:
        """Reads the screen for the last time, before the turn ends."""
        if self._turn is not None and self._turn.state.submitted:
            self._read = self._of(screen)
            if self._read not in (None, self._told):
                self._say(now)

    def _say(self, now: float) -> None:
        if self._read is not None and self._turn is not None:
            self._told, self._open = self._read, False
            (leg, whole, calls), task = self._read, self._turn.task_id
            self._tell(ToolsShown(channel=SCREEN, at_ns=int(now * 1e9), turn=task, leg=leg, whole=whole, calls=calls))

    def _of(self, screen: str) -> _Read | None:
        """Returns the calls on `screen` that are of this turn; None until a screen has shown the message."""
        assert self._turn is not None
        state, lines = self._turn.state, screen.split("\n")
        below = position_below(lines, self._turn.message, self._answer.start, quoted_too=False)
        if below is None and not (state.located or self._begun):
            return None
        return state.leg, below is not None, shown_calls(self._spec, "\n".join(lines[below or 0 :]))
