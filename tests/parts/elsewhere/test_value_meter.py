"""Values are counted as they come, in pieces of any size, and strings have as many commas as they like."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.documents import reading
from synapsed.documents.reading import TooMuch
from synapsed.parts.elsewhere.value_meter import Meter

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.text('\\",:[]{}\r\n'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('a"\\:'), inner),
)
SIZES = st.integers(1, 7)


def refused(*texts: bytes, size: int, stream: bool) -> bool:
    meter, raw = Meter(stream=stream), b"".join(texts)
    try:
        for at in range(0, len(raw), size):
            meter.feed(raw[at : at + size])
        meter.feed(b" ")
    except TooMuch:
        return True
    return False


def measure(value: Any) -> tuple[int, int]:
    """Keys; and what opens a list or an object, and what follows another in it."""
    keys = values = 0
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            keys += len(one)
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        if isinstance(one, dict | list):
            values += 1 + max(0, len(one) - 1)
    return keys, values


@pytest.fixture(scope="module", autouse=True)
def limits() -> Any:
    """So small that drawn documents reach them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "KEYS_MAX", 3)
        patch.setattr(reading, "VALUES_MAX", 5)
        yield


@given(VALUES, SIZES, st.booleans(), st.sampled_from([None, 2]))
def test_a_document_in_pieces_of_any_size(value: Any, size: int, ascii_only: bool, indent: int | None):
    raw = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    keys, values = measure(value)
    assert refused(raw, size=size, stream=False) is (keys > 3 or values > 5)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
def test_each_event_of_a_stream_is_counted_by_itself(end: bytes, size: int):
    event = b"data: [1,2,3,4]" + end
    assert not refused(event * 20, size=size, stream=True)
    assert refused(event, b"data: [1,2,3,4,5,6]", end, size=size, stream=True)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_nothing_in_a_stream_hides_what_follows(size: int):
    """A quote in a comment begins no string."""
    assert refused(b': "\ndata: [1,2,3,4,5,6]\n\n', size=size, stream=True)
    assert refused(b': \\"\r\ndata: [1,2,3,\r\ndata: 4,5,6]\r\n\r\n', size=size, stream=True)
