"""JSON Schemas as lines: one for each field, one for each member of a list."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

_LISTS = frozenset({"enum", "oneOf", "anyOf", "allOf"})


def compact(value: Any) -> str:
    """`value` as one line of JSON that is the same each time."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def untitled(schema: Any) -> Any:
    """`schema` without titles, which pydantic makes of the names; what is a list in no order is sorted."""
    if isinstance(schema, list):
        return [untitled(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: untitled(value) for key, value in schema.items() if key != "title" or not isinstance(value, str)}
    for key in (_LISTS | {"required"}) & kept.keys():
        if isinstance(kept[key], list):
            kept[key] = sorted(kept[key], key=compact)
    return kept


def definition(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """The lines of the schema `name`."""
    plain = untitled(schema)
    required = set(plain.pop("required", ()))
    for field, told in plain.pop("properties", {}).items():
        yield f"{name}.{field}{' (required)' if field in required else ''}: {compact(told)}"
    for key in _LISTS & plain.keys():
        for one in plain.pop(key):
            yield f"{name} {key}: {compact(one)}"
    yield f"{name}: {compact(plain)}"
