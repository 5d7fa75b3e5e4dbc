"""Reads records that programs keep, by a profile's paths, and adds up the usage of a turn from that of its requests.
Pure."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from synapsed.profiles.channel_spec import Line, Listing, ToolLine, Transcript, UsageLine

NUMBER_MAX = 1 << 53
"""Largest number that counts: no program uses as much, and sums of them are no larger than the database can hold."""


def place(spec: Transcript, home: Path, env: Mapping[str, str]) -> tuple[Path, str]:
    """Returns the place of `spec`'s files for a program with environment `env`: a folder, and the pattern below it."""
    files = spec.files or ""
    for name, folder in spec.moved_by.items():
        if (elsewhere := env.get(name)) and files.startswith(f"{folder}/"):
            return Path(home, elsewhere), files.removeprefix(f"{folder}/")
    return home, files


def holds(record: Mapping[str, Any], line: Line | ToolLine | UsageLine) -> bool:
    """Returns True if `record` is of the kind that `line` selects."""
    for path, allowed in line.when.items():
        value = at_path(record, path)
        if "*" in allowed:
            if value is None or value in ("", [], {}):
                return False
        elif not any(value is other or (isinstance(value, str) and value == other) for other in allowed):
            return False
    return True


def text_at(record: Mapping[str, Any], line: Line, spec: Transcript | Listing) -> str:
    """Returns the value at `line.text`, as text; "" if the record has no such value."""
    value = at_path(record, line.text) if line.text is not None else None
    text = clean(value) if isinstance(value, str) else _blocks_in(value, spec)
    if line.match is None:
        return text
    found = line.match.search(text)
    return "" if found is None else found.groupdict().get("text") or found.group()


def _blocks_in(value: Any, spec: Transcript | Listing) -> str:
    if not isinstance(value, list):
        return ""
    blocks = [block for block in value if isinstance(block, dict) and block.get("type", spec.blocks[0]) in spec.blocks]
    return clean("".join(block["text"] for block in blocks if isinstance(block.get("text"), str)))


def at_path(record: Any, path: str) -> Any:
    """Returns the value at the dotted path, None if the path leads nowhere."""
    for part in path.split("."):
        if isinstance(record, Mapping):
            record = record.get(part)
        elif isinstance(record, list) and part.isdecimal() and int(part) < len(record):
            record = record[int(part)]
        else:
            return None
    return record


def clean(text: str) -> str:
    """Returns `text` with lone surrogates replaced (JSON may escape half a character), so that it can be encoded."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def parse_record(line: bytes) -> dict[str, Any] | None:
    """Returns the object of one line, None for a line that is no object."""
    try:
        record = json.loads(line.decode("utf-8", "replace")) if line.strip() else None
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


type Used = dict[str, Any]
"""The fields of `TurnUsed`."""


def used(records: Iterable[Mapping[str, Any]], line: UsageLine) -> Used | None:
    """Returns the sums over all requests in `records`; None if there is nothing to count."""
    requests = {str(at_path(record, line.id)): record for record in records}
    sums: dict[str, int | float] = {}
    model = None
    for record in requests.values():
        for name, value in _usage_in(record, line).items():
            sums[name] = sums.get(name, 0) + value
        named = at_path(record, line.model) if line.model is not None else None
        model = named if isinstance(named, str) and named else model
    return {"model": model, **sums} if any(sums.values()) else None


def _usage_in(record: Mapping[str, Any], line: UsageLine) -> dict[str, int | float]:
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
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= NUMBER_MAX:
        return None
    return value
