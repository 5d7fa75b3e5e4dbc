"""What is read in pieces is what is read at once, and what is too much is refused before it is read."""

import asyncio
import json
from collections.abc import Callable

import pydantic_core
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.documents import reading
from synapsed.documents.reading import KEYS_MAX, SLICE, VALUES_MAX, TooMuch, read, read_in_thread

TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.text('\\"/ubn€😀\x00\x1f ', max_size=80)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | TEXTS,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(TEXTS, children, max_size=4),
    max_leaves=12,
)


def in_pieces(raw: bytes) -> object:
    steps = reading.reading(raw)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def outcome(act: Callable[[bytes], object], raw: bytes) -> object:
    """The value, or why there is no value."""
    try:
        return act(raw)
    except TooMuch:
        return "a large key"
    except ValueError as error:
        return error.args


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest):
    if "slice_" in request.fixturenames:
        monkeypatch.setattr(reading, "SLICE", request.getfixturevalue("slice_"))


@pytest.mark.parametrize("slice_", [13, 16, 29])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_any_document_in_slices_of_any_size(slice_: int, *, ascii_only: bool):
    @given(VALUES, st.sampled_from([None, 1]))
    def check(value: object, indent: int | None):
        raw = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
        assert outcome(in_pieces, raw) in (value, "a large key")

    check()


@pytest.mark.parametrize("slice_", [13, 16])
def test_any_bytes_are_refused_as_at_once(slice_: int):
    pieces = st.sampled_from(
        [b'"', b"\\", b"\\u", b"\\ud83d", b"\\ude00", b"\xe2\x82\xac", b"\x80", b"a" * 20, b"[", b"]", b":"]
    )

    @given(st.lists(pieces).map(b"".join))
    def check(middle: bytes):
        raw = b'["' + middle + b'"]'
        assert outcome(in_pieces, raw) in (outcome(pydantic_core.from_json, raw), "a large key")

    check()


TEXT = 'ein Wort, “quoted” and "so", back\\slash 😀\n' * 5000


@pytest.mark.parametrize("ascii_only", [True, False])
async def test_a_large_text_is_read_with_pauses(*, ascii_only: bool):
    raw = json.dumps({"a": TEXT, "b": [1, TEXT, {"c": TEXT}], "a ": TEXT}, ensure_ascii=ascii_only).encode()
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    try:
        assert await read(raw) == json.loads(raw)
    finally:
        task.cancel()
    assert turns >= len(raw) / SLICE
    assert read_in_thread(raw) == json.loads(raw)


def _array(one: bytes, count: int) -> bytes:
    return b"[" + b",".join([one] * count) + b"]"


@pytest.mark.parametrize(
    "made",
    [
        lambda: b"{" + b",".join(b'"%d":0' % number for number in range(500_000)) + b"}",
        lambda: _array(b'{"":0}', KEYS_MAX + 1),
        lambda: _array(b"[]", 1_000_000),
        lambda: _array(b"1", 1_000_000),
        lambda: _array(b'""', 1_000_000),
        lambda: b"[" * VALUES_MAX * 2,
        lambda: b'{"%b":1}' % (b"k" * 9_000_000),
    ],
    ids=["keys", "keys of many", "empty arrays", "numbers", "empty strings", "nesting", "one large key"],
)
async def test_too_much_is_refused(made: Callable[[], bytes]):
    with pytest.raises(TooMuch, match="more than"):
        await read(made())


@pytest.mark.parametrize(
    "made",
    [
        lambda: {str(number): number for number in range(KEYS_MAX)},
        lambda: list(range(VALUES_MAX - 1)),
        lambda: ["a:b,c:[{" * 1_000_000],
        lambda: [TEXT, *range(1000)],
    ],
    ids=["keys", "values", "text that looks like them", "beside a text"],
)
async def test_what_is_just_not_too_much_is_read(made: Callable[[], object]):
    raw = json.dumps(made()).encode()
    assert await read(raw) == json.loads(raw)


@pytest.mark.parametrize("text", [TEXT, ""], ids=["beside a text", "alone"])
@pytest.mark.parametrize("number", ["1e999", "1E+400", "-1e400", "NaN", "9" * 1_000_000])
async def test_what_is_no_number_is_refused_in_documents_of_any_size(number: str, text: str):
    raw = b'{"text": %b, "numbers": [%b1, %b]}' % (json.dumps(text).encode(), b"1," * 30_000, number.encode())
    with pytest.raises(ValueError, match=r"number|value"):
        await read(raw)
