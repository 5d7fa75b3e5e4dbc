"""Turns a program's reports other than text (its tool calls, its plan, its tokens) into facts. Pure."""

from collections.abc import Iterator
from typing import Any, Final

from synapsed.model.facts import ChannelFact, PlanTold, ToolBegan, ToolOver, TurnUsed
from synapsed.pipes.rpc import count, objects, size_of
from synapsed.shared.outside_json import NotJson, read_object

CHANNEL: Final = "acp"

CALLS_MAX: Final = 256
"""Largest number of calls kept that have begun and not ended: beyond it, the oldest is forgotten."""


TOLD_MAX: Final = 8 * 1024 * 1024
"""Most characters kept of the reports about open calls: beyond it, the oldest call's are forgotten."""

_FIELDS: Final = ("title", "kind", "rawInput", "content", "locations")
"""Fields of an update about a call: each replaces the earlier value."""


class ProgramCalls:
    """The tool calls of one session."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[str, dict[str, Any]]] = {}
        self._told: dict[str, tuple[dict[str, Any], int]] = {}
        """Everything reported about the open calls, with its size."""
        self._size = 0

    def whole(self, call: dict[str, Any]) -> dict[str, Any]:
        """Returns the call in a permission request, completed by the earlier reports about it."""
        known, _ = self._told.get(str(call.get("toolCallId") or ""), ({}, 0))
        return {**known, **_said(call), "toolCallId": call.get("toolCallId")}

    def knows(self, call: str) -> bool:
        """Returns True if something was reported about the call, but not its end."""
        return call in self._told

    def _keep(self, call: str, update: dict[str, Any]) -> None:
        known, before = self._told.pop(call, ({}, 0))
        merged = {**known, **_said(update)}
        size = size_of(merged)
        self._told[call] = (merged, size)
        self._size += size - before
        while self._told and (self._size > TOLD_MAX or len(self._told) > CALLS_MAX):
            self._forget(next(iter(self._told)))

    def _forget(self, call: str) -> None:
        _, size = self._told.pop(call, ({}, 0))
        self._size -= size

    def told(self, update: dict[str, Any], now_ns: int) -> Iterator[ChannelFact]:
        """Yields the facts from a call: from `tool_call`, `tool_call_update`, or a permission request's `toolCall`."""
        call, status = str(update.get("toolCallId") or ""), update.get("status")
        known = self._open.get(call)
        if call:
            self._keep(call, update)
        given = update.get("rawInput")
        tool, input_ = known or (str(update.get("title") or update.get("kind") or "tool"), {})
        input_ = given if isinstance(given, dict) and given else input_
        if known is None:
            self._open[call] = (tool, input_)
            while len(self._open) > CALLS_MAX:
                del self._open[next(iter(self._open))]
            yield ToolBegan(channel=CHANNEL, at_ns=now_ns, call=call, tool=tool, input=input_)
        if status in ("completed", "failed") and call in self._open:
            del self._open[call]
            self._forget(call)
            output, error = _output(update), None
            if status == "failed":
                error = (output or {}).get("text") or "it failed"
            yield ToolOver(
                channel=CHANNEL, at_ns=now_ns, call=call, tool=tool, input=input_, output=output, error=error
            )


def _said(update: dict[str, Any]) -> dict[str, Any]:
    said = {name: update[name] for name in _FIELDS if update.get(name) not in (None, "", {}, [])}
    if "rawInput" not in said and update.get("status") == "pending" and (given := _input_as_text(update)):
        said["rawInput"] = given
    return said


def _input_as_text(update: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the input of a call that has not begun, if the program reports it as a JSON object in a text. Its later
    permission request may have only the beginning of the input."""
    texts = _output({"content": update.get("content")})
    try:
        return read_object(texts["text"]) if texts is not None else None
    except NotJson:
        return None


def plan(update: dict[str, Any], now_ns: int) -> PlanTold:
    entries = [each for each in objects(update.get("entries")) if each.get("content")]
    states = {"in_progress": "in_progress", "completed": "completed"}
    steps: tuple[Any, ...] = tuple(
        (str(each["content"]), states.get(str(each.get("status")), "pending")) for each in entries
    )
    return PlanTold(channel=CHANNEL, at_ns=now_ns, steps=steps)


def used(usage: Any, turn: str, now_ns: int) -> Iterator[TurnUsed]:
    """Yields the fact about the tokens of a turn, if the program reports any."""
    if not isinstance(usage, dict):
        return
    names = ("inputTokens", "outputTokens", "cachedReadTokens", "cachedWriteTokens")
    figures = [count(usage.get(name)) for name in names]
    if not any(figures):
        return
    got, gave, read, written = figures
    yield TurnUsed(
        channel=CHANNEL,
        at_ns=now_ns,
        turn=turn,
        input_tokens=got,
        output_tokens=gave,
        cache_read_tokens=read,
        cache_write_tokens=written,
    )


def _output(update: dict[str, Any]) -> dict[str, Any] | None:
    texts = []
    for block in objects(update.get("content")):
        content = block.get("content")
        if isinstance(content, dict) and isinstance(content.get("text"), str):
            texts.append(content["text"])
    if texts:
        return {"text": "\n".join(texts)}
    raw = update.get("rawOutput")
    return raw if isinstance(raw, dict) else {"text": raw} if isinstance(raw, str) else None
