"""Output is cut so that no portion holds much that costs something, and nothing of it is lost."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.emulator_input import LONGEST, portions

HOSTILE = {
    "resets": b"\x1bc",
    "colours": b"\x1b[38;2;1;2;3ma",
    "titles": b"\x1b]0;t\x07",
    "joiners": "\U0001f469\u200d".encode(),
    "accents": "e\u0301".encode(),
    "syllables": "\u1112\u1161\u11ab".encode(),
    "bytes that are no characters": b"\xff\xfe",
    "continuations": b"\x80",
    "escapes": b"\x1b",
    "other screens": b"\x1b[?1049ha\x1b[?1049l",
}
COSTLY = re.compile(rb"\x1b(?!\[[\d;]*m)|[\xcc-\xe3\xea\xee-\xff]")
COSTLY_MAX = 260
"""Sequences that are no pens, and characters that may join others: each costs at most some tens of microseconds."""

DEAR = {
    "repeating": b"\x1b[65535b",
    "a question about the cursor": b"\x1b[6n",
    "a question about a mode": b"\x1b[?2026$p",
    "a question about a colour": b"\x1b]4;1;?\x07",
    "filling": b"\x1b#8",
    "scrolling": b"\x1b[999S",
    "erasing": b"\x1b[2J",
}


@given(
    st.lists(st.sampled_from([*HOSTILE.values(), *DEAR.values(), b"text ", "漢─ß".encode()]) | st.binary(max_size=9))
)
def test_nothing_is_lost(parts: list[bytes]) -> None:
    data = b"".join(parts)
    assert b"".join(portions(data)) == data


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
def test_little_that_costs_something_in_a_portion(unit: bytes) -> None:
    cut = list(portions(unit * (64 * 1024 // len(unit))))
    assert b"".join(cut) == unit * (64 * 1024 // len(unit))
    assert max(len(COSTLY.findall(portion)) for portion in cut) <= COSTLY_MAX
    assert max(portion.count(b"\x1b") for portion in cut) <= 2 * COSTLY_MAX
    assert max(map(len, cut)) <= LONGEST + 256


@pytest.mark.parametrize("unit", DEAR.values(), ids=DEAR)
def test_a_portion_ends_behind_what_costs_much(unit: bytes) -> None:
    cut = list(portions((b"abc\r\n" + unit) * 3 + b"rest"))
    assert [portion.count(unit) for portion in cut] == [1, 1, 1, 0]


@pytest.mark.parametrize("text", ["text \r\n", "größer ", "漢字仮名", "\t"])
def test_text_goes_in_large_portions(text: str) -> None:
    data = text.encode() * (64 * 1024 // len(text.encode()))
    assert len(list(portions(data))) <= 64


def test_the_screen_is_the_same() -> None:
    data = b"".join([*HOSTILE.values(), *DEAR.values()]) * 3 + b"at the end"
    whole, cut = Screen(40, 10), Screen(40, 10)
    whole.feed(data)
    for portion in portions(data):
        cut.feed(portion)
    assert cut.snapshot() == whole.snapshot()
