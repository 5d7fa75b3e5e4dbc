"""Finds tool calls in the reports of programs, by a profile's paths."""

from collections.abc import Mapping, Sequence
from typing import Any

from synapsed.channels.transcripts import at_path, clean, holds
from synapsed.model.facts import ChannelFact, ToolBegan, ToolOver
from synapsed.profiles.channel_spec import ToolLine


def tool_line(lines: Sequence[ToolLine], event: str, payload: Mapping[str, Any]) -> ToolLine | None:
    """Returns the profile's line for this report of a tool call; None if it reports no call."""
    return next((line for line in lines if line.on == event and holds(payload, line)), None)


def tool_fact(
    line: ToolLine, payload: Mapping[str, Any], *, channel: str, at_ns: int, session: str | None, turn: str | None
) -> ChannelFact:
    """Returns the fact of one report that `line` describes."""
    tool, call = _word(payload, line.tool) or "", _word(payload, line.call) if line.call is not None else None
    given = at_path(payload, line.input)
    common: dict[str, Any] = {"channel": channel, "at_ns": at_ns, "session": session, "turn": turn}
    table = given if isinstance(given, dict) else {}
    if line.status == "started":
        return ToolBegan(**common, call=call, tool=tool, input=table)
    output = next((value for path in line.output if (value := at_path(payload, path)) not in (None, "", [], {})), None)
    error = next((text for path in line.error if (text := _word(payload, path))), None)
    failed = line.status == "failed" or error is not None
    if failed and error is None:
        error = output if isinstance(output, str) else "the program does not say why"
    lasted = at_path(payload, line.duration_ms) if line.duration_ms is not None else None
    return ToolOver(
        **common,
        call=call,
        tool=tool,
        input=table,
        output=_object(output),
        error=error,
        denied=failed and line.denied is not None and line.denied.search(error or "") is not None,
        duration_ms=int(lasted) if isinstance(lasted, int | float) and 0 <= lasted < 1e12 else None,
    )


def _object(value: Any) -> dict[str, Any] | None:
    if value is None or isinstance(value, dict):
        return value
    return {"text": clean(value)} if isinstance(value, str) else {"value": value}


def _word(payload: Mapping[str, Any], path: str) -> str | None:
    value = at_path(payload, path)
    return clean(value) if isinstance(value, str) and value else None
