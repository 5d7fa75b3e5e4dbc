"""Those who wait for the same thing."""

import asyncio

import pytest

from synapsed.aio import Waiters


async def test_one_may_give_up_without_the_others():
    waiters = Waiters()
    one, other = waiters.add(), waiters.add()
    one.cancel()
    waiters.wake()
    assert (one.cancelled(), await other) == (True, None)


async def test_who_comes_later_waits_for_the_next_time():
    waiters = Waiters()
    early = waiters.add()
    taken = waiters.take()
    late = waiters.add()
    taken.wake(OSError("gone"))
    with pytest.raises(OSError, match="gone"):
        await early
    assert not late.done()
    waiters.wake()
    await late


async def test_a_failure_that_nobody_hears_is_no_complaint():
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    waiters = Waiters()
    waiters.add()
    waiters.wake(OSError("gone"))
    await asyncio.sleep(0)
    assert told == []
