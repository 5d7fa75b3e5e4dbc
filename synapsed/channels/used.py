"""What a turn has used, added up from the records or messages that tell of its requests. Pure."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from synapsed.channels.transcripts import at_path
from synapsed.channelspec import UsageLine

type Used = dict[str, Any]
"""The fields of `TurnUsed`."""


def used(records: Iterable[Mapping[str, Any]], line: UsageLine) -> Used | None:
    """None where no record tells anything."""
    requests = {str(at_path(record, line.id)): record for record in records}
    sums: dict[str, int | float] = {}
    model = None
    for record in requests.values():
        for name, value in _of(record, line).items():
            sums[name] = sums.get(name, 0) + value
        named = at_path(record, line.model) if line.model is not None else None
        model = named if isinstance(named, str) and named else model
    return {"model": model, **sums} if any(sums.values()) else None


def _of(record: Mapping[str, Any], line: UsageLine) -> dict[str, int | float]:
    read = _number(record, line.cache_read)
    given = _number(record, line.input)
    if given is not None and read is not None and not line.cached_apart:
        given = max(0, given - read)
    outputs = [value for path in line.output if (value := _number(record, path)) is not None]
    found = {
        "input_tokens": given,
        "output_tokens": sum(outputs) if outputs else None,
        "cache_read_tokens": read,
        "cache_write_tokens": _number(record, line.cache_write),
    }
    counts: dict[str, int | float] = {name: int(value) for name, value in found.items() if value is not None}
    cost = _number(record, line.cost)
    return counts if cost is None else {**counts, "cost_usd": float(cost)}


def _number(record: Mapping[str, Any], path: str | None) -> int | float | None:
    value = at_path(record, path) if path is not None else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return None
    return value
