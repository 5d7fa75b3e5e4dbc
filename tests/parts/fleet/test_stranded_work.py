"""Work for any that nobody takes, and work whose host is lost: taken back, or sent again, and never without a word."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from synapsed.errors import UnknownAgent
from synapsed.model.external import KEY as EXTERNAL
from synapsed.model.task import Task, TaskState
from synapsed_fleet import streams
from synapsed_fleet.fleet_config import FleetWork
from tests.fakes.clock import JUMPS
from tests.parts.fleet.fakebroker import Killed
from tests.parts.fleet.test_playbook import EVERY, STEPS_MAX, settle
from tests.parts.fleet.world import ANSWER, Host, World

AGAIN = FleetWork(on_loss="again", lost_after=600.0)
LONG = 14 * 86_400.0


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    made.works = {"box": ["codex"], "attic": ["codex"]}
    yield made
    await made.close()


async def now(host: Host, task: Task) -> Task:
    found = await host.store.task(task.id)
    assert found is not None
    return found


async def begun(world: World, host: Host) -> None:
    """The host takes what there is, and its agent does not come to an end with it."""
    world.broker.forget_who_has_what()
    while await host.turn(answers=False):
        pass


async def lost_on_box(world: World) -> tuple[Host, Host, Task]:
    """Laptop has sent work, box has it, and is gone."""
    laptop = await world.host("laptop")
    laptop.work = AGAIN
    await laptop.kill()
    box = await world.host("box")
    task = await laptop.send("any:codex", "hello", key="1")
    await laptop.outgoing.publish()
    await begun(world, box)
    await begun(world, laptop)
    assert (await now(laptop, task)).metadata[EXTERNAL]["host"] == "box"
    del world.hosts["box"]
    world.idle["box"] = 601.0
    return laptop, box, task


async def test_work_of_a_class_that_no_host_takes_is_refused_with_words(world: World) -> None:
    laptop = await world.host("laptop")
    world.taken = frozenset({"claude", "review"})
    with pytest.raises(UnknownAgent, match=r"no host of the fleet takes work for any:codex.*claude, review"):
        await laptop.send("any:codex", "hello", key="1")
    world.taken = frozenset()
    with pytest.raises(UnknownAgent, match="none takes any"):
        await laptop.send("any:codex", "hello", key="1")
    assert await laptop.store.open_tasks() == []
    world.taken = None  # a host of an older version does not say what it takes
    await laptop.send("any:codex", "hello", key="1")


async def test_what_nobody_has_taken_for_long_is_taken_back_and_done_nowhere(world: World) -> None:
    laptop = await world.host("laptop")
    task = await laptop.send("any:codex", "hello", key="1")
    await laptop.outgoing.publish()
    world.clock.advance(LONG - 10)
    await laptop.lost.look()
    assert not (await now(laptop, task)).terminal
    world.clock.advance(20)
    await laptop.lost.look()
    ended = await now(laptop, task)
    assert (ended.status, ended.error and ended.error.code) == (TaskState.FAILED, "UNDELIVERED")
    box = await world.host("box")  # the stream has it still
    assert world.broker.streams[streams.WORK].messages
    await world.rest()
    assert await world.tasks_of(box, TaskState.COMPLETED) == 0
    assert await world.open_rows() == 0
    assert await box.table.candidates() == []


@pytest.mark.parametrize("jump", JUMPS)
async def test_a_clock_that_is_set_takes_nothing_back(world: World, jump: float) -> None:
    laptop = await world.host("laptop")
    task = await laptop.send("any:codex", "hello", key="1")
    await laptop.outgoing.publish()
    await laptop.lost.look()
    world.clock.jump(jump)
    world.clock.advance(10)
    await laptop.lost.look()
    assert not (await now(laptop, task)).terminal
    world.clock.sleep(LONG)
    await laptop.lost.look()
    assert (await now(laptop, task)).status is TaskState.FAILED, "two weeks are two weeks, also asleep"


async def test_what_a_host_has_claimed_in_the_same_moment_is_that_hosts(world: World) -> None:
    laptop, box = await world.host("laptop"), await world.host("box")
    task = await laptop.send("any:codex", "hello", key="1")
    await laptop.outgoing.publish()
    await begun(world, box)
    world.clock.advance(LONG + 10)
    await laptop.lost.look()
    assert not (await now(laptop, task)).terminal
    await world.rest()
    assert (await now(laptop, task)).answer == ANSWER


async def test_without_a_broker_nothing_is_taken_back(world: World) -> None:
    laptop = await world.host("laptop")
    task = await laptop.send("any:codex", "hello", key="1")
    world.broker.away = True
    world.clock.advance(LONG + 10)
    await laptop.lost.look()
    assert not (await now(laptop, task)).terminal


async def test_by_default_work_waits_for_the_host_that_has_it(world: World) -> None:
    laptop, box, task = await lost_on_box(world)
    laptop.work = FleetWork()
    await laptop.kill()
    attic = await world.host("attic")
    await laptop.lost.look()
    await world.rest()
    assert await world.tasks_of(attic, TaskState.COMPLETED) == 0
    world.hosts["box"] = box
    await world.rest()
    assert (await now(laptop, task)).answer == ANSWER


async def test_work_of_a_lost_host_is_done_by_another_and_the_first_is_told_to_stop(world: World) -> None:
    laptop, box, task = await lost_on_box(world)
    attic = await world.host("attic")
    world.idle["box"] = 599.0
    await laptop.lost.look()
    await world.rest()
    assert await world.tasks_of(attic, TaskState.COMPLETED) == 0, "it is not lost yet"
    world.idle["box"] = 601.0
    await laptop.lost.look()
    await laptop.lost.look()
    await world.rest()
    done = await now(laptop, task)
    assert (done.answer, done.metadata[EXTERNAL]["host"], done.metadata[EXTERNAL]["round"]) == (ANSWER, "attic", 2)
    world.hosts["box"] = box
    world.idle["box"] = 0.0
    world.works["box"] = ()
    await world.rest()
    assert (await now(laptop, task)).answer == ANSWER
    assert await world.open_rows() == 0
    assert await laptop.table.quarantined() == []


async def test_what_a_lost_host_says_does_not_count_while_another_works_on_it(world: World) -> None:
    laptop, box, task = await lost_on_box(world)
    attic = await world.host("attic")
    await laptop.lost.look()
    await laptop.outgoing.publish()
    await begun(world, attic)
    await begun(world, laptop)
    assert (await now(laptop, task)).metadata[EXTERNAL]["host"] == "attic"
    world.hosts["box"] = box
    (there,) = await box.store.open_tasks()
    await begun(world, box)
    await box.mailbox.cancel(there.id)  # whatever it says
    await box.outgoing.publish()
    await begun(world, laptop)
    assert not (await now(laptop, task)).terminal
    await world.rest()
    assert (await now(laptop, task)).answer == ANSWER
    assert await laptop.table.quarantined() == []
    assert await world.open_rows() == 0


async def test_a_host_that_is_back_first_goes_on_with_it_and_nobody_else_does_it(world: World) -> None:
    laptop, box, task = await lost_on_box(world)
    await laptop.lost.look()
    await laptop.outgoing.publish()
    world.hosts["box"] = box
    attic = await world.host("attic")
    world.hosts = {"laptop": laptop, "box": box, "attic": attic}
    await world.rest()
    done = await now(laptop, task)
    assert (done.answer, done.metadata[EXTERNAL]["host"]) == (ANSWER, "box")
    assert await world.tasks_of(attic, TaskState.COMPLETED) == 0
    assert await world.tasks_of(box, TaskState.COMPLETED) == 1
    assert await world.open_rows() == 0


async def test_work_that_its_host_refuses_is_told(world: World) -> None:
    laptop, box = await world.host("laptop"), await world.host("box")
    task = await laptop.send("any:codex", "hello", key="1")
    await laptop.outgoing.publish()
    box.mailbox.refuses = UnknownAgent("the agent is gone")
    await world.rest()
    ended = await now(laptop, task)
    assert (ended.status, ended.error and ended.error.code) == (TaskState.REJECTED, "UNKNOWN_AGENT")
    assert await world.open_rows() == 0


@pytest.mark.fleet
@pytest.mark.timeout(600)
@pytest.mark.parametrize("who", ["laptop", "attic"])
async def test_a_daemon_killed_at_any_step_of_a_second_round_ends_it_all_the_same(tmp_path: Path, who: str) -> None:
    kills = 0
    for at in range(1, STEPS_MAX, EVERY):
        folder = tmp_path / str(at)
        folder.mkdir()
        world = World(folder)
        world.works = {"box": ["codex"], "attic": ["codex"]}
        laptop, box, task = await lost_on_box(world)
        attic = await world.host("attic")
        victim = world.hosts[who]
        victim.fuse.at = victim.fuse.steps + at
        try:
            await laptop.lost.look()
        except Killed:
            await laptop.kill()
            await laptop.lost.look()
        await settle(world)
        assert (await now(laptop, task)).answer == ANSWER
        assert await world.tasks_of(attic, TaskState.COMPLETED) == 1
        world.hosts["box"] = box
        await settle(world)
        assert await world.open_rows() == 0
        kills += victim.kills - (who == "laptop")
        ended = victim.kills == (who == "laptop")
        await world.close()
        if ended:
            break
    assert kills > 2
