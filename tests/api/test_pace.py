"""A few write in a turn of the loop, in the order in which they came."""

import asyncio

from synapsed.aio import Pace
from tests.support.patience import PATIENCE_S


async def test_few_write_in_one_turn_of_the_loop_and_in_order():
    pace, order, most, now = Pace(3), [], 0, 0

    async def writer(number: int) -> None:
        nonlocal now
        await pace.turn()
        order.append(number)
        now += 1

    writers = [asyncio.create_task(writer(number)) for number in range(20)]
    while not all(task.done() for task in writers):
        await asyncio.sleep(0)
        most, now = max(most, now), 0
    assert order == list(range(20))
    assert 0 < most <= 3


async def test_who_leaves_holds_up_nobody():
    pace = Pace(1)
    await pace.turn()
    gone, stays = (asyncio.ensure_future(pace.turn()) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    async with asyncio.timeout(PATIENCE_S):
        await stays


async def test_who_is_alone_does_not_wait():
    pace = Pace(2)
    for _ in range(100):
        act = asyncio.Task(pace.turn(), loop=asyncio.get_running_loop(), eager_start=True)
        assert act.done()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
