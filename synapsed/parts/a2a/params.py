"""Requests from JSON and from queries, with checks that the SDK's parser lacks: it ignores unknown fields, as A2A
demands (5.7), but also treats an unknown enum value as not set, and a value that is no object as an empty object."""

import math
from collections.abc import Callable, Iterable
from functools import cache, partial
from itertools import islice
from typing import Any, Final, cast

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message as ProtoMessage
from google.protobuf.timestamp_pb2 import Timestamp

import synapsed.a2a_types.free_json  # noqa: F401 - for what it does to protobuf
from synapsed.a2a_types.a2a_errors import A2aError, invalid_params
from synapsed.a2a_types.free_json import DEPTH_MAX, ITEMS_MAX, NUMBER_MAX, packed
from synapsed.shared.regex import regex

_INTEGER: Final = regex(r"-?[0-9]{1,19}")
_OBJECTS: Final = "google.protobuf.Struct"
_FREE: Final = frozenset({"google.protobuf.Value"})
"""Well-known types whose JSON may be anything."""
_BASE64: Final = regex(r"[A-Za-z0-9+/_-]*={0,2}")
_INTEGERS: Final = frozenset({FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_INT64})
_FILTERS: Final = frozenset({"lf.a2a.v1.ListTasksRequest.status"})
"""Enums of filters: the value zero of such an enum filters nothing."""
_TIME: Final = "google.protobuf.Timestamp"
_WELL_KNOWN: Final = "google.protobuf."
_PLAIN: Final = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BOOL)
"""Types whose checked values are set as they are."""
MAX_TOLD: Final = 10
"""Most faults of one request that are listed."""


def parse[T: ProtoMessage](params: dict[str, Any], kind: type[T]) -> T:
    """Returns the request. Raises A2aError (-32602). Unknown fields are ignored, unknown values refused."""
    params = packed(params)
    _refuse(_violations(params, _described(kind), ""))
    message = kind()
    try:
        _fill(message, params)
    except (json_format.ParseError, TypeError, ValueError, OverflowError, AttributeError, RecursionError) as error:
        raise unreadable(params) from error
    return message


def _fill(message: ProtoMessage, value: dict[str, Any]) -> None:
    """Sets the fields of the message to what `value` has for them, as protobuf's own parser does, which takes four
    times as long. `value` has been checked. Raises the errors of that parser, and ValueError."""
    for names, take in _setters(_described(type(message))):
        for name in names:
            if name in value:
                take(message, value[name])


@cache
def _setters(kind: Descriptor) -> list[tuple[tuple[str, ...], Callable[[ProtoMessage, Any], None]]]:
    """Returns the names of each field, and a function that sets it."""
    return [(names, _setter(field, repeated=repeated)) for field, names, repeated in _fields(kind)]


def _setter(field: FieldDescriptor, *, repeated: bool) -> Callable[[ProtoMessage, Any], None]:
    inner, enum = field.message_type, field.enum_type
    if inner is not None and not inner.full_name.startswith(_WELL_KNOWN) and not inner.GetOptions().map_entry:
        return partial(_set_messages if repeated else _set_message, field.name)
    if repeated or inner is not None or not (enum is not None or field.type in _PLAIN):
        return partial(_set_by_protobuf, field.json_name)
    return partial(_set_plain, field.name) if enum is None else partial(_set_choice, field.name, enum)


def _set_by_protobuf(name: str, message: ProtoMessage, value: Any) -> None:
    json_format.ParseDict({name: value}, message, ignore_unknown_fields=True)


def _set_message(name: str, message: ProtoMessage, value: Any) -> None:
    if value is not None:
        part = getattr(message, name)
        part.SetInParent()
        _fill(part, value)


def _set_messages(name: str, message: ProtoMessage, value: Any) -> None:
    for each in value or ():
        _fill(getattr(message, name).add(), each)


def _set_choice(name: str, enum: EnumDescriptor, message: ProtoMessage, value: Any) -> None:
    if value is not None:
        setattr(message, name, enum.values_by_name[value].number if isinstance(value, str) else value)


def _set_plain(name: str, message: ProtoMessage, value: Any) -> None:
    if value is not None:
        setattr(message, name, value)


def unreadable(params: Any) -> A2aError:
    """Returns -32602 for a request that passed the checks but not the SDK's types, whose words mean nothing to a
    client."""
    place, fault = _fault(params, "", 0) or ("params", "has a value that A2A has no place for")
    return invalid_params(place, fault)


def _fault(value: Any, path: str, depth: int) -> tuple[str, str] | None:
    """Returns a value that JSON allows and A2A does not, as its place and the reason; None if there is no such
    value."""
    place = path or "params"
    if depth > DEPTH_MAX:
        return place, f"is nested deeper than {DEPTH_MAX} levels"
    if isinstance(value, float) and not math.isfinite(value):
        return place, "must be a finite number"
    if isinstance(value, int) and not -NUMBER_MAX <= value <= NUMBER_MAX:
        return place, "is too large a number"
    if isinstance(value, dict):
        children = ((f"{path}.{name}" if path else name, child) for name, child in value.items())
    elif isinstance(value, list):
        children = ((f"{path}[{index}]", child) for index, child in enumerate(value))
    else:
        return None
    return next((found for where, child in children if (found := _fault(child, where, depth + 1))), None)


