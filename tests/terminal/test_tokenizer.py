"""Output taken apart: the same however it is cut, sequences as terminals mean them, within bounds."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.terminal.tokenizer import (
    MAX_CONTROL,
    PLAIN_CONTROLS,
    ControlSequence,
    ControlString,
    EscapeSequence,
    SystemCommand,
    Token,
    Tokenizer,
    straightened,
    tokens,
)
from tests.support.hostile_bytes import BYTES

LIMIT = 64


def read(data: bytes, *cuts: int, limit: int = LIMIT) -> tuple[list[tuple[bytes, Token | None]], bytes]:
    """The sequences of `data` cut at `cuts`, with what was executed in them; and what waits for its end."""
    tokenizer, found = Tokenizer(limit), []
    for start, end in pairwise([0, *sorted(cuts), len(data)]):
        whole = tokenizer.take(data[start:end])
        found += [(executed, token) for _, _, executed, token in tokens(whole, limit)]
        assert len(tokenizer.pending) <= max(limit, MAX_CONTROL) + len(b"\x1b")
    return found, tokenizer.pending


def is_plain(token: Token) -> bool:
    """Whether it is passed over where nothing in it has to be straightened."""
    return not list(tokens(bytes(token)))


SEQUENCES: dict[bytes, Token | None] = {
    b"\x1b[6n": ControlSequence(b"", b"6", b"", b"n"),
    b"\x1b[?25;4h": ControlSequence(b"?", b"25;4", b"", b"h"),
    b"\x1b[3 q": ControlSequence(b"", b"3", b" ", b"q"),
    b"\x1bc": EscapeSequence(b"c"),
    b"\x1b\\": EscapeSequence(b"\\"),
    b"\x1b%G": EscapeSequence(b"%G"),
    b"\x1b]0;t\x07": SystemCommand(b"0;t", bel=True),
    b"\x1b]0;\xff\x1b\\": SystemCommand(b"0;\xff", bel=False),
    b"\x1bP$qm\x1b\\": ControlString(b"P", b"$qm"),
    b"\x1b_Ga=q\x1b\\": ControlString(b"_", b"Ga=q"),
    b"\x1b^x\x1b\\": ControlString(b"^", b"x"),
    b"\x1bXx\x1b\\": ControlString(b"X", b"x"),
    b"\x1b[1?h": None,
    b"\x1b[ 1q": None,
    b"\x1b[6\x18": None,
    b"\x1b]52;c;x\x18": None,
    b"\x1bPq\x1a": None,
    b"\x1b(\x18": None,
}


@pytest.mark.parametrize("data", SEQUENCES, ids=repr)
def test_what_a_sequence_is(data: bytes) -> None:
    assert read(b"a" + data + b"b") == ([(b"", SEQUENCES[data])], b"")


SPOILT: dict[bytes, tuple[bytes, Token | None]] = {
    b"\x1b[\x006n": (b"", ControlSequence(b"", b"6", b"", b"n")),
    b"\x1b[\b6\r\nn": (b"\b\r\n", ControlSequence(b"", b"6", b"", b"n")),
    b"\x1b\x00[\x7f6\xffn": (b"", ControlSequence(b"", b"6", b"", b"n")),
    b"\x1b[3\n1m": (b"\n", ControlSequence(b"", b"31", b"", b"m")),
    b"\x1b\x05Z": (b"", EscapeSequence(b"Z")),
    b"\x1b(\nB": (b"\n", EscapeSequence(b"(B")),
    b"\x1b\x07]5\x00\r2;c;x\x07": (b"\x07", SystemCommand(b"52;c;x", bel=True)),
    b"\x1bP\x00$q\x07m\xc2\x9c\x1b\\": (b"", ControlString(b"P", b"$qm")),
    b"\x1b[6\n\x18": (b"\n", None),
}
"""With what has no place in it: what is executed, and what it is."""


@pytest.mark.parametrize("data", SPOILT, ids=repr)
def test_what_it_is_with_strays_in_it(data: bytes) -> None:
    for cut in range(len(data) + 1):
        assert read(data, cut) == ([SPOILT[data]], b""), cut


def test_an_escape_ends_a_sequence_and_begins_one() -> None:
    device_status = ControlSequence(b"", b"6", b"", b"n")
    for begun in (b"\x1b", b"\x1b[3", b"\x1b]52;c;x", b"\x1bPq", b"\x1b_G", b"\x1b("):
        assert read(begun + b"\x1b[6n")[0] == [(b"", None), (b"", device_status)]


def test_plain_sequences_are_passed_over_and_mean_the_same_with_strays() -> None:
    for final in PLAIN_CONTROLS:
        assert read(b"\x1b[1;2%c" % final) == ([], b"")
        assert straightened(b"\x1b[1\n;2%c" % final) == b"\n\x1b[1;2%c" % final


def test_text_is_valid_and_has_no_control_that_does_nothing() -> None:
    assert straightened(b"a\x00\x05\x18\x7f\xff\xc2\x9bb\t\r\n") == "a\ufffd\ufffdb\t\r\n".encode()
    assert straightened(b"\xe2\x1b[1?h\x80\x8b") == "\ufffd\ufffd\ufffd".encode(), "no character is put together"


@given(BYTES, st.lists(st.integers(0, 400), max_size=6))
def test_any_bytes_in_any_chunks(data: bytes, cuts: list[int]) -> None:
    assert read(data, *(cut for cut in cuts if cut <= len(data))) == read(data)
    assert read(data, *range(1, len(data))) == read(data)


@given(BYTES)
def test_what_is_written_again_is_read_as_the_same(data: bytes) -> None:
    """And has nothing left to straighten."""
    data = data[: len(data) - len(read(data, limit=1 << 20)[1])]
    written = straightened(data)
    assert straightened(written) == written
    meant = [token for _, token in read(data)[0] if token is not None]
    assert [token for _, token in read(written)[0]] == [token for token in meant if not is_plain(token)]


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (b"\x1b]52;c;", b"\x07"),
        (b"\x1b]52;c;", b"\x1b\\"),
        (b"\x1b\nP", b"\x1b\\"),
        (b"\x1b_", b"\x18"),
        (b"\x1b]", b""),
    ],
)
@pytest.mark.parametrize("more", range(-4, 4))
def test_a_string_that_is_too_long_is_dropped_up_to_its_end(begin: bytes, end: bytes, more: int) -> None:
    data = begin + b"A" * (LIMIT - len(begin) - len(end) + more) + end + b"\x1b[6n"
    device_status = ControlSequence(b"", b"6", b"", b"n")
    whole = meant(data)
    assert whole[-1] == device_status
    assert len(whole) == 1 or more <= 0
    for size in (1, 7, LIMIT):
        assert meant(data, *range(0, len(data), size)) == whole


def meant(data: bytes, *cuts: int) -> list[Token]:
    return [token for _, token in read(data, *cuts)[0] if token is not None and token != EscapeSequence(b"\\")]


def test_so_is_a_sequence() -> None:
    data = b"\x1b[" + b"\n1" * MAX_CONTROL + b"n\x1b[6n"
    for size in (1021, MAX_CONTROL, 3 * MAX_CONTROL):
        assert meant(data, *range(0, len(data), size)) == [ControlSequence(b"", b"6", b"", b"n")]


def test_a_string_that_comes_byte_by_byte_is_read_in_linear_time() -> None:
    """No deadline is asserted: quadratic behaviour would exceed the test's time-out."""
    tokenizer = Tokenizer(1 << 20)
    tokenizer.take(b"\x1bPq")
    for _ in range(300_000):
        assert tokenizer.take(b"~") == b""
    assert len(tokenizer.take(b"\x1b\\")) == 300_005
