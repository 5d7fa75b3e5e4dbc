"""Room for what is large: counted once for all who share it, given in the order of coming, never lost."""

import asyncio

import pytest

from synapsed.documents.budget import Budget


def test_what_is_shared_counts_once():
    budget = Budget(10)
    first, second = budget.take_now("a", 8), budget.take_now("a", 8)
    assert first is not None
    assert second is not None
    assert budget.used == 8
    assert budget.take_now("b", 3) is None
    first.release()
    first.release()
    assert budget.used == 8
    second.release()
    assert budget.used == 0
    assert budget.take_now("b", 3) is not None


def test_what_is_larger_than_all_of_it_gets_room_alone():
    budget = Budget(10)
    lease = budget.take_now("a", 100)
    assert lease is not None
    assert budget.take_now("b", 1) is None
    lease.release()
    assert budget.take_now("b", 1) is not None
    assert budget.take_now("a", 100) is None


async def waiting(budget: Budget, key: str, size: int):
    task = asyncio.create_task(budget.take(key, size))
    await asyncio.sleep(0)
    return task


async def test_who_waits_gets_room_in_the_order_of_coming():
    budget = Budget(10)
    held = await budget.take("a", 10)
    large, small = await waiting(budget, "b", 9), await waiting(budget, "c", 2)
    assert budget.take_now("d", 0) is None, "it would overtake"
    held.release()
    lease = await large
    assert not small.done()
    lease.release()
    (await small).release()
    assert budget.used == 0


async def test_who_wants_what_is_held_does_not_wait_and_those_who_wait_for_it_get_it_together():
    budget = Budget(10)
    held = await budget.take("a", 10)
    other, first, second = [await waiting(budget, key, 10) for key in ("b", "c", "c")]
    (await budget.take("a", 10)).release()
    held.release()
    (await other).release()
    leases = [await first, await second]
    assert budget.used == 10
    for lease in leases:
        lease.release()
    assert budget.used == 0


async def test_who_leaves_holds_up_nobody():
    budget = Budget(10)
    held = await budget.take("a", 5)
    large, small = await waiting(budget, "b", 10), await waiting(budget, "c", 5)
    large.cancel()
    with pytest.raises(asyncio.CancelledError):
        await large
    lease = await small
    given = await waiting(budget, "d", 5)
    lease.release()
    given.cancel()  # it has been given, and has not seen it
    with pytest.raises(asyncio.CancelledError):
        await given
    held.release()
    assert budget.used == 0
    assert budget.take_now("e", 10) is not None
