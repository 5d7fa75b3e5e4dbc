"""The actor of an agent: how it ends."""

import asyncio
import contextlib
import gc
import weakref
from typing import cast

import pytest

from synapsed.agents.actor import Actor, Fact
from synapsed.aio import Pace
from synapsed.errors import NotReady, StoreError
from synapsed.interfaces import AgentLink
from synapsed.model.link import LinkAlert
from tests.fakes.clock import FakeClock, until


async def handle(_fact: Fact) -> None:
    pass


@pytest.fixture
async def actor() -> Actor:
    actor = Actor("a", agent_id="a", timers=FakeClock(), pace=Pace(1), handle=handle)
    actor.start()
    return actor


async def test_what_was_begun_is_finished_and_what_it_begins(actor: Actor) -> None:
    written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    launched: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    done = []

    async def recorded() -> None:
        done.append("recorded")

    async def launching() -> None:
        await launched
        await actor.report(recorded)

    async def start() -> None:
        await written
        actor.spawn(launching())
        done.append("written")

    asked = asyncio.ensure_future(actor.call(start))
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(actor.close())
    await asyncio.sleep(0)
    with pytest.raises(NotReady):
        await actor.call(recorded)
    written.set_result(None)
    await asked
    launched.set_result(None)
    await closing
    assert done == ["written", "recorded"]
    with pytest.raises(NotReady):
        await actor.report(recorded)
    await actor.close()


async def test_what_a_refused_call_was_asked_with_is_let_go_of(actor: Actor) -> None:
    """At once, and not when the collector looks for circles: it may be a message of megabytes."""

    class Asked:
        pass

    async def refuse(_asked: Asked) -> None:
        raise NotReady("not now")

    asked = Asked()
    held = weakref.ref(asked)
    gc.disable()
    try:
        with contextlib.suppress(NotReady):
            await actor.call(refuse, asked)
        del asked
        await asyncio.sleep(0)
        assert held() is None
    finally:
        gc.enable()
    await actor.close()


async def test_it_ends_although_the_database_refuses(actor: Actor) -> None:
    tries = []

    async def refused() -> None:
        tries.append(1)
        raise StoreError("the disk is full")

    asked = asyncio.ensure_future(actor.call(lambda: actor.persist(refused)))
    await until(lambda: tries)
    await actor.close()
    with pytest.raises(StoreError):
        await asked


async def test_an_operation_that_is_begun_at_once_has_gone_as_far_as_it_can(actor: Actor) -> None:
    """What is typed for a message does not wait behind what else the loop has to do."""
    answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    done = []

    async def giving() -> None:
        done.append("asked")
        await answered
        done.append("given")

    actor.spawn(giving(), at_once=True)
    assert done == ["asked"]
    answered.set_result(None)
    await actor.close()
    assert done == ["asked", "given"]


async def test_what_a_client_wants_written_is_not_kept_waiting(actor: Actor) -> None:
    """Within it no fact is tried again, and the next one is taken as soon as the database takes facts."""
    tries = []

    async def refused() -> None:
        tries.append("refused")
        raise StoreError("disk full")

    async def taken() -> str:
        return "taken"

    with pytest.raises(StoreError):
        await actor.call(actor.persist, refused)
    assert tries == ["refused"]
    assert await actor.call(actor.persist, taken) == "taken"
    await actor.close()


async def test_a_call_has_what_waits_tried_again_at_once(actor: Actor) -> None:
    """There is room again: the call is done, and no clock is waited for."""
    full, tries, done = True, [], []

    async def write(word: str) -> None:
        tries.append(word)
        if full:
            raise StoreError("disk full")
        done.append(word)

    actor.post(actor.persist, write, "fact")
    await until(lambda: tries)
    with pytest.raises(StoreError):
        await actor.call(write, "refused")
    assert set(tries) == {"fact"}
    full = False
    await actor.call(write, "call")
    assert done == ["fact", "call"]
    await actor.close()


async def test_what_awaits_something_cancelled_costs_itself_and_never_the_actor() -> None:
    """A part may cancel a task of its own that its work for an agent awaits."""
    gone = asyncio.get_running_loop().create_future()
    gone.cancel()

    async def await_it(_fact: Fact | None = None) -> None:
        await gone

    async def answer() -> str:
        return "here"

    actor = Actor("a", agent_id="a", timers=FakeClock(), pace=Pace(1), handle=await_it)
    actor.start()
    actor.emit(cast("AgentLink", None), LinkAlert("CODE", "told", "happened"))
    with pytest.raises(RuntimeError, match="cancelled"):
        await actor.call(await_it)
    assert await actor.call(answer) == "here"
    await actor.close()
