import asyncio
import json
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.parts.session_server.messages import LONG, objects_in
from synapsed.shared import outside_json
from synapsed.shared.sse_parser import SseEvent, SseParser, SseTooLarge

WHOLE = b': comment\ndata: {"a": 1}\n\ndata:{"b": "\xe2\x9c\xb3"}\n\ndata: broken\n\ndata: [1]\n\ndata: {"c": 3}\n\n'


async def found_in(events: list[SseEvent]) -> list[dict[str, Any]]:
    return [found async for found in objects_in(events)]


@given(st.lists(st.integers(0, len(WHOLE)), max_size=6))
def test_stream_is_read_whatever_its_pieces(at: list[int]) -> None:
    cuts = sorted(at)
    stream = SseParser()
    events = [e for a, b in zip([0, *cuts], [*cuts, len(WHOLE)], strict=True) for e in stream.feed(WHOLE[a:b])]
    assert asyncio.run(found_in(events)) == [{"a": 1}, {"b": "✳"}, {"c": 3}]


def test_event_without_an_end_is_given_up() -> None:
    stream = SseParser(1000)
    list(stream.feed(b"x" * 1000))
    with pytest.raises(SseTooLarge, match="more than 1000 bytes"):
        list(stream.feed(b"x"))


@pytest.mark.parametrize(("size", "beside"), [(100, False), (LONG, True)])
async def test_a_long_event_is_parsed_in_a_thread(size: int, beside: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed_in: list[int] = []

    def noted(text: str) -> Any:
        parsed_in.append(threading.get_ident())
        return outside_json.read_json(text)

    monkeypatch.setattr("synapsed.parts.session_server.messages.read_json", noted)
    told = json.dumps({"text": "x" * size})
    assert await found_in(list(SseParser().feed(f"data: {told}\n\n".encode()))) == [{"text": "x" * size}]
    assert (parsed_in != [threading.get_ident()]) is beside
