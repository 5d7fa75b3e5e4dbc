"""Finds the tool calls of a turn that the screen shows for the first time, so that each is published once, even if
frames are drawn again, screens scroll, or the daemon restarts. Pure.

The screen shows a part of the turn's calls, in their order, with new ones at its end. So the shown calls are laid over
the list of the known calls: the index at which they fit says which of them are known. The id of a call has the number
of the call in its turn. Texts are compared as the log has them, with secrets masked.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from synapsed.model.events import Event, ToolExecution
from synapsed.model.facts import SCREEN, ShownCall, ToolBegan, ToolOver, ToolsShown
from synapsed.model.masking import mask

CALLS_MAX = 500
"""Most calls of one turn that are remembered to find the shown ones among them: the last ones."""
EARLIER_MAX = 500
"""Number of calls of earlier turns that are recognised when they are on the screen again."""
UNSAID = "its screen shows that it failed"

type _Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(slots=True)
class _Known:
    """A published call."""

    id: str
    key: _Key
    over: bool = False


@dataclass(slots=True)
class ShownCalls:
    """The calls of the present turn. A turn has a second leg (part) if the program gets a note after a refused call."""

    _task: str | None = None
    _leg: int = 0
    _calls: list[_Known] = field(default_factory=list)
    _count: int = 0
    """Number of the turn's calls; the next one has this number."""
    _base: int = 0
    """Index in `_calls` of the first call of the present leg."""
    _earlier: dict[_Key, None] = field(default_factory=dict)

    def restore(self, events: Iterable[Event]) -> None:
        """Takes this agent's calls from the log, oldest first."""
        for event in events:
            call = event.data
            if not isinstance(call, ToolExecution) or call.source != SCREEN or call.reported_by is not None:
                continue
            if event.task_id is None or call.call_id is None:
                continue
            if event.task_id != self._task:
                self._begin(event.task_id)
            if call.status == "started":
                self._add(call.call_id, _key(call.tool_name, call.input or {}))
            else:
                for known in self._calls:
                    known.over = known.over or known.id == call.call_id

    def seen(self, fact: ToolsShown) -> list[ToolBegan | ToolOver]:
        """Returns the calls that the screen shows as begun or ended for the first time."""
        if fact.turn is None:
            return []
        if fact.turn != self._task:
            self._begin(fact.turn)
        if fact.leg != self._leg:
            self._leg, self._base = fact.leg, len(self._calls)
        reports = [over for call in fact.calls if not call.tool for over in self._ended_above(fact, call)]
        calls = [call for call in fact.calls if call.tool]
        start = self._index(calls, whole=fact.whole)
        if start is None:
            return reports + [one for call in calls for one in self._reports_by_text(fact, call)]
        known_calls = [*self._calls[start:], *[None] * len(calls)]
        return reports + [
            one for known, call in zip(known_calls, calls, strict=False) for one in self._reports(fact, known, call)
        ]

    def _begin(self, task: str) -> None:
        for known in self._calls:
            self._earlier[known.key] = None
        while len(self._earlier) > EARLIER_MAX:
            del self._earlier[next(iter(self._earlier))]
        self._task, self._leg, self._count, self._base = task, 0, 0, 0
        self._calls = []

    def _index(self, calls: list[ShownCall], *, whole: bool) -> int | None:
        """Returns the index in `_calls` at which the calls on the screen begin; None if they fit nowhere. `whole`: the
        screen shows the message that began the leg, and so all of its calls."""
        if whole:
            return self._base if self._fit(self._calls[self._base :], calls) else None
        # The last known call is at the bottom, unless only a part of the screen is drawn yet: begin with the index at
        # which the fewest calls are new.
        last = max(self._base, len(self._calls) - len(calls))
        indexes = [*range(last, len(self._calls)), *range(last - 1, self._base - 1, -1)]
        return next((index for index in indexes if self._fit(self._calls[index:], calls)), None)

    @staticmethod
    def _fit(known: list[_Known], calls: list[ShownCall]) -> bool:
        return all(_is_same(one, call) for one, call in zip(known, calls, strict=False))

    def _reports(self, fact: ToolsShown, known: _Known | None, call: ShownCall) -> list[ToolBegan | ToolOver]:
        """Returns the reports for `call`: its beginning if `known` is None, and its end."""
        reports: list[ToolBegan | ToolOver] = []
        if known is None:
            known = self._add(f"{SCREEN}.{fact.turn}.{self._count}", _key_of(call))
            reports.append(
                ToolBegan(
                    channel=SCREEN,
                    at_ns=fact.at_ns,
                    turn=fact.turn,
                    call=known.id,
                    tool=call.tool,
                    input=dict(call.input),
                    exact=False,
                )
            )
        if call.status != "started" and not known.over:
            reports.append(_end(fact, known, call))
        if not known.over:
            known.key = _key_of(call)
        known.over = known.over or call.status != "started"
        return reports

    def _reports_by_text(self, fact: ToolsShown, call: ShownCall) -> list[ToolBegan | ToolOver]:
        """Returns the reports for a call whose index is not known, so that only its text identifies it. An ended call
        with the text of an earlier one may be the earlier one, and is not reported."""
        key = _key_of(call)
        runs = next((known for known in self._calls if not known.over and _alike(known.key, key)), None)
        if runs is not None or call.status == "started":
            return self._reports(fact, runs, call)
        known = key in self._earlier or any(_alike(one.key, key) for one in self._calls)
        return [] if known else self._reports(fact, None, call)

    def _ended_above(self, fact: ToolsShown, call: ShownCall) -> list[ToolOver]:
        """Returns the end of the last running call whose own line is no longer on the screen."""
        for known in reversed(self._calls):
            shown = any(_is_same(known, other) for other in fact.calls if other.tool)
            if not known.over and not shown:
                known.over = True
                return [_end(fact, known, call)]
        return []

    def _add(self, call_id: str, key: _Key) -> _Known:
        known = _Known(call_id, key)
        self._calls.append(known)
        self._count += 1
        while len(self._calls) > CALLS_MAX:
            self._calls.pop(0)
            self._base = max(0, self._base - 1)
        return known


