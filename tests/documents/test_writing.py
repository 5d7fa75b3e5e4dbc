"""Large texts: the same JSON as of anything else, encoded once for all who write it at that time."""

import gc
import json

from hypothesis import given
from hypothesis import strategies as st

from synapsed.documents.writing import LARGE, PIECE, SharedText, Texts, encode_json, sliced

TEXT = 'ein “Wort”, a "quote"\nand \x01 and 🌊 ' * (LARGE // 30)


def large(value: object) -> list[SharedText]:
    return [part for part in Texts().encode(value) if isinstance(part, SharedText)]


def test_the_json_is_that_of_the_whole():
    value = {"a": [1, TEXT, {"b": TEXT + "x", "c": "small"}], "d": None, "e": float("nan"), TEXT: TEXT}
    assert b"".join(sliced(Texts().encode(value))) == encode_json(value)


@given(st.recursive(st.text() | st.integers() | st.sampled_from([TEXT, TEXT[1:]]), lambda c: st.lists(c, max_size=4)))
def test_any_value(value):
    assert json.loads(b"".join(sliced(Texts().encode(value)))) == value


def test_what_is_small_is_not_divided():
    assert Texts().encode({"a": "x" * (LARGE - 1)}) == [encode_json({"a": "x" * (LARGE - 1)})]
    assert not large(["x" * (LARGE - 1)])


def test_a_text_is_shared_by_those_who_write_it_and_by_nobody_longer():
    texts = Texts()
    one, other = texts.encode({"id": 1, "text": TEXT}), texts.encode([TEXT[:1] + TEXT[1:]])
    one_text = next(part for part in one if isinstance(part, SharedText))
    assert any(part is one_text for part in other)
    assert isinstance(one_text, SharedText)
    assert [id(piece) for piece in one_text.pieces()] == [id(piece) for piece in one_text.pieces()]
    del one, other, one_text
    gc.collect()
    assert not texts._held


def test_no_slice_is_large():
    slices = list(sliced([b"x" * (3 * PIECE + 1), *Texts().encode([TEXT]), b"y"]))
    assert max(map(len, slices)) <= 6 * PIECE
    assert len(slices) > 4


async def test_the_whole_is_shared_too():
    texts = Texts()
    one, other = await texts.whole({"text": TEXT}), await texts.whole({"text": TEXT})
    assert one is other
    assert json.loads(one.data) == {"text": TEXT}
    assert (await texts.whole(b"{}")).data == b"{}"
    assert json.loads((await texts.whole({"a": 1})).data) == {"a": 1}
