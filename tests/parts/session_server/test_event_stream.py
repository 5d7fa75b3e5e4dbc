import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.parts.session_server.messages import object_in
from synapsed.shared.sse_parser import SseParser, SseTooLarge

WHOLE = b': comment\ndata: {"a": 1}\n\ndata:{"b": "\xe2\x9c\xb3"}\n\ndata: broken\n\ndata: [1]\n\ndata: {"c": 3}\n\n'


@given(st.lists(st.integers(0, len(WHOLE)), max_size=6))
def test_stream_is_read_whatever_its_pieces(at: list[int]) -> None:
    cuts = sorted(at)
    stream = SseParser()
    events = [e for a, b in zip([0, *cuts], [*cuts, len(WHOLE)], strict=True) for e in stream.feed(WHOLE[a:b])]
    assert list(filter(None, map(object_in, events))) == [{"a": 1}, {"b": "✳"}, {"c": 3}]


def test_event_without_an_end_is_given_up() -> None:
    stream = SseParser(1000)
    list(stream.feed(b"x" * 1000))
    with pytest.raises(SseTooLarge, match="more than 1000 bytes"):
        list(stream.feed(b"x"))
