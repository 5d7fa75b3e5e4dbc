"""Requests from JSON and from queries, checked where the SDK's parser does not: told to ignore unknown fields (5.7), it
takes an unknown enum value for none at all, and what is no object for an empty one."""

import re
from collections.abc import Iterable
from functools import cache
from itertools import islice
from typing import Any, Final, cast

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message as ProtoMessage

from synapsed.a2a.errors import invalid_params

__all__ = ["from_query", "parse"]

_FAILED_FIELD: Final = re.compile(r"Failed to parse (\w+) field")
_INTEGER: Final = re.compile(r"-?[0-9]{1,19}")
_OBJECTS: Final = "google.protobuf.Struct"
_FREE: Final = frozenset({"google.protobuf.Value", "google.protobuf.Timestamp"})
"""Well-known types whose JSON is no object of fields."""
_INTEGERS: Final = frozenset({FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_INT64})
MAX_TOLD: Final = 10
"""Faults of one request that are listed."""
TOLD: Final = 200
"""Characters of the parser's words that are passed on."""


def parse[T: ProtoMessage](params: dict[str, Any], kind: type[T]) -> T:
    """The request. Raises A2aError (-32602). Unknown fields are ignored, unknown values refused."""
    _refuse(_violations(params, _described(kind), ""))
    message = kind()
    try:
        json_format.ParseDict(params, message, ignore_unknown_fields=True)
    except (json_format.ParseError, TypeError, ValueError, AttributeError) as error:
        field = ".".join(_FAILED_FIELD.findall(str(error))) or "params"
        raise invalid_params(field, f"is not what it should be: {str(error)[-TOLD:]}") from error
    return message


def _described(kind: type[ProtoMessage]) -> Descriptor:
    """Its descriptor, which has this type in every implementation of protobuf's runtime."""
    return cast("Descriptor", kind.DESCRIPTOR)


def _refuse(violations: Iterable[tuple[str, str]]) -> None:
    if wrong := list(islice(violations, MAX_TOLD)):
        first, *more = wrong
        raise invalid_params(*first, *more)


def _violations(value: dict[str, Any], kind: Descriptor, path: str) -> Iterable[tuple[str, str]]:
    for field in _checked(kind):
        for name in {field.json_name, field.name}:
            child = value.get(name)
            if child is None:
                continue
            items = child if isinstance(child, list) and field.is_repeated else [child]
            if field.is_repeated and not isinstance(child, list):
                yield f"{path}{name}", "must be an array"
                continue
            for index, item in enumerate(items):
                where = f"{path}{name}[{index}]" if field.is_repeated else f"{path}{name}"
                yield from _wrong(item, field, where)


def _wrong(value: Any, field: FieldDescriptor, where: str) -> Iterable[tuple[str, str]]:
    if field.enum_type is not None:
        if not _is_value(value, field.enum_type):
            yield where, f"must be one of {', '.join(list(field.enum_type.values_by_name)[1:])}"
    elif not isinstance(value, dict):
        yield where, "must be an object"
    elif field.message_type is not None and field.message_type.full_name != _OBJECTS:
        yield from _violations(value, field.message_type, f"{where}.")


def _is_value(value: Any, enum: EnumDescriptor) -> bool:
    """By name, or as protobuf allows by number; the first of every enum stands for none."""
    if isinstance(value, str):
        found = enum.values_by_name.get(value)
        return found is not None and found.number != 0
    return isinstance(value, int) and not isinstance(value, bool) and value != 0 and value in enum.values_by_number


@cache
def _checked(kind: Descriptor) -> tuple[FieldDescriptor, ...]:
    """The fields that are enums or objects; one such set for each of A2A's few messages."""
    return tuple(
        field
        for field in kind.fields
        if field.enum_type is not None or (field.message_type is not None and field.message_type.full_name not in _FREE)
    )


def from_query[T: ProtoMessage](pairs: Iterable[tuple[str, str]], path: dict[str, str], kind: type[T]) -> T:
    """The request of a GET or DELETE: parameters in camelCase (11.5), the variables of its path, which win. Raises
    A2aError (-32602) with everything that is wrong."""
    fields = {field.json_name: field for field in _described(kind).fields}
    params: dict[str, Any] = {}
    wrong: list[tuple[str, str]] = []
    for name, text in pairs:
        field = fields.get(name)
        if field is None or field.name in path:
            continue
        if name in params:
            wrong.append((name, "was given more than once"))
            continue
        try:
            params[name] = _scalar(text, field)
        except ValueError as error:
            wrong.append((name, str(error)))
    _refuse([*wrong, *_violations(params, _described(kind), "")])
    return parse(params | path, kind)


def _scalar(text: str, field: FieldDescriptor) -> Any:
    """What stands in JSON for this parameter. Raises ValueError."""
    if field.type == FieldDescriptor.TYPE_BOOL:
        if text not in ("true", "false"):
            raise ValueError("must be true or false")
        return text == "true"
    if field.type in _INTEGERS:
        if not _INTEGER.fullmatch(text):
            raise ValueError("must be an integer")
        return int(text)
    if field.message_type is not None and field.message_type.full_name not in _FREE:
        raise ValueError("cannot be given in a query")
    return text
