"""JSON of others: one error for all that is wrong with it, and a value that can be worked with."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.shared.outside_json import DEPTH_MAX, DIGITS_MAX, NotJson, read_json, read_object
from tests.documents.test_reading import VALUES


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_any_document_is_read(value: object, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert read_json(text) == read_json(text.encode()) == value


@given(st.binary(max_size=60) | st.text('[]{}",:\\ud8e1-.9', max_size=60).map(str.encode))
def test_any_bytes_are_a_value_or_one_error(raw: bytes) -> None:
    with suppress(NotJson):
        json.dumps(read_json(raw), ensure_ascii=False, allow_nan=False).encode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no",
        "[" * 16_000,
        '{"a":' * 100_000,
        "[" * 5000 + "]" * 5000,
        "[" * (DEPTH_MAX + 1) + "]" * (DEPTH_MAX + 1),
        '{"a":[' * 101 + "]}" * 101,
        "1" * 5000,
        "-" + "1" * (DIGITS_MAX + 1),
        "1e400",
        "-1e400",
        "1" * 400 + ".0",
        "NaN",
        "[-Infinity]",
        "{} {}",
        '"\n"',
    ],
    ids=lambda text: text[:12],
)
@pytest.mark.parametrize("as_", [str, str.encode], ids=["text", "bytes"])
def test_each_kind_of_trouble_is_the_same_error(text: str, as_: Callable[[str], Any]) -> None:
    with pytest.raises(NotJson):
        read_json(as_(text))


@pytest.mark.parametrize("raw", [b"\xff", b'"\xed\xa0\x80"', "{}".encode("utf-16"), b'{"a": 1}\x00'])
def test_bytes_that_are_not_utf_8_are_not_json(raw: bytes) -> None:
    with pytest.raises(NotJson):
        read_json(raw)


def test_depth_and_numbers_up_to_the_limits_are_read() -> None:
    deep = "[" * DEPTH_MAX + "]" * DEPTH_MAX
    assert json.dumps(read_json(deep)) == deep
    assert read_json("9" * DIGITS_MAX) == 10**DIGITS_MAX - 1
    assert read_json("[" + ",".join(["{}"] * 1000) + "]") == [{}] * 1000, "wide is not deep"
    assert read_json(b'\xef\xbb\xbf{"a":1}') == {"a": 1}, "some editors put a mark before the text"


@pytest.mark.parametrize("half", ["\\ud83d", "\\uDE00", "\\ude00\\ud83d"])
def test_half_of_a_character_is_replaced_also_in_a_key(half: str) -> None:
    told = read_json(f'{{"{half}": ["a{half}b", "\\ud83d\\ude00"]}}')
    count = half.count("\\")
    assert told == {"\ufffd" * count: ["a" + "\ufffd" * count + "b", "😀"]}
    assert read_json('["a\ud800"]') == ["a\ufffd"]
    assert read_json('["\\\\ud800"]') == ["\\ud800"], "it is a backslash and letters"


@pytest.mark.parametrize("text", ["[]", "null", "3", '"{}"'])
def test_an_object_is_wanted(text: str) -> None:
    with pytest.raises(NotJson, match="not an object"):
        read_object(text)
    assert read_object('{"a": []}') == {"a": []}
