"""Framing: any bytes, any chunking."""

import contextlib
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.keeper import frames
from synapsed.keeper.frames import Decoder, Frame, ProtocolError, encode

scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=30)
headers = st.dictionaries(st.text(max_size=10), scalars | st.lists(scalars, max_size=3), max_size=5)
frame_strategy = st.tuples(st.integers(0, 255), headers, st.binary(max_size=300))


def chunks(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in itertools.pairwise(edges)]


@given(st.lists(frame_strategy, max_size=8), st.lists(st.integers(0, 10_000), max_size=20))
def test_any_frames_survive_any_chunking(sent: list[tuple[int, dict[str, object], bytes]], cuts: list[int]) -> None:
    stream = b"".join(encode(*frame) for frame in sent)
    decoder = Decoder()
    got = [frame for chunk in chunks(stream, cuts) for frame in decoder.feed(chunk)]
    assert [(frame.type, frame.header, frame.payload) for frame in got] == sent
    assert len(decoder) == 0


@given(st.binary(max_size=2000), st.lists(st.integers(0, 2000), max_size=10))
def test_garbage_is_frames_or_a_protocol_error_and_never_more(data: bytes, cuts: list[int]) -> None:
    decoder = Decoder()
    try:
        for chunk in chunks(data, cuts):
            decoder.feed(chunk)
            assert len(decoder) <= frames.PREFIX_SIZE + frames.MAX_HEADER + frames.MAX_PAYLOAD
    except ProtocolError as error:
        assert error.code in {"bad_magic", "too_large", "bad_header"}  # noqa: PT017 - garbage may also be harmless
        with pytest.raises(ProtocolError):  # it stays broken
            decoder.feed(encode(frames.PING, {}))


@given(frame_strategy, st.data())
def test_a_flipped_byte_never_escapes_as_another_error(
    sent: tuple[int, dict[str, object], bytes], data: st.DataObject
) -> None:
    stream = bytearray(encode(*sent))
    stream[data.draw(st.integers(0, len(stream) - 1))] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(ProtocolError):
        Decoder().feed(bytes(stream))


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "bad_magic"),
        (bytes([0x4B, 1, 0xFF, 0xFF, 0, 0, 0, 0]), "too_large"),
        (bytes([0x4B, 1, 0, 0, 0xFF, 0, 0, 0]), "too_large"),
        (bytes([0x4B, 1, 0, 2, 0, 0, 0, 0]) + b"[]", "bad_header"),
        (bytes([0x4B, 1, 0, 0, 0, 0, 0, 0]), "bad_header"),
        (bytes([0x4B, 1, 0x3A, 0x98, 0, 0, 0, 0]) + b"[" * 15000, "bad_header"),
        (bytes([0x4B, 1, 0, 1, 0, 0, 0, 0]) + b"\xff", "bad_header"),
    ],
)
def test_clean_errors(raw: bytes, code: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        Decoder().feed(raw)
    assert caught.value.code == code


def test_limits_of_what_is_sent() -> None:
    encode(frames.WRITE, {}, bytes(frames.MAX_PAYLOAD))
    with pytest.raises(ValueError):
        encode(frames.WRITE, {}, bytes(frames.MAX_PAYLOAD + 1))
    with pytest.raises(ValueError):
        encode(frames.WRITE, {"id": "x" * frames.MAX_HEADER})


@pytest.mark.parametrize("value", [None, "1", 1.5, True, -1, 11, [1]])
def test_integer_fields_are_checked(value: object) -> None:
    with pytest.raises(ProtocolError, match="cols"):
        Frame(frames.RESIZE, {"cols": value}).integer("cols", 0, 10)


def test_the_format_is_frozen() -> None:
    """Byte for byte: keepers of this version live on after the code has changed."""
    header = json.dumps({"req": 7, "id": "t.1.paste"}, separators=(",", ":")).encode()
    assert encode(0x03, {"req": 7, "id": "t.1.paste"}, b"hi") == (
        b"\x4b\x03" + len(header).to_bytes(2, "big") + b"\x00\x00\x00\x02" + header + b"hi"
    )
    names = ["HELLO", "SUBSCRIBE", "WRITE", "RESIZE", "SIGNAL", "STOP"]
    names += ["READ", "PING", "ACK_EXIT", "FLOW", "DISCARD", "CLOSE_INPUT"]
    assert [getattr(frames, name) for name in names] == list(range(1, 13))
    assert [frames.WELCOME, frames.REPLY, frames.REFUSED] == [0x80, 0x81, 0x82]
    assert [frames.OUTPUT, frames.GAP, frames.EXITED, frames.ALERT] == [0x90, 0x91, 0x92, 0x93]
