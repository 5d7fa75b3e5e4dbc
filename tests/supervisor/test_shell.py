"""The shell of an agent: how it ends."""

import asyncio

import pytest

from synapsed.errors import NotReady, StoreError
from synapsed.supervisor.inbox import Fact
from synapsed.supervisor.shell import Shell
from tests.fakes.clock import FakeClock, until


async def handle(_fact: Fact) -> None:
    pass


@pytest.fixture
async def shell() -> Shell:
    shell = Shell("a", agent_id="a", timers=FakeClock(), handle=handle)
    shell.start()
    return shell


async def test_what_was_begun_is_finished_and_what_it_begins(shell: Shell) -> None:
    written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    launched: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    done = []

    async def recorded() -> None:
        done.append("recorded")

    async def launching() -> None:
        await launched
        await shell.call(recorded, internal=True)

    async def start() -> None:
        await written
        shell.spawn(launching())
        done.append("written")

    asked = asyncio.ensure_future(shell.call(start))
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(shell.close())
    await asyncio.sleep(0)
    with pytest.raises(NotReady):
        await shell.call(recorded)
    written.set_result(None)
    await asked
    launched.set_result(None)
    await closing
    assert done == ["written", "recorded"]
    with pytest.raises(NotReady):
        await shell.call(recorded, internal=True)
    await shell.close()


async def test_it_ends_although_the_database_refuses(shell: Shell) -> None:
    tries = []

    async def refused() -> None:
        tries.append(1)
        raise StoreError("the disk is full")

    asked = asyncio.ensure_future(shell.call(lambda: shell.persist(refused)))
    await until(lambda: tries)
    await shell.close()
    with pytest.raises(StoreError):
        await asked
