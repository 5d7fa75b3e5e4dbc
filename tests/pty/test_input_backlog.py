"""Whether the program reads what is typed: the keeper is asked, once where one answer will do."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from synapsed.errors import KeeperLost
from synapsed.keepers.client import KeeperClient
from synapsed.pty.screen_looks import Unread


class Keeper:
    def __init__(self) -> None:
        self.asked = 0
        self.unread = 0
        self.lost = False

    async def ping(self) -> Any:
        self.asked += 1
        if self.lost:
            raise KeeperLost("gone")
        return SimpleNamespace(unread=self.unread, line_mode=False, echo=None, foreground=7)


@pytest.fixture
def keeper() -> Keeper:
    return Keeper()


@pytest.fixture
def unread(keeper: Keeper) -> Unread:
    return Unread(lambda: cast("KeeperClient", keeper), lambda: None)


async def test_who_asked_ahead_does_not_wait_for_the_keeper(keeper: Keeper, unread: Unread) -> None:
    unread.ahead()
    assert await unread.asked_ahead() is False
    assert (keeper.asked, unread.foreground) == (1, 7)


async def test_who_asks_ahead_has_asked_at_once(keeper: Keeper, unread: Unread) -> None:
    """Not behind what else the loop has to do: all of that is waited for by whoever sends."""
    unread.ahead()
    assert keeper.asked == 1


async def test_who_asks_ahead_again_gets_the_later_answer(keeper: Keeper, unread: Unread) -> None:
    unread.ahead()
    keeper.unread = 3
    unread.ahead()
    assert await unread.asked_ahead() is True


async def test_it_holds_for_one_message(keeper: Keeper, unread: Unread) -> None:
    unread.ahead()
    await unread.asked_ahead()
    keeper.unread = 3
    assert await unread.asked_ahead() is True
    assert keeper.asked == 2


async def test_what_was_unread_then_holds_the_message(keeper: Keeper, unread: Unread) -> None:
    keeper.unread = 3
    unread.ahead()
    assert await unread.asked_ahead() is True
    assert unread.now


async def test_an_old_answer_is_none(keeper: Keeper, unread: Unread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synapsed.pty.screen_looks.AHEAD_S", -1.0)
    unread.ahead()
    keeper.unread = 3
    assert await unread.asked_ahead() is True


async def test_a_keeper_that_is_gone_is_told_to_who_asks(keeper: Keeper, unread: Unread) -> None:
    keeper.lost = True
    unread.ahead()
    with pytest.raises(KeeperLost):
        await unread.asked_ahead()
