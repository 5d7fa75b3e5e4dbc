"""Free JSON of any size comes through both dialects as it was; what A2A's own arrays and numbers may be is bounded."""

import json
from typing import Any

import pytest
from a2a.types import a2a_pb2 as pb

from synapsed.a2a_types.a2a_errors import A2aError
from synapsed.a2a_types.convert import message_from, struct_dict
from synapsed.a2a_types.free_json import DEPTH_MAX, ITEMS_MAX
from synapsed.model.task import DataPart, Message
from synapsed.parts.a2a.params import parse
from synapsed.parts.a2a.v03 import _ROWS, _request


def read(dialect: str, *, parts: list[Any] | None = None, metadata: Any = None, **more: Any) -> tuple[Message, Any]:
    """The message as we have it, and the request's own metadata."""
    kind, role = ({}, "ROLE_USER") if dialect == "1.0" else ({"kind": "text"}, "user")
    parts = parts if dialect == "1.0" or parts is None else [{"kind": "data", **part} for part in parts]
    message = {"messageId": "m", "role": role, "parts": parts or [{"text": "x", **kind}], "metadata": metadata or {}}
    params = json.loads(json.dumps({"message": message, "metadata": metadata or {}, **more}))
    if dialect == "1.0":
        request = parse(params, pb.SendMessageRequest)
    else:
        request = _request(_ROWS["message/send"], "message/send", params)
    return message_from(request.message), struct_dict(request.metadata)


def nested(levels: int, inside: Any) -> Any:
    for _ in range(levels):
        inside = [inside]
    return inside


DIALECTS = pytest.mark.parametrize("dialect", ["1.0", "0.3"])
FREE = {
    "little": {"a": [1, 2.5, None, True, "x", {"b": []}]},
    "keys": {f"key {number}": number for number in range(9_000)},
    "numbers": {"a": list(range(40_000))},
    "objects": {"a": [{"b": [1.5, {}]}] * 1_000},
    "large text": {"a": "x\n€" * 100_000, "b": list(range(100))},
    "nested": {"a": nested(DEPTH_MAX - 20, 1), "b": list(range(100))},
}


@DIALECTS
@pytest.mark.parametrize("free", FREE.values(), ids=FREE)
def test_free_json_comes_through_as_it_was(dialect: str, free: dict[str, Any]):
    message, metadata = read(dialect, parts=[{"data": free, "metadata": free}], metadata=free)
    (part,) = message.parts
    assert isinstance(part, DataPart)
    assert [part.data, part.metadata, message.metadata, metadata] == [free] * 4


def test_data_of_1_0_may_be_an_array():
    message, _ = read("1.0", parts=[{"data": list(range(1_000))}, {"data": [1]}])
    assert [part.data for part in message.parts if isinstance(part, DataPart)] == [list(range(1_000)), [1]]


@pytest.mark.parametrize("data", [list(range(1_000)), [1], "x"])
def test_data_of_0_3_may_not(data: Any):
    with pytest.raises(A2aError, match="data"):
        read("0.3", parts=[{"data": data}])


@DIALECTS
@pytest.mark.parametrize("size", [1, 1_000])
@pytest.mark.parametrize("metadata", [[1], "x", 1])
def test_metadata_is_an_object(dialect: str, size: int, metadata: Any):
    with pytest.raises(A2aError, match="metadata"):
        read(dialect, metadata=metadata * size if isinstance(metadata, list) else metadata)


@DIALECTS
@pytest.mark.parametrize("beside", [0, 1_000])
@pytest.mark.parametrize(
    ("value", "words"),
    [(nested(DEPTH_MAX + 1, 1), "nested deeper than 60"), (10**400, "too large"), (-(10**400), "too large")],
    ids=["nesting", "number", "negative"],
)
def test_what_is_nothing_to_a2a_is_refused_in_little_and_in_much(dialect: str, beside: int, value: Any, words: str):
    with pytest.raises(A2aError, match=words) as refused:
        read(dialect, metadata={"a": value, "b": list(range(beside))})
    assert refused.value.code == -32602