def _described(kind: type[ProtoMessage]) -> Descriptor:
    """Returns the descriptor of a type; it has this type in every implementation of protobuf's runtime."""
    return cast("Descriptor", kind.DESCRIPTOR)


def _refuse(violations: Iterable[tuple[str, str]]) -> None:
    if wrong := list(islice(violations, MAX_TOLD)):
        first, *more = wrong
        raise invalid_params(*first, *more)


def _violations(value: dict[str, Any], kind: Descriptor, path: str) -> Iterable[tuple[str, str]]:
    for field, known, repeated in _fields(kind):
        names = [name for name in known if value.get(name) is not None]
        if len(names) > 1:
            yield f"{path}{names[0]}", f"is given twice, also as {names[1]}"
        for name in names:
            child = value[name]
            items = child if isinstance(child, list) and repeated else [child]
            if repeated and not isinstance(child, list):
                yield f"{path}{name}", "must be an array"
                continue
            if repeated and len(items) > ITEMS_MAX:
                yield f"{path}{name}", f"must have at most {ITEMS_MAX} elements"
                continue
            for index, item in enumerate(items):
                where = f"{path}{name}[{index}]" if repeated else f"{path}{name}"
                yield from _wrong(item, field, where)
    for choice in _choices(kind):
        given = [known[0] for known in choice if any(value.get(name) is not None for name in known)]
        if len(given) > 1:
            allowed = ", ".join(known[0] for known in choice)
            yield path.removesuffix(".") or "params", f"must have only one of {allowed}, not {' and '.join(given)}"


@cache  # a descriptor makes its fields again at each access
def _fields(kind: Descriptor) -> list[tuple[FieldDescriptor, tuple[str, ...], bool]]:
    """Returns each field with its names in JSON, and True if it is an array."""
    return [(field, _names(field), field.is_repeated) for field in kind.fields]


@cache
def _choices(kind: Descriptor) -> list[list[tuple[str, ...]]]:
    """Returns the names of fields of which only one may be given."""
    return [[_names(field) for field in choice.fields] for choice in kind.oneofs if len(choice.fields) > 1]


def _names(field: FieldDescriptor) -> tuple[str, ...]:
    """Returns a field's names in JSON; errors show the first."""
    return tuple(dict.fromkeys((field.json_name, field.name)))


def _wrong(value: Any, field: FieldDescriptor, where: str) -> Iterable[tuple[str, str]]:
    message = field.message_type
    if field.enum_type is not None:
        if not _is_value(value, field.enum_type) and not (
            field.full_name in _FILTERS and _is_none(value, field.enum_type)
        ):
            yield where, f"must be one of {', '.join(list(field.enum_type.values_by_name)[1:])}"
    elif message is None or message.full_name == _TIME:
        fault = _wrong_time(value) if message is not None else _wrong_scalar(value, field)
        if fault is not None:
            yield where, fault
    elif message.full_name in _FREE:
        return
    elif not isinstance(value, dict):
        yield where, "must be an object"
    elif message.full_name != _OBJECTS:
        yield from _violations(value, message, f"{where}.")


def _wrong_scalar(value: Any, field: FieldDescriptor) -> str | None:
    """Returns the reason why a value does not fit the field's type, None if it fits."""
    if field.type == FieldDescriptor.TYPE_BOOL:
        return None if isinstance(value, bool) else "must be true or false"
    if field.type in _INTEGERS:
        whole = isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
        if not whole and not (isinstance(value, str) and _INTEGER.fullmatch(value)):
            return "must be a whole number"
        most = 1 << (31 if field.type == FieldDescriptor.TYPE_INT32 else 63)
        return None if -most <= int(value) < most else "is too large a number"
    if field.type == FieldDescriptor.TYPE_BYTES:
        return None if isinstance(value, str) and _BASE64.fullmatch(value) else "must be base64"
    if field.type == FieldDescriptor.TYPE_STRING:
        return None if isinstance(value, str) else "must be a string"
    return None


def _wrong_time(value: Any) -> str | None:
    try:
        Timestamp().FromJsonString(value)
    except (TypeError, ValueError, AttributeError):
        return "must be a time such as 2026-01-31T12:00:00Z"
    return None


def _is_value(value: Any, enum: EnumDescriptor) -> bool:
    """Returns True for a value of the enum, by name, or by number as protobuf allows; the first value of every enum
    means no value."""
    if isinstance(value, str):
        found = enum.values_by_name.get(value)
        return found is not None and found.number != 0
    return isinstance(value, int) and not isinstance(value, bool) and value != 0 and value in enum.values_by_number


def _is_none(value: Any, enum: EnumDescriptor) -> bool:
    return value in (0, enum.values_by_number[0].name) and not isinstance(value, bool)


def from_query[T: ProtoMessage](pairs: Iterable[tuple[str, str]], path: dict[str, str], kind: type[T]) -> T:
    """Returns the request of a GET or DELETE: parameters in camelCase (11.5), and the variables of its path, which win.
    Raises A2aError (-32602) with all faults."""
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
    """Returns the JSON value of this parameter. Raises ValueError."""
    if field.type == FieldDescriptor.TYPE_BOOL:
        if text not in ("true", "false"):
            raise ValueError("must be true or false")
        return text == "true"
    if field.type in _INTEGERS:
        if not _INTEGER.fullmatch(text):
            raise ValueError("must be an integer")
        return int(text)
    if field.message_type is not None and field.message_type.full_name not in {*_FREE, _TIME}:
        raise ValueError("cannot be given in a query")
    return text
