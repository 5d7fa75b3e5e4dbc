"""The tool calls that a screen shows, by a profile's patterns (`ShownTools`). Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from synapsed.model.facts import ShownCall
from synapsed.profiles.channel_spec import TOLD_BY_SCREEN, ShownTools

CALLS_MAX = 200
"""Calls of one screen that are read; of more the last ones."""


@dataclass(frozen=True, slots=True)
class _Line:
    begin: int
    end: int
    rank: int
    """Of those that begin at the same place the lowest counts."""
    named: bool
    call: ShownCall


def shown_calls(spec: ShownTools, text: str) -> tuple[ShownCall, ...]:
    """The calls in `text` (wrapped rows joined), from top to bottom. A line that says that a call has ended belongs to
    the last one above it that runs: of that tool with that input, where it says so."""
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
    """Which of `calls` ended with `line`; None for one that is told by that line alone."""
    for at in range(len(calls) - 1, -1, -1):
        same = (calls[at].tool, calls[at].input) == (line.call.tool, line.call.input)
        if calls[at].status == "started" and (same or not line.named):
            return at
    return None


def _lines(spec: ShownTools, text: str) -> Iterator[_Line]:
    """What the patterns find; of two that overlap the upper one."""
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
