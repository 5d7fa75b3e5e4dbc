"""Many launches at once."""

import asyncio
from typing import Any, cast

import pytest

from synapsed.errors import LaunchError
from synapsed.keepers.launchers import AT_ONCE, Launcher, LaunchQueue, LaunchSpec
from tests.fakes.clock import until

MANY = 300


class Launches:
    """Each launch lasts until it is told how it ends; its spec is its number."""

    def __init__(self) -> None:
        self.at_work: dict[int, asyncio.Future[Any]] = {}
        self.most = 0

    async def launch(self, spec: Any) -> Any:
        self.at_work[spec] = asyncio.get_running_loop().create_future()
        self.most = max(self.most, len(self.at_work))
        try:
            return await self.at_work[spec]
        finally:
            del self.at_work[spec]


def begun(queue: LaunchQueue, number: int) -> "asyncio.Future[Any]":
    return asyncio.ensure_future(queue.launch(cast("LaunchSpec", number)))


async def test_a_few_at_a_time_in_the_order_in_which_they_were_asked_for() -> None:
    launches = Launches()
    queue = LaunchQueue(cast("Launcher", launches))
    asked = [begun(queue, number) for number in range(MANY)]
    order = []
    for _ in range(MANY):
        await until(lambda: launches.at_work)
        order.append(number := next(iter(launches.at_work)))
        launches.at_work[number].set_result(number)
        await asked[number]
    assert order == list(range(MANY))
    assert launches.most == AT_ONCE


async def test_who_fails_or_is_given_up_leaves_its_place() -> None:
    launches = Launches()
    queue = LaunchQueue(cast("Launcher", launches))
    asked = [begun(queue, number) for number in range(AT_ONCE + 3)]
    await until(lambda: len(launches.at_work) == AT_ONCE)
    launches.at_work[0].set_exception(LaunchError("the keeper did not start"))
    asked[1].cancel()
    asked[-1].cancel()  # it waits yet, and has no place to leave
    await until(lambda: AT_ONCE + 1 in launches.at_work)
    assert set(launches.at_work) == {*range(2, AT_ONCE), AT_ONCE, AT_ONCE + 1}
    with pytest.raises(LaunchError):
        await asked[0]
    for number in list(launches.at_work):
        launches.at_work[number].set_result(number)
        await asked[number]
    assert not launches.at_work
