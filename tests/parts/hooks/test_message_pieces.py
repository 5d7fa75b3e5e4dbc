"""Pieces of a message, reported by processes that overtake each other."""

import random

from hypothesis import given
from hypothesis import strategies as st

from synapsed.parts.hooks import message_pieces
from synapsed.parts.hooks.message_pieces import MessagePieces


@given(st.lists(st.text(min_size=1, max_size=3), max_size=12), st.randoms(use_true_random=False))
def test_they_are_put_in_order(texts: list[str], order: random.Random) -> None:
    numbered = list(enumerate(texts))
    order.shuffle(numbered)
    said, there = MessagePieces(), set[int]()
    for number, text in numbered:
        before = said_so_far(texts, there)
        there.add(number)
        assert before + said.take("m", number, text) == said_so_far(texts, there)
    assert said_so_far(texts, there) == "".join(texts)


def said_so_far(texts: list[str], there: set[int]) -> str:
    known = next((number for number in range(len(texts)) if number not in there), len(texts))
    return "".join(texts[:known])


def test_one_told_again_counts_once() -> None:
    said = MessagePieces()
    assert [said.take("m", number, text) for number, text in ((0, "a"), (0, "a"), (1, "b"), (0, "a"))] == [
        "a", "", "b", "",
    ]  # fmt: skip


def test_what_comes_late_of_an_earlier_message_is_not_said() -> None:
    said = MessagePieces()
    assert said.take("m1", 0, "a") == "a"
    assert said.take("m2", 1, "d") == ""
    assert said.take("m1", 1, "b") == ""
    assert said.take("m2", 0, "c") == "cd"


def test_what_is_held_is_bounded() -> None:
    said = MessagePieces()
    for number in range(1, 3 * message_pieces.HELD_MAX):
        assert said.take("m", number, "x") == ""
    assert said.take("m", 0, "x") == ""