@DIALECTS
def test_arrays_of_a2a_itself_are_bounded(dialect: str):
    data = {"data": {"a": 1}}
    assert len(read(dialect, parts=[data] * ITEMS_MAX)[0].parts) == ITEMS_MAX
    for more in (
        {"parts": [data] * (ITEMS_MAX + 1)},
        {"parts": [{}] * 40_000},
        {"configuration": {"acceptedOutputModes": ["text/plain"] * (ITEMS_MAX + 1)}},
        {"configuration": {"acceptedOutputModes": [1] * 40_000}},
    ):
        with pytest.raises(A2aError, match=f"at most {ITEMS_MAX} elements"):
            read(dialect, **more)


def test_wrapped_data_of_0_3_is_seen_by_the_sdk():
    wrapped = {"data": {"value": [1, 2]}, "metadata": {"data_part_compat": True}}
    (part,) = read("0.3", parts=[wrapped])[0].parts
    assert isinstance(part, DataPart)
    assert part.data == [1, 2]
    with pytest.raises(A2aError, match="data_part_compat"):
        read("0.3", parts=[{**wrapped, "data": {"value": list(range(1_000))}}])


@pytest.mark.parametrize("part", [{"text": "x"}, {"data": 5}, {"data": "x" * 1_000}, {"data": True}])
def test_odd_data_beside_the_mark_of_0_3_is_read(part: dict[str, Any]):
    (found,) = read("1.0", parts=[{**part, "metadata": {"data_part_compat": True}}])[0].parts
    assert isinstance(found, DataPart) == ("data" in part)


ODD = [None, True, 1, -1, 10**400, 1.5, "", "x" * 100, "\0", [], [1], [[]], {}]
ODD += [{"a": 1}, {"": None}, {"a": "x", "b": list(range(100))}, {"data_part_compat": True}, nested(55, 1)]
WHOLE: dict[str, dict[str, Any]] = {
    "1.0": {
        "message": {
            "messageId": "m",
            "contextId": "c",
            "role": "ROLE_USER",
            "parts": [{"text": "x", "metadata": {"data_part_compat": True}}, {"data": {"a": 1}}, {"raw": "AAAA"}],
            "metadata": {"a": 1},
            "extensions": ["e"],
            "referenceTaskIds": ["t"],
        },
        "configuration": {
            "acceptedOutputModes": ["text/plain"],
            "historyLength": 1,
            "returnImmediately": True,
            "taskPushNotificationConfig": {"url": "u", "authentication": {"scheme": "Bearer"}},
        },
        "metadata": {"a": 1},
    },
    "0.3": {
        "message": {
            "kind": "message",
            "messageId": "m",
            "contextId": "c",
            "role": "user",
            "parts": [
                {"kind": "text", "text": "x", "metadata": {"data_part_compat": True}},
                {"kind": "data", "data": {"a": 1}, "metadata": {}},
                {"kind": "file", "file": {"bytes": "AAAA", "name": "n", "mimeType": "text/plain"}},
            ],
            "metadata": {"a": 1},
            "extensions": ["e"],
            "referenceTaskIds": ["t"],
        },
        "configuration": {
            "acceptedOutputModes": ["text/plain"],
            "historyLength": 1,
            "blocking": True,
            "pushNotificationConfig": {"url": "u", "authentication": {"schemes": ["Bearer"]}},
        },
        "metadata": {"a": 1},
    },
}


def places(value: Any) -> list[list[Any]]:
    """The way to each value in it."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way for step, child in steps for way in ([step], *([step, *more] for more in places(child)))]


@DIALECTS
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:20])
def test_an_odd_value_anywhere_is_read_or_refused(dialect: str, odd: Any):
    """Lone surrogates, NaN and infinities are not in it: the reader of bodies lets none through."""
    refusals = set()
    for way in [*places(WHOLE[dialect]), ["message", "parts", 0, "data"], ["message", "parts", 0, "filename"]]:
        params = json.loads(json.dumps(WHOLE[dialect]))
        inner = params
        for step in way[:-1]:
            inner = inner[step]
        inner[way[-1]] = odd
        try:
            kind = pb.SendMessageRequest
            request = (
                parse(params, kind) if dialect == "1.0" else _request(_ROWS["message/send"], "message/send", params)
            )
            message_from(request.message)
            struct_dict(request.metadata)
        except A2aError as error:
            refusals.add(error.code)
        except Exception as error:
            raise AssertionError(f"{way} = {odd!r}"[:200]) from error
    assert refusals <= {-32602, -32005}
