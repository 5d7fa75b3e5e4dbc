"""What the next program needs is looked at before the one that runs is ended for it."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from synapsed.config.config import AgentConfig
from synapsed.errors import NotReady
from synapsed.model.agent import Activity, ProcessState
from synapsed.model.events import AgentAlert
from synapsed.model.task import TaskState
from synapsed.tasks.transitions import NEW_CONVERSATION
from tests.fakes.clock import until
from tests.support.world import World

TALKER = "synapse-talker-8170"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    return made


async def talker(world: World, folder: Path) -> None:
    """One in a conversation with content, idle."""
    await world.start("talker", cwd=str(folder))
    world.link.observe_as(Activity.BUSY)
    await until(lambda: world.manager.directory.view(TALKER).activity is Activity.BUSY)
    world.link.ready()
    await until(lambda: world.manager.directory.view(TALKER).activity is Activity.READY)


async def lives(world: World) -> None:
    assert world.manager.directory.view(TALKER).state is ProcessState.RUNNING
    assert len(world.factory.launched) == 1
    task = await world.send(TALKER)
    await world.delivered()
    world.link.end("still here")
    await world.task_is(task.id, TaskState.COMPLETED)


ASKED: dict[str, Callable[[World], Awaitable[object]]] = {
    "restart": lambda world: world.manager.restart(TALKER),
    "restart when idle": lambda world: world.manager.restart(TALKER, when_idle=True),
    "park": lambda world: world.manager.park(TALKER),
}


@pytest.mark.parametrize("asked", ASKED)
async def test_a_folder_that_was_renamed_ends_nothing(world: World, folder: Path, asked: str) -> None:
    await talker(world, folder)
    renamed = folder.rename(folder.with_name("renamed"))
    with pytest.raises(NotReady, match=rf"talker.*runs on.*{folder}"):
        await ASKED[asked](world)
    await lives(world)
    renamed.rename(folder)
    await ASKED[asked](world)
    await until(lambda: len(world.factory.launched) == 2 or world.manager.directory.view(TALKER).state == "parked")


async def test_a_restart_that_was_put_off_is_given_up_and_told(world: World, folder: Path) -> None:
    await talker(world, folder)
    task = await world.send(TALKER)
    await world.delivered()
    await world.manager.restart(TALKER, when_idle=True)
    folder.rename(folder.with_name("renamed"))
    waiting = await world.send(TALKER, "and then")
    world.link.end("one")
    await world.task_is(task.id, TaskState.COMPLETED)
    world.link.ready()
    await world.delivered(2)
    world.link.end("two")
    await world.task_is(waiting.id, TaskState.COMPLETED)
    assert len(world.factory.launched) == 1
    assert world.told(AgentAlert, lambda told: told.code) == ["RESTART_REFUSED"]


async def test_a_new_conversation_that_could_not_begin_ends_nothing(world: World, folder: Path) -> None:
    await talker(world, folder)
    folder.rename(folder.with_name("renamed"))
    task = await world.send(TALKER, metadata={NEW_CONVERSATION: True})
    assert task.status is TaskState.FAILED, "its sender is told at once"
    failed = await world.task_is(task.id, TaskState.FAILED)
    assert failed.error is not None
    assert failed.error.code == "UNDELIVERED"
    assert str(folder) in failed.error.message
    await lives(world)


async def test_so_it_is_with_a_program_that_is_gone(world: World, folder: Path) -> None:
    program = folder / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    world.agents["talker"] = AgentConfig(profile="talker", command=str(program), cwd=str(folder), autostart=True)
    await world.daemon()
    await world.agent_is(TALKER, ProcessState.RUNNING)
    world.link.ready()
    program.unlink()
    with pytest.raises(NotReady, match="is not a program that can be run"):
        await world.manager.restart(TALKER)
    await lives(world)
