"""A program of another version than its profile was measured on, over fakes."""

import asyncio

from synapsed.model.agent import Activity, ProcessState
from synapsed.model.events import StateChanged
from tests.fakes.clock import until
from tests.support.world import World

USAGE = "error: unexpected argument '--new' found\n\nUsage: drifter [OPTIONS]"


async def test_the_variant_of_the_version_is_launched_and_told(world: World) -> None:
    world.factory.versions["drifter"] = "1.9"
    view = await world.start("drifter")
    assert (view.version, view.verified, view.drift) == ("1.9", "2.0", "profile verified on 2.0, this is 1.9")
    assert world.factory.profiles[-1].args == []
    await world.daemon()
    assert world.manager.directory.view(view.id).version == "1.9", "the next daemon knows it without asking"
    assert world.manager.directory.detail(view.id).version == "1.9"


async def test_one_of_the_verified_version_is_nothing_to_tell(world: World) -> None:
    world.factory.versions["drifter"] = "2.0"
    view = await world.start("drifter")
    assert (view.version, view.drift) == ("2.0", None)
    assert world.factory.profiles[-1].args == ["--new"]


async def test_one_that_does_not_tell_is_started_as_the_verified_one_and_said_not_to_be_known(world: World) -> None:
    view = await world.start("drifter")
    unknown = "profile verified on 2.0, and its version is not known: the program did not print it"
    assert (view.version, view.drift) == (None, unknown)
    assert world.factory.profiles[-1].args == ["--new"]


async def test_a_start_does_not_wait_for_a_version_on_which_nothing_depends(world: World) -> None:
    world.factory.versions["talker"] = "7"
    world.factory.version_gate = asyncio.get_running_loop().create_future()
    starting = asyncio.create_task(world.start("talker", ready=False))
    await until(lambda: bool(world.factory.launched))
    world.factory.version_gate.set_result(None)
    assert (await starting).version == "7"


async def test_a_program_that_refuses_its_arguments_fails_at_once(world: World) -> None:
    world.factory.versions["drifter"] = "2.1"
    view = await world.start("drifter", ready=False)
    world.link.screen = USAGE
    world.link.die(2)
    failed = await world.agent_is(view.id, ProcessState.FAILED)
    assert "backoff" not in world.told(StateChanged, lambda data: data.state.value)
    words = "error: unexpected argument '--new' found (exit code 2); profile verified on 2.0, this is 2.1"
    assert world.manager.directory.detail(view.id).error == words
    assert failed.evidence.startswith(f"{words}; it did not take its arguments")
    assert failed.restarts == 0


async def test_it_is_tried_again_slowly(world: World) -> None:
    view = await world.start("drifter", ready=False)
    world.link.screen = USAGE
    world.link.die(2)
    await world.agent_is(view.id, ProcessState.FAILED)
    world.clock.advance(301)
    await until(lambda: len(world.factory.launched) == 2)


async def test_a_refusal_loses_no_conversation(world: World) -> None:
    """A program that was exchanged for one that does not know an option has refused that, not the conversation."""
    await world.start("talker")
    talker = "synapse-talker-8170"
    world.link.observe_as(Activity.BUSY)
    await until(lambda: world.manager.directory.detail(talker).conversation.id is not None)
    conversation = world.manager.directory.detail(talker).conversation.id
    await world.manager.restart(talker)
    world.link.screen = "error: unknown option '--first'"
    world.link.die(1)
    await world.agent_is(talker, ProcessState.FAILED)
    assert world.manager.directory.detail(talker).conversation.id == conversation
