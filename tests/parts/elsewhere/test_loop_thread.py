"""The loop in a thread: results, errors and cancellations pass through, and nothing is left behind."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from synapsed.parts.elsewhere.loop_thread import LoopThread
from tests.support.patience import PATIENCE_S


@pytest.fixture
async def beside() -> AsyncGenerator[LoopThread]:
    made = LoopThread("beside")
    yield made
    await made.close()
    assert "beside" not in {thread.name for thread in threading.enumerate()}


async def name() -> str:
    return threading.current_thread().name


async def fails() -> None:
    raise ZeroDivisionError("on purpose")


async def test_work_runs_there_and_its_end_is_known_here(beside: LoopThread):
    assert await beside.run(name()) == "beside"
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        await beside.run(fails())
    assert await asyncio.gather(*(beside.run(name()) for _ in range(20))) == ["beside"] * 20


async def test_it_begins_again_after_its_end(beside: LoopThread):
    await beside.run(name())
    await beside.close()
    assert await beside.run(name()) == "beside"


class HeldWork:
    """Work that ends when it is cancelled, and then takes its time for that."""

    def __init__(self) -> None:
        self.begun, self.over = threading.Event(), threading.Event()

    async def work(self) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(10):
                await asyncio.sleep(0)
            self.over.set()

    async def items(self) -> AsyncGenerator[str]:
        yield await name()
        await self.work()


async def test_a_cancellation_waits_until_the_work_is_over(beside: LoopThread):
    held = HeldWork()
    asking = asyncio.create_task(beside.run(held.work()))
    assert await asyncio.to_thread(held.begun.wait, PATIENCE_S)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert held.over.is_set()


async def test_work_that_is_cancelled_before_it_began_never_begins(beside: LoopThread):
    held = HeldWork()
    asking = asyncio.create_task(beside.run(held.work()))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert held.over.is_set() or not held.begun.is_set()


@pytest.mark.parametrize("cancelled", [False, True])
async def test_items_are_made_there_and_their_stream_is_closed(beside: LoopThread, cancelled: bool):
    held, found = HeldWork(), []

    async def read() -> None:
        async with aclosing(beside.items(held.items())) as items:
            async for item in items:
                found.append(item)
                if not cancelled:
                    return

    reading = asyncio.create_task(read())
    if cancelled:
        assert await asyncio.to_thread(held.begun.wait, PATIENCE_S)
        reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    assert (found, reading.cancelled()) == (["beside"], cancelled)
    assert held.over.is_set() is cancelled


async def test_a_stream_ends_and_its_error_is_raised_here(beside: LoopThread):
    async def items() -> AsyncGenerator[int]:
        yield 1
        await fails()

    assert [item async for item in beside.items(_two())] == [1, 2]
    with pytest.raises(ZeroDivisionError):
        assert [item async for item in beside.items(items())]


async def _two() -> AsyncGenerator[int]:
    yield 1
    yield 2
