"""The same question again, known by another id: also to the next daemon."""

from typing import Any

import pytest

from synapsed.pty.observations import WORDS_MAX, Asking


def asked_again(asking: Asking, words: str = "w", times: int = 1) -> None:
    for offset in range(times):
        asking.given(words if not offset else f"{words}-{offset}", 1)
        asking.shown(2, None)
        assert asking.shown(3, words if not offset else f"{words}-{offset}")


def test_what_was_counted_is_kept() -> None:
    asking = Asking()
    asked_again(asking, times=2)
    assert asking.kept == {"w": 2}
    after = Asking(asking.kept)
    assert after._id("w") == "w-2"
    assert after.shown(9, "w-2") is False, "it was there"


def test_the_oldest_are_let_go() -> None:
    asking = Asking()
    for number in range(WORDS_MAX + 1):
        asked_again(asking, f"w{number}")
    asked_again(asking, "w1-1")
    assert len(asking.kept) == WORDS_MAX
    assert "w0" not in asking.kept
    assert list(asking.kept)[-1] == "w1"


@pytest.mark.parametrize("kept", [None, [], "w", {"w": "2"}, {"w": None}])
def test_what_cannot_be_read_counts_nothing(kept: Any) -> None:
    assert Asking(kept).kept == {}
