"""Brokers that are connected to and have no leader: nobody hears what they are asked, and they take nothing."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from nats.aio.msg import Msg

from synapsed.model.task import TaskState
from synapsed_fleet import link as links
from synapsed_fleet import streams
from synapsed_fleet.ports import NoBroker
from synapsed_fleet.task_inquiries import TaskInquiries
from synapsed_fleet.wakeup import Bell
from tests.parts.fleet.world import World
from tests.support.patience import PATIENCE_S


class DeafClient:
    """A connection to a broker that hears the third question."""

    is_closed = False

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._come: Callable[[Msg], Awaitable[None]]

    async def subscribe(self, subject: str, cb: Callable[[Msg], Awaitable[None]], **_: Any) -> None:
        self._come = cb

    async def publish(self, subject: str, body: bytes, *, reply: str, headers: Any = None) -> None:
        self.asked.append(reply)
        if len(self.asked) == 3:
            told = json.dumps({"created": "monday", "state": {"last_seq": 7}}).encode()
            await self._come(Msg(self, reply, "", told))  # type: ignore[arg-type]

    async def close(self) -> None: ...


async def test_a_question_that_nobody_hears_is_asked_again_at_the_same_place(monkeypatch: pytest.MonkeyPatch) -> None:
    client = DeafClient()

    async def connected(**_: Any) -> DeafClient:
        return client

    monkeypatch.setattr(links, "connect", connected)
    monkeypatch.setattr(links, "AGAIN_S", 0.01)
    link = links.Link(dict, "_INBOX_box", on_up=lambda: None)
    running = asyncio.create_task(link.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            await link.wait_up()
            facts = await link.facts(streams.IN, "syn.to.*.box.>")
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert (facts.created, facts.last) == ("monday", 7)
    assert len(client.asked) == 3
    assert len(set(client.asked)) == 1, "a late answer to the first would have counted"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    yield made
    await made.close()


async def test_one_row_is_tried_until_the_broker_takes_something(world: World) -> None:
    laptop = await world.host("laptop")
    await world.host("box")
    for number in range(5):
        await laptop.send("codex@box", f"message {number}", key=str(number))
    world.broker.away = True
    with pytest.raises(NoBroker):
        await laptop.outgoing.publish()
    assert laptop.outgoing.pacing.resting(world.clock.monotonic()) > 0, "nor is it asked about its streams at once"
    world.broker.away = False
    assert await laptop.outgoing.publish()
    assert len(await laptop.table.open_rows(state="piped")) == 1
    assert await laptop.outgoing.publish()
    assert len(await laptop.table.open_rows(state="piped")) == 5


async def test_who_could_not_be_asked_is_asked_later(world: World) -> None:
    laptop, box = await world.host("laptop"), await world.host("box")
    await laptop.send("codex@box", "hello", key="1")
    while await laptop.turn() or await box.turn(answers=False):
        pass
    assert await world.tasks_of(laptop, TaskState.SUBMITTED) == 1
    questions = TaskInquiries(
        store=laptop.store, table=laptop.table, outgoing=laptop.outgoing, clock=world.clock, later_s=0.0
    )
    bell, tries = Bell(), 0

    async def wait_up() -> None:
        nonlocal tries
        tries += 1
        world.broker.away = tries == 1

    bell.set()
    asking = asyncio.create_task(questions.run(bell, wait_up))
    try:
        async with asyncio.timeout(PATIENCE_S):
            while (question := await asked(world)) is None:
                await asyncio.sleep(0)
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    assert tries == 2
    assert question == "syn.to.box.laptop.ctl"
    await questions.ask()
    assert await asked(world) == question
    assert len(world.broker.streams[streams.IN].messages) == 1, "it was asked for just now"


async def asked(world: World) -> str | None:
    return next((each.subject for each in world.broker.streams[streams.IN].messages), None)
