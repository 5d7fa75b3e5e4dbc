"""What sets the clipboard of a terminal that looks on is not shown to it; everything else is, byte for byte."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from synapsed.terminal.clipboard import ClipboardFilter

SETS = [
    b"\x1b]52;c;aGVsbG8=\x07",
    b"\x1b]52;;aGVsbG8=\x1b\\",
    b"\x1b]052;c;aGVsbG8=\x07",
    b"\x1b]52;c;!\x07",
    b"\xc2\x9d52;c;aGVsbG8=\xc2\x9c",
    b"\x1b]5522;type=write;\x1b\\",
    b"\x1b]1337;Copy=:aGVsbG8=\x07",
    b"\x1b]1337;CopyToClipboard=find\x07",
    b"\x1b]1337;EndCopy\x07",
    b"\x1b]52;c;" + b"QUFB" * 100_000 + b"\x1b\\",
]
OTHERS = [
    b"\x1b]0;52;title\x07",
    b"\x1b]2;1337;Copy\x07",
    b"\x1b]521;x\x07",
    b"\x1b]1337;SetMark\x07",
    b"\x1b]8;;https://example.org/52;\x1b\\link\x1b]8;;\x1b\\",
    b"\x1b[52;1H52;c;\x1b[m",
    "\u00c2\u00a0\u009b52;é日本".encode(),
    b"\x1bPq\x1b\\\xff\xc2",
]


def through(*pieces: bytes) -> bytes:
    clean = ClipboardFilter()
    return b"".join(clean.feed(piece) for piece in pieces)


@pytest.mark.parametrize("sets", SETS, ids=lambda sets: repr(sets[:24]))
def test_nothing_of_it_is_shown(sets: bytes) -> None:
    assert through(b"before\x1b[m" + sets + b"\x1b[1mafter") == b"before\x1b[m\x1b[1mafter"
    if len(sets) < 100:
        assert through(*(bytes([byte]) for byte in b"a" + sets + b"z")) == b"az"


@pytest.mark.parametrize("other", OTHERS, ids=repr)
def test_everything_else_is(other: bytes) -> None:
    assert through(other, b".") == other + b"."
    assert through(*(bytes([byte]) for byte in other), b".") == other + b"."


@pytest.mark.parametrize("other", [b"\x1b[31mred", b"\x1b]0;title\x07", b"\x1bc"])
def test_a_sequence_that_begins_within_it_ends_it(other: bytes) -> None:
    assert through(b"\x1b]52;c;aGVs" + other) == other
    assert through(b"\x1b]52;c;aGVs\x1b", other[1:]) == other


def test_it_counts() -> None:
    clean = ClipboardFilter()
    clean.feed(b"\x1b]52;c;YQ==\x07" * 3)
    assert clean.dropped == 3


@given(st.lists(st.sampled_from([*SETS[:9], *OTHERS, b"text", b"\x1b"]), max_size=8), st.data())
@example([b"\x1b", SETS[0]], None)
def test_any_chunking_gives_the_same(stream: list[bytes], data: st.DataObject | None) -> None:
    whole = b"".join(stream) + b"."
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6))) if data is not None else [1, 2]
    pieces = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert through(*pieces) == through(whole)
    assert b"]52;" not in through(whole)
