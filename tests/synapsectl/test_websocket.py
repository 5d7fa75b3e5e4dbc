"""The WebSocket client: its parser against any chunking, its frames against a real server."""

from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsectl.client import Client
from synapsectl.errors import ApiError, BadAnswer
from synapsectl.websocket import BINARY, CLOSE, PING, TEXT, FrameError, FrameParser, WebSocket, WebSocketMessage, encode
from tests.synapsectl.fake_daemon import FakeDaemon


def frame(first: int, payload: bytes) -> bytes:
    """A server's frame."""
    size = len(payload)
    if size < 126:
        return bytes((first, size)) + payload
    if size < 1 << 16:
        return bytes((first, 126)) + size.to_bytes(2) + payload
    return bytes((first, 127)) + size.to_bytes(8) + payload


STREAM = [
    (frame(0x82, b"redraw"), WebSocketMessage(BINARY, b"redraw")),
    (frame(0x02, b"in ") + frame(0x89, b"p"), WebSocketMessage(PING, b"p")),
    (frame(0x00, b"three ") + frame(0x80, b"pieces"), WebSocketMessage(BINARY, b"in three pieces")),
    (frame(0x81, b"x" * 300), WebSocketMessage(TEXT, b"x" * 300)),
    (frame(0x82, b"y" * 70_000), WebSocketMessage(BINARY, b"y" * 70_000)),
    (frame(0x82, b""), WebSocketMessage(BINARY, b"")),
    (frame(0x88, b"\x03\xe8"), WebSocketMessage(CLOSE, b"\x03\xe8")),
]
RAW = b"".join(raw for raw, _ in STREAM)


@given(st.lists(st.integers(0, len(RAW)), max_size=10))
def test_messages_in_any_chunking(cuts: list[int]) -> None:
    parser = FrameParser()
    edges = [0, *sorted(cuts), len(RAW)]
    messages = [m for a, b in pairwise(edges) for m in parser.feed(RAW[a:b])]
    assert messages == [message for _, message in STREAM]


@pytest.mark.parametrize(
    "wrong", [b"\xc2\x00", b"\x82\x80abcd", b"\x80\x00", b"\x02\x00\x02\x00", b"\x82\x7f" + b"\xff" * 8]
)
def test_what_breaks_the_protocol(wrong: bytes) -> None:
    with pytest.raises(FrameError):
        FrameParser().feed(wrong)


@given(st.binary())
def test_any_bytes_are_parsed_or_refused(data: bytes) -> None:
    with suppress(FrameError):
        FrameParser().feed(data)


@given(st.binary(max_size=300), st.binary(min_size=4, max_size=4))
def test_frames_are_masked(payload: bytes, mask: bytes) -> None:
    raw = encode(BINARY, payload, mask)
    head = 6 if len(payload) < 126 else 8
    assert raw[head - 4 : head] == mask
    assert bytes(byte ^ mask[i % 4] for i, byte in enumerate(raw[head:])) == payload


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 300_000])
def test_every_size_arrives(daemon: FakeDaemon, size: int) -> None:
    daemon.redraw = b"r" * size
    socket = WebSocket.connect(Client(str(daemon.socket)), "/agents/claude/terminal", {"cols": 80, "rows": 24})
    try:
        assert next(socket.messages()) == WebSocketMessage(BINARY, b"r" * size)
        socket.send(BINARY, b"k" * size)
        while socket.unsent:
            socket.flush()
        daemon.until(lambda: len(daemon.typed) == size)
        daemon.exit(0)
        assert next(socket.messages()).opcode == TEXT
        with pytest.raises(BadAnswer):
            next(socket.messages())
    finally:
        socket.close(1)


def test_a_refusal_is_the_daemons_own(daemon: FakeDaemon) -> None:
    client = Client(str(daemon.socket))
    with pytest.raises(ApiError) as caught:
        WebSocket.connect(client, "/agents/nobody/terminal")
    assert caught.value.code == "UNKNOWN_AGENT"
    with pytest.raises(BadAnswer):
        WebSocket.connect(client, "/agents")
