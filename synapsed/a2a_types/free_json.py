"""Makes protobuf handle the JSON of requests faster, so that it does not block the event loop.

Free JSON (`metadata`, `data`) costs protobuf a hundredth of a millisecond for each value, in each direction. So free
JSON with more than a few values goes through the SDK's types as one text, under a secret name.

Importing this module also changes protobuf's JSON parser. It searches each text for lone surrogates with an expression
that takes 40 ms for a megabyte, and then gives the text to the field, which refuses lone surrogates itself, forty times
as fast. The first search is left out.
"""

from collections.abc import Iterator
from itertools import chain, islice
from secrets import token_hex
from typing import Any, Final

import pydantic_core
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct

from synapsed.a2a_types.a2a_errors import invalid_params

DEPTH_MAX: Final = 60
"""Levels of lists and objects in free JSON; the SDK's parser has a limit of 100, and counts each level twice."""
ITEMS_MAX: Final = 256
"""Elements of an array that A2A itself has: parts, extensions, output modes."""
NUMBER_MAX: Final = 1.7976931348623157e308
"""The greatest number that protobuf takes."""
LITTLE: Final = 64
"""Number of values up to which protobuf gets free JSON as it is."""
_MARK: Final = token_hex(16)
_COMPAT: Final = "data_part_compat"
"""Key of a 0.3 part's metadata that says how its data is to be read: the SDK must get both as they are."""

type Json = dict[str, Any]


def packed(params: Json, *, objects_only: bool = False) -> Json:
    """Returns `params` with a text in place of free JSON that has more than LITTLE values. With `objects_only` data
    that is not an object stays as it is, so that the SDK refuses it. Raises A2aError (-32602) for free JSON that is
    nested too deep, or has a number that is too large."""
    params = _with(params, "metadata", "", objects_only=True)
    message = params.get("message")
    if not isinstance(message, dict):
        return params
    message = _with(message, "metadata", "message.", objects_only=True)
    parts = message.get("parts")
    if isinstance(parts, list):
        _check_items(parts, "message.parts")
        message = {**message, "parts": [_part(part, index, objects_only) for index, part in enumerate(parts)]}
    return {**params, "message": message}


def _part(part: Any, index: int, objects_only: bool) -> Any:
    if not isinstance(part, dict):
        return part
    path = f"message.parts[{index}]."
    if isinstance(part.get("metadata"), dict) and _COMPAT in part["metadata"]:
        for name in ("metadata", "data"):
            if _is_much(part.get(name)):
                raise invalid_params(path + name, f"must have at most {LITTLE} values beside {_COMPAT}")
        return part
    part = _with(part, "metadata", path, objects_only=True)
    return _with(part, "data", path, objects_only=objects_only)


def _with(where: Json, name: str, path: str, *, objects_only: bool) -> Json:
    value = where.get(name)
    if not isinstance(value, dict if objects_only else dict | list) or not _is_much(value):
        return where
    _check(value, path + name)
    return {**where, name: {_MARK: pydantic_core.to_json(value).decode()}}


def _is_much(value: Any) -> bool:
    count, level = 0, [value] if isinstance(value, dict | list) else []
    while level and count <= LITTLE:
        children = list(islice(_children(level), LITTLE + 1))
        count += len(children)
        level = [child for child in children if isinstance(child, dict | list)]
    return count > LITTLE


def _children(level: list[Any]) -> Iterator[Any]:
    return chain.from_iterable(one.values() if isinstance(one, dict) else one for one in level)


def _check(value: Any, path: str) -> None:
    """Raises A2aError for too many levels or too large a number. It goes level by level, without recursion, because
    there may be a hundred thousand values."""
    level = [value]
    for _ in range(DEPTH_MAX):
        children = list(_children(level))
        if any(type(child) is int and not -NUMBER_MAX <= child <= NUMBER_MAX for child in children):
            raise invalid_params(path, "has a number that is too large")
        level = [child for child in children if type(child) is dict or type(child) is list]
        if not level:
            return
    raise invalid_params(path, f"is nested deeper than {DEPTH_MAX} levels")


def check_arrays(params: Json, *paths: str) -> None:
    """Raises A2aError (-32602) if one of the arrays at `paths` is too long."""
    for path in paths:
        value: Any = params
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        _check_items(value, path)


def _check_items(value: Any, path: str) -> None:
    if isinstance(value, list) and len(value) > ITEMS_MAX:
        raise invalid_params(path, f"must have at most {ITEMS_MAX} elements")


def unpacked(struct: Struct) -> Any | None:
    """Returns the JSON that `packed` has put into `struct`; None if `struct` has the values themselves."""
    if _MARK not in struct.fields:
        return None
    return pydantic_core.from_json(struct.fields[_MARK].string_value, cache_strings="keys")


SEARCH: Final = "_UNPAIRED_SURROGATE_PATTERN"
"""The parser's name for that expression; tests/parts/a2a/test_quick.py checks that a new protobuf still has it."""


class _Nothing:
    """An expression that finds nothing."""

    @staticmethod
    def search(text: str) -> None:
        """Returns None for any `text`."""


setattr(json_format, SEARCH, _Nothing)
