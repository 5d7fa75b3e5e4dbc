"""Events as clients get them: `{id, event, data, time, agent, task, context}`, on every transport the same."""

from typing import Any, get_args

from pydantic_core import to_json

from synapsed.clock import iso
from synapsed.model.events.kinds import Data, EventData, Gap
from synapsed.model.events.stored import Event
from synapsed.model.masking import mask

OF_TASKS = frozenset({"taskStatus", "taskArtifact"})
"""Types of events that the streams of tasks are made of: not masked in the log, for readers who may read the task."""

EVENT_MAX = 10_000
"""Bytes of an event in a stream (document 004). The rest of a larger event is read by its id."""

TEXT_MAX = 500
"""Characters to which a text that is no large field is cut, if its event is too large."""

BATCH = "batchEvents"
"""`event` of several events in one."""

TYPES: tuple[str, ...] = tuple(sorted(kind.model_fields["type"].default for kind in get_args(get_args(EventData)[0])))
"""Every type that the log can have."""


def envelope(event: Event) -> dict[str, Any]:
    """Returns the whole event for a client."""
    return enveloped(
        event.data,
        at=event.at,
        event_id=event.id,
        agent_id=event.agent_id or None,
        task_id=event.task_id,
        context_id=event.context_id,
    )


def enveloped(
    data: Data,
    *,
    at: float,
    event_id: int | None = None,
    agent_id: str | None = None,
    task_id: str | None = None,
    context_id: str | None = None,
) -> dict[str, Any]:
    """Returns `data` in its envelope. `at` is seconds since the epoch; `time` is RFC 3339 in UTC, as elsewhere."""
    return {
        "id": event_id,
        "event": data.type,
        "data": data.model_dump(mode="json", by_alias=True, exclude={"type"}),
        "time": iso(at),
        "agent": agent_id,
        "task": task_id,
        "context": context_id,
    }


def encoded(event: Event) -> bytes:
    """Returns the event as JSON of at most `EVENT_MAX` bytes, without secrets. Its fields are shortened, the largest
    first: one that may be large is replaced by `{"truncated": true, "size": N}`, where N is the number of characters
    left out, and any other text is cut."""
    body = envelope(event)
    data, large = body["data"], event.data.large_fields()
    sizes = {name: _size(value) for name, value in data.items()}
    for name in sorted(sizes, key=sizes.__getitem__, reverse=True):
        # Counted first: a text of megabytes is neither searched nor encoded to find that it is too long.
        if sum(sizes.values()) <= EVENT_MAX and len(text := _json(_shown(event, body))) <= EVENT_MAX:
            return text
        data[name] = {"truncated": True, "size": sizes[name]} if name in large else _cut(mask(data[name]))
        sizes[name] = _size(data[name])
    return _json(_shown(event, body))


def masked(event: Event) -> dict[str, Any]:
    """Returns the whole envelope of an event, without secrets."""
    return _shown(event, envelope(event))


def _shown(event: Event, body: dict[str, Any]) -> dict[str, Any]:
    """Returns `body` without secrets. In the log, only the events of `OF_TASKS` have secrets."""
    return {**body, "data": mask(body["data"])} if event.data.type in OF_TASKS else body


def batch(events: list[bytes], *, last: int, at: float) -> bytes:
    """Returns several encoded events as one, in their order; its id is that of the last."""
    head = {"id": last, "event": BATCH, "time": iso(at), "agent": None, "task": None, "context": None}
    return _json(head)[:-1] + b',"data":[' + b",".join(events) + b"]}"


def gap(first: int, last: int, *, at: float, agent_id: str | None = None) -> bytes:
    """Returns an event that says that some events with ids from `first` to `last` are skipped."""
    return _json(enveloped(Gap(first=first, last=last), at=at, agent_id=agent_id))


def _size(value: Any) -> int:
    """Returns roughly the number of characters of its JSON."""
    match value:
        case str():
            return len(value) + 2
        case dict():
            return sum(len(key) + 6 + _size(item) for key, item in value.items()) + 2
        case list():
            return sum(_size(item) + 2 for item in value) + 2
        case _:
            return len(str(value))


def _cut(value: Any) -> Any:
    return f"{value[:TEXT_MAX]}…" if isinstance(value, str) and len(value) > TEXT_MAX else value


def _json(value: Any) -> bytes:
    return to_json(value, inf_nan_mode="null")
