"""W3C trace context of tasks: the trace of a task, and the ids of its spans. Pure.

No id is random: the ids of a task's trace and spans are made from the task's id, so that every daemon on its way,
before and after a kill, gives them the same ids. A trace context from outside stands in the task's metadata, as
`traceparent` and `tracestate`.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from synapsed.shared.regex import regex

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
"""Keys of a task's metadata, and names of HTTP headers."""

STATE_MAX: Final = 512
"""Characters of `tracestate` that are passed on; a longer one is left out, as the recommendation allows."""

_FORM: Final = regex(r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})")
_STATE: Final = regex(r"[\x20-\x7e]*")
_SAMPLED: Final = 1


@dataclass(slots=True)
class Sampling:
    """Sampling of the traces that begin at this daemon."""

    share: float | None = None
    """Share of the traces that is sent, from 0 to 1; None if no part makes traces."""


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A place in a trace: 32 and 16 hexadecimal digits."""

    trace_id: str
    span_id: str
    sampled: bool = True
    state: str = ""

    @classmethod
    def parse(cls, traceparent: object, tracestate: object = None) -> Self | None:
        """Returns the place that the values name; None if malformed: the standard says to ignore such values."""
        if not isinstance(traceparent, str):
            return None
        found = _FORM.match(traceparent.strip())
        if found is None or found["version"] == "ff" or not found["trace"].strip("0") or not found["span"].strip("0"):
            return None
        rest = traceparent.strip()[found.end() :]
        if rest and (found["version"] == "00" or not rest.startswith("-")):  # newer versions may say more
            return None
        known = isinstance(tracestate, str) and len(tracestate) <= STATE_MAX and _STATE.fullmatch(tracestate)
        state = tracestate if known and isinstance(tracestate, str) else ""
        return cls(found["trace"], found["span"], bool(int(found["flags"], 16) & _SAMPLED), state)

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{_SAMPLED if self.sampled else 0:02x}"

    def metadata(self) -> dict[str, str]:
        """Returns the fields for a message's metadata, and for headers."""
        return {TRACEPARENT: self.traceparent} | ({TRACESTATE: self.state} if self.state else {})


def parent_of(metadata: Mapping[str, Any]) -> TraceContext | None:
    """Returns the span that the task is part of, if its sender named one."""
    return TraceContext.parse(metadata.get(TRACEPARENT), metadata.get(TRACESTATE))


def context_of(task_id: str, metadata: Mapping[str, Any], *, share: float) -> TraceContext:
    """Returns the task's own span. It is in its sender's trace if there is one, which also decides sampling; else in a
    trace of its own, of which the share `share` (0 to 1) is sampled."""
    parent = parent_of(metadata)
    if parent is not None:
        return TraceContext(parent.trace_id, span_id(task_id), parent.sampled, parent.state)
    trace_id = _digest(task_id, "trace", 16)
    return TraceContext(trace_id, span_id(task_id), is_sampled(trace_id, share))


def span_id(task_id: str, *what: str) -> str:
    """Returns the id of a task's span, or of the span within it that `what` names."""
    return _digest(task_id, "/".join(("span", *what)), 8)


def is_sampled(trace_id: str, share: float) -> bool:
    """Returns True if the trace is sampled, decided by its last eight bytes as other samplers do, so that all agree."""
    return int(trace_id[16:], 16) < round(share * (1 << 64))


def headers_of(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Returns the trace headers for the request that carries a message with this metadata."""
    parent = parent_of(metadata)
    return {} if parent is None else parent.metadata()


def _digest(task_id: str, what: str, size: int) -> str:
    return hashlib.sha256(f"{what}\0{task_id}".encode()).digest()[:size].hex()
