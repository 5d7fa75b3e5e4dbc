"""What a program runs in its background: it is told, its messages go on, and it is not ended for what can wait."""

import asyncio

import pytest

from synapsed.errors import NotReady
from synapsed.model.agent import Activity
from synapsed.model.events import ActivityChanged
from synapsed.model.task import TaskState
from tests.fakes.clock import until
from tests.support.world import World

AGENT = "synapse-fake-8190"


async def serving(world: World, *background: str) -> None:
    """An agent at rest, with that in its background."""
    await world.start()
    world.link.observe_as(Activity.READY, background=background)
    await until(lambda: world.manager.directory.view(AGENT).background == len(background))


async def test_it_is_told_where_that_alone_has_changed(world: World) -> None:
    await serving(world, "Serve", "Look at it")
    view = world.manager.directory.view(AGENT)
    assert (view.activity, view.background_tasks) == (Activity.READY, ["Serve", "Look at it"])
    assert view.unseen().background_tasks == []
    assert view.unseen().background == 2
    since = view.since
    world.link.ready()
    await until(lambda: world.manager.directory.view(AGENT).background == 0)
    assert world.told(ActivityChanged, lambda told: told.background)[-2:] == [2, 0]
    assert world.manager.directory.view(AGENT).since == since, "it does what it did"


async def test_a_task_that_has_ended_tells_what_goes_on(world: World) -> None:
    await serving(world)
    task = await world.send(AGENT, metadata={"background": "mine"})
    await world.delivered()
    world.link.submit()
    world.link.observe_as(Activity.BUSY, background=("Serve",))
    world.link.end("It serves.")
    done = await world.task_is(task.id, TaskState.COMPLETED)
    assert done.metadata == {**done.metadata, "in_background": 1, "background": "mine"}
    task = await world.send(AGENT, metadata={"in_background": 7})
    await world.delivered(2)
    world.link.end("Again.")
    assert "in_background" not in (await world.task_is(task.id, TaskState.COMPLETED)).metadata


async def test_a_restart_when_idle_waits_for_the_background_and_messages_do_not(world: World) -> None:
    await serving(world, "Serve")
    await world.manager.restart(AGENT, when_idle=True)
    task = await world.send(AGENT)
    await world.delivered()
    assert world.manager.directory.view(AGENT).held is None
    world.link.observe_as(Activity.BUSY, background=("Serve",))
    world.link.end("done")
    await world.task_is(task.id, TaskState.COMPLETED)
    await until(lambda: len(world.factory.launched) == 2)


async def test_while_it_runs_nothing_is_restarted(world: World) -> None:
    await serving(world, "Serve")
    await world.manager.restart(AGENT, when_idle=True)
    world.link.observe_as(Activity.READY, background=("Serve", "Look at it"))
    await until(lambda: world.manager.directory.view(AGENT).background == 2)
    await asyncio.sleep(0)
    assert len(world.factory.launched) == 1


async def test_it_is_stopped_at_rest_and_no_message_goes_meanwhile(world: World) -> None:
    await serving(world, "Serve")
    world.link.background_gate = asyncio.get_running_loop().create_future()
    stopping = asyncio.ensure_future(world.manager.terminals.interrupt(AGENT, background=True))
    await until(lambda: world.link.background_stops == 1)
    task = await world.send(AGENT)
    assert world.link.deliveries == []
    world.link.background_gate.set_result(True)
    assert await stopping
    await world.delivered()
    world.link.submit()
    with pytest.raises(NotReady, match="is at work"):
        await world.manager.terminals.interrupt(AGENT, background=True)
    world.link.end("done")
    await world.task_is(task.id, TaskState.COMPLETED)
