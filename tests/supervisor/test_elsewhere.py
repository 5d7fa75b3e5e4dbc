"""Agents elsewhere: found after our own, and their messages and tasks handed on."""

from typing import Any

import pytest

from synapsed.errors import TaskNotCancelable, UnknownAgent
from synapsed.interfaces import OutboundQuestion, SendRequest
from synapsed.model.external import external_id
from synapsed.model.sender import KEY
from synapsed.model.task import Message, Task
from tests.support.world import World

AGENT = "synapse-fake-8190"


class Far:
    """An `Elsewhere` that knows `far` and `far@host`, and writes down what it is asked."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.calls: list[tuple[Any, ...]] = []

    def find(self, address: str) -> str | None:
        return {"far": external_id("far"), "far@host": "far@host"}.get(address)

    async def send(
        self, alias: str, request: SendRequest, asking: OutboundQuestion, *, sender: str | None = None
    ) -> Task:
        self.calls.append(("send", alias, request.message.text, sender))
        task = Task(agent_id=external_id(alias), message=request.message, created_at="", updated_at="")
        with asking(task, wait=False) as record:
            assert record is None
        await self.world.store.commit(tasks=[task])
        return task

    async def cancel(self, task: Task) -> Task:
        self.calls.append(("cancel", task.id))
        return task

    async def answer(self, task: Task, message: Message, prompt_id: str | None = None) -> Task:
        self.calls.append(("answer", task.id, message.text, prompt_id))
        return task


@pytest.fixture
async def far(quiet_world: World) -> Far:
    far = quiet_world.elsewhere = Far(quiet_world)
    await quiet_world.daemon()
    return far


def said(text: str, **metadata: Any) -> SendRequest:
    return SendRequest(message=Message.of(text), metadata=metadata)


async def test_our_own_come_first(far: Far, quiet_world: World) -> None:
    directory = quiet_world.manager.directory
    assert directory.resolve("far") == "external:far"
    await quiet_world.start(name="far")
    assert directory.resolve("far") == AGENT
    with pytest.raises(UnknownAgent):
        directory.resolve("nobody")


async def test_what_is_asked_of_a_task_there_is_handed_on(far: Far, quiet_world: World) -> None:
    tasks = quiet_world.manager.tasks
    task = await tasks.send("external:far", said("hi"))
    await tasks.provide_input(task.id, "yes", "p1")
    await tasks.cancel(task.id[:8])
    assert far.calls == [("send", "far", "hi", None), ("answer", task.id, "yes", "p1"), ("cancel", task.id)]


async def test_another_host_is_told_who_of_ours_sends(far: Far, quiet_world: World) -> None:
    await quiet_world.start(name="bob")
    tasks = quiet_world.manager.tasks
    await tasks.send("far@host", said("by an agent", **{KEY: {"sender_id": AGENT, "tier": "agent"}}))
    await tasks.send("far@host", said("by the person"))
    assert [call[3] for call in far.calls] == ["bob", None]
    await tasks.send("external:far", said("by an agent", **{KEY: {"sender_id": AGENT, "tier": "agent"}}))
    assert far.calls[-1][3] is None


async def test_without_any_there_is_nobody_elsewhere(world: World) -> None:
    with pytest.raises(UnknownAgent, match="elsewhere"):
        await world.manager.tasks.send("external:far", said("hi"))
    task = Task(agent_id="external:far", message=Message.of("hi"), created_at="", updated_at="")
    await world.store.commit(tasks=[task])
    with pytest.raises(TaskNotCancelable):
        await world.manager.tasks.cancel(task.id)
