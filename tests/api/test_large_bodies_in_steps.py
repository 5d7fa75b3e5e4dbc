"""Large bodies take their steps in turn with small requests."""

import asyncio
from typing import cast

from aiohttp import web

from synapsed.api.memory_reservation import _BODY, others_first

ROUNDS_OF_A_SMALL_ONE = 4


async def test_a_small_request_meets_no_second_step_of_two_large_ones() -> None:
    request = cast("web.Request", {_BODY: None})
    steps = 0

    async def large() -> None:
        nonlocal steps
        while True:
            steps += 1
            await others_first(request)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(large()) for _ in range(2)]
        await asyncio.sleep(0)
        assert steps == len(tasks)
        for _ in range(ROUNDS_OF_A_SMALL_ONE):
            await asyncio.sleep(0)
        assert steps == len(tasks)
        for task in tasks:
            task.cancel()


async def test_without_a_large_body_nothing_is_waited_for() -> None:
    waiting = others_first(cast("web.Request", {}))
    try:
        waiting.send(None)
    except StopIteration:
        return
    raise AssertionError("it waited")
