"""From one daemon to the next when the programs do not live through it: a shutdown, a reboot."""

from synapsed.config.config import AgentConfig, RestartPolicy
from synapsed.errors import StoreError
from synapsed.model.agent import ProcessState
from synapsed.model.events import AgentAlert
from synapsed.model.link import LinkAlert
from synapsed.model.task import TaskState
from tests.fakes.clock import until
from tests.support.world import World

AGENT = "synapse-fake-8190"


async def closed(world: World) -> None:
    """The daemon ends in order, and its agents with it."""
    await world.manager.close(keep_agents=False)
    world.managers.remove(world.manager)
    world.factory.programs.clear()


async def test_what_ran_is_started_again_and_what_was_stopped_is_not(world: World) -> None:
    await world.start(name="one")
    await world.start(name="two")
    await world.manager.stop("synapse-fake-8191")
    await closed(world)
    await world.daemon()
    assert [agent.state for agent in world.manager.directory.agents()] == ["running", "stopped"]


async def test_a_program_that_had_ended_by_itself_is_left_be(world: World) -> None:
    await world.start()
    world.link.die(0)
    await world.agent_is(AGENT, ProcessState.EXITED)
    await closed(world)
    await world.daemon()
    assert world.manager.directory.view(AGENT).state == "exited"


async def test_a_state_that_only_a_newer_version_knows_is_none_of_a_living_program(world: World) -> None:
    await world.start()
    await world.manager.stop(AGENT)
    await closed(world)
    (record,) = await world.store.agents()
    await world.store.commit(agents=[record.model_copy(update={"state": "hibernating"})])
    await world.daemon()
    assert world.manager.directory.view(AGENT).state == "stopped"
    await world.manager.restart(AGENT)
    assert world.manager.directory.view(AGENT).state == "running"


async def test_mailboxes_stay_and_what_was_worked_on_is_marked(world: World) -> None:
    await world.start()
    worked_on = await world.send(AGENT, "first")
    await world.delivered()
    world.link.submit()
    await until(lambda: world.link.records)
    waiting = await world.send(AGENT, "second")
    await closed(world)
    failed = await world.store.task(worked_on.id)
    assert failed is not None
    assert failed.error is not None
    assert failed.error.code == "INTERRUPTED"
    await world.daemon()
    world.link.ready()
    await world.delivered()
    assert world.link.deliveries[0].task_id == waiting.id
    assert [state for state in world.statuses(worked_on.id) if state == TaskState.FAILED] == ["failed"]


async def test_after_a_reboot_the_restart_policy_has_no_say(world: World) -> None:
    world.agents["calm"] = AgentConfig(profile="fake", restart=RestartPolicy(policy="never"))
    await world.daemon()
    agent = world.manager.directory.resolve("calm")
    await world.manager.restart(agent)
    world.factory.programs.clear()
    world.factory.taken_down = True
    await world.manager.close(keep_agents=True)
    world.managers.remove(world.manager)
    await world.daemon()
    world.clock.advance(0.001)
    await world.agent_is(agent, ProcessState.RUNNING)


async def test_an_alert_stands_until_it_is_over(world: World) -> None:
    await world.start()
    world.link.emit(LinkAlert("DISK_FULL", "no space", "begins"))
    await until(lambda: world.manager.directory.detail(AGENT).alerts == ["no space"])
    world.link.emit(LinkAlert("OUTPUT_GAP", "12 bytes are gone", "happened", {"from": 1, "to": 13}))
    world.link.emit(LinkAlert("DISK_FULL", "there is space", "over"))
    await until(lambda: world.manager.directory.detail(AGENT).alerts == [])
    assert world.told(AgentAlert, lambda d: (d.code, d.details["state"])) == [
        ("DISK_FULL", "begins"),
        ("OUTPUT_GAP", "happened"),
        ("DISK_FULL", "over"),
    ]


async def test_an_alert_that_cannot_be_recorded_is_shown(world: World) -> None:
    await world.start()
    world.store.refuse = StoreError("the disk is full", reason="full")
    world.link.emit(LinkAlert("DISK_FULL", "no space", "begins"))
    await until(lambda: world.manager.directory.detail(AGENT).alerts == ["no space"])
    world.store.refuse = None
