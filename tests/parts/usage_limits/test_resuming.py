"""What an agent that was started by hand does when the usage limit ends: it goes on, unless it was told not to."""

import tomllib

import pytest

from synapsed.api.request_models import StartBody
from synapsed.model.link import LinkTurnFailed
from synapsed.model.task import TaskState
from synapsed.parts.usage_limits.face import UsageLimitPolicy
from synapsed.parts.usage_limits.limit_record import SLACK_S
from tests.parts.usage_limits.conftest import AGENT_MODEL
from tests.parts.usage_limits.test_usage_limit import LIMITER, is_limited
from tests.support.world import World


@pytest.fixture
def limiting(quiet_world: World) -> World:
    (quiet_world.paths.config.parent / "profiles" / "limiter.toml").write_text(LIMITER)
    quiet_world.library.reload()
    return quiet_world


async def meets_its_limit(world: World, agent: str) -> str:
    task = await world.send(agent, "one")
    await world.delivered()
    world.link.submit()
    world.link.emit(LinkTurnFailed(task.id, "RATE_LIMITED", "limit reached, until 60s", "fake"))
    world.link.ready()
    return task.id


async def test_its_task_goes_on(limiting: World) -> None:
    world = limiting
    await world.daemon()
    agent = await world.start("limiter", resume_at_reset=True)
    task = await meets_its_limit(world, agent.id)
    await is_limited(world, agent)
    assert [record.resume_at_reset for record in await world.store.agents()] == [True]
    assert (await world.task_is(task, TaskState.SUBMITTED)).error is None
    world.clock.advance(60 + SLACK_S)
    await world.delivered(2)
    assert world.link.deliveries[-1].task_id == task


async def test_its_task_fails_where_it_is_told_not_to(limiting: World) -> None:
    world = limiting
    await world.daemon()
    agent = await world.start("limiter", resume_at_reset=False)
    failed = await world.task_is(await meets_its_limit(world, agent.id), TaskState.FAILED)
    assert failed.error is not None
    assert failed.error.code == "RATE_LIMITED"


@pytest.mark.parametrize(("asked", "kept"), [(True, "continue"), (False, "fail")])
async def test_what_is_saved_says_the_same(limiting: World, asked: bool, kept: str) -> None:
    world = limiting
    await world.daemon()
    agent = await world.start("limiter", resume_at_reset=asked, save=True)
    saved = tomllib.loads((world.paths.agents_d / f"{agent.name}.toml").read_text())
    assert AGENT_MODEL.model_validate(saved).usage_limit == UsageLimitPolicy(task=kept)


def test_who_starts_an_agent_by_the_control_route_has_it_go_on_unless_said_otherwise() -> None:
    assert StartBody(profile="x").request().resume_at_reset
    assert not StartBody(profile="x", resume_at_reset=False).request().resume_at_reset