def _end(fact: ToolsShown, known: _Known, call: ShownCall) -> ToolOver:
    return ToolOver(
        channel=SCREEN,
        at_ns=fact.at_ns,
        turn=fact.turn,
        call=known.id,
        tool=call.tool,
        input=dict(call.input),
        output={"text": call.output} if call.output is not None else None,
        error=(call.error or UNSAID) if call.status == "failed" else None,
        denied=call.denied,
        exact=False,
    )


def _key_of(call: ShownCall) -> _Key:
    return _key(call.tool, call.input)


def _key(tool: str, given: dict[str, str]) -> _Key:
    return tool, tuple(sorted((name, str(text)) for name, text in mask(given).items()))


def _is_same(known: _Known, call: ShownCall) -> bool:
    """Returns True if `call` may be `known`: an ended call does not run again, and a running one may be drawn in
    pieces."""
    key = _key_of(call)
    if known.over:
        return call.status != "started" and _alike(known.key, key)
    return _alike(known.key, key) or _grew(known.key, key)


def _alike(one: _Key, other: _Key) -> bool:
    """Returns True if both are equal, or one of them is cut because the screen was narrower."""
    if one == other:
        return True
    (tool, given), (other_tool, other_given) = one, other
    return (
        tool == other_tool
        and len(given) == len(other_given)
        and all(
            name == other_name and (text == other_text or _is_cut(text, other_text) or _is_cut(other_text, text))
            for (name, text), (other_name, other_text) in zip(given, other_given, strict=True)
        )
    )


def _is_cut(text: str, whole: str) -> bool:
    cut = text.removesuffix("…").removesuffix("...").rstrip()
    return cut != text and bool(cut) and whole.startswith(cut)


def _grew(before: _Key, now: _Key) -> bool:
    (tool, given), (new_tool, new_given) = before, now
    texts = dict(new_given)
    return tool == new_tool and all(texts.get(name, "").startswith(text) for name, text in given)
