"""Without the part, with a fault in it, and with records of other versions: messages go on, no limit is forgotten."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from synapsed.interfaces import MessageHolder
from synapsed.model.agent import AgentView
from synapsed.model.records import AgentRecord
from synapsed.model.task import TaskState
from synapsed.parts.usage_limits.holding import UsageLimits
from tests.fakes.clock import until
from tests.parts.usage_limits.conftest import LimitedWorld
from tests.parts.usage_limits.test_accounts import agents, fails, held
from tests.parts.usage_limits.test_usage_limit import LIMITER, is_limited, limited, ready, refused
from tests.support.gated import first_of
from tests.support.world import World

RELEASED = {
    "since": 1_700_000_000.0,
    "until": 1_700_007_200.0,
    "resume_at": 1_700_007_202.0,
    "attempt": 1,
    "words": "limit reached, until 2 hours",
    "lifted": False,
    "attention": "an-id",
    "account": False,
    "marks": "",
    "reach": "",
}
"""A limit as the version before the part has written it, and reads it."""


class Faulty:
    """A part with a fault in each of its members."""

    def __init__(self, made: bool) -> None:
        self._made = made

    def holder(self, *_: object) -> MessageHolder:
        if self._made:
            return self  # type: ignore[return-value]
        raise RuntimeError("a fault")

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"a fault in {name}")


@pytest.fixture
async def bare_world(tmp_path: Path) -> AsyncIterator[World]:
    """A world in which nobody knows of limits."""
    world = World(tmp_path)
    (tmp_path / "profiles" / "limiter.toml").write_text(LIMITER)
    world.library.reload()
    yield world
    await world.close()


async def works_on(world: World, agent: AgentView) -> None:
    """A turn that a limit ends fails by its own code, and the next message is given at once."""
    first, second = await world.send(agent.id, "one"), await world.send(agent.id, "two")
    await refused(world)
    failed = await world.task_is(first.id, TaskState.FAILED)
    assert failed.error is not None
    assert (failed.error.code, failed.error.details) == ("RATE_LIMITED", {})
    await world.delivered(2)
    assert world.link.deliveries[-1].task_id == second.id
    view = world.manager.directory.view(agent.id)
    assert (view.held, view.until) == (None, None)


async def kept(world: World) -> dict[str, Any] | None:
    (record,) = await world.store.agents()
    return record.limit


async def test_without_the_part_nothing_waits(bare_world: World) -> None:
    await bare_world.daemon()
    agent = await bare_world.start("limiter", resume_at_reset=True, save=True)
    assert "usage_limit" not in (bare_world.paths.agents_d / f"{agent.name}.toml").read_text()
    await works_on(bare_world, agent)


async def test_a_limit_on_record_harms_nothing_without_it_and_counts_once_it_is_back(bare_world: World) -> None:
    world = bare_world
    await world.daemon()
    agent = await world.start("limiter")
    await world.manager.close(keep_agents=True)
    await _limit(world, {**RELEASED, "resume_at": world.clock.wall() + 7200})
    before = await kept(world)
    await world.daemon()
    world.link.ready()
    await works_on(world, agent)
    assert await kept(world) == before
    await world.manager.close(keep_agents=True)
    world.provides |= UsageLimits({}, world.clock).provides
    await world.daemon()
    world.link.ready()
    await is_limited(world, agent)


async def test_a_limit_that_was_met_before_the_upgrade_is_in_force_after_it(quiet_world: World) -> None:
    world = quiet_world
    agent = await limited(world)
    await world.manager.close(keep_agents=True)
    await _limit(world, {**RELEASED, "until": world.clock.wall() + 7200, "resume_at": world.clock.wall() + 7202})
    await world.daemon()
    await ready(world)
    await is_limited(world, agent)
    task = await world.send(agent.id, "one")
    assert world.statuses(task.id) == ["submitted"]


async def test_what_is_kept_is_what_the_version_before_reads(quiet_world: World) -> None:
    world = quiet_world
    agent = await limited(world)
    await world.send(agent.id, "one")
    await refused(world, text="limit reached, until 2 hours")
    await is_limited(world, agent)
    (record,) = await world.store.agents()
    written = json.loads(record.model_dump_json())["limit"]
    now, words = world.clock.wall(), RELEASED["words"]
    ends = {"since": now, "until": now + 7200, "resume_at": now + 7202, "words": words}
    assert written == {**RELEASED, **ends, "attention": written["attention"]}
    assert list(AgentRecord.model_validate_json(record.model_dump_json()).limit or {}) == list(RELEASED)


@pytest.mark.parametrize("damaged", [{}, {"since": "x"}, {**RELEASED, "resume_at": None}, {"of another": [1]}])
async def test_a_record_that_cannot_be_read_holds_nothing(quiet_world: World, damaged: dict[str, Any]) -> None:
    world = quiet_world
    agent = await limited(world)
    await world.manager.close(keep_agents=True)
    await _limit(world, damaged)
    await world.daemon()
    await ready(world)
    task = await world.send(agent.id, "one")
    await world.delivered()
    await refused(world)
    await world.task_is(task.id, TaskState.FAILED)
    await is_limited(world, agent)


@pytest.mark.parametrize("made", first_of([True, False]))
async def test_a_part_with_a_fault_holds_nothing(quiet_world: World, made: bool) -> None:
    assert isinstance(quiet_world, LimitedWorld)
    quiet_world.instead = Faulty(made)
    await works_on(quiet_world, await limited(quiet_world))
    assert await quiet_world.manager.stop(quiet_world.manager.directory.agents()[0].id, remove=True) is not None


async def test_the_trouble_of_an_agent_that_does_not_run_is_known_before_any_is_adopted(quiet_world: World) -> None:
    world = quiet_world
    (a, link_a), (b, _) = await agents(world, {"KEY": "one"}, {"KEY": "one"})
    await world.send(a, "first")
    await fails(world, link_a)
    await until(lambda: held(world, b)[0] == "account", "held")
    await world.manager.stop(a)
    await world.manager.close(keep_agents=True)
    await world.daemon(adopt=False)
    assert held(world, b)[0] == "account"


async def test_a_new_agent_of_the_account_waits_as_well(quiet_world: World) -> None:
    world = quiet_world
    ((a, link),) = await agents(world, {"KEY": "one"})
    await world.send(a, "first")
    await fails(world, link)
    await until(lambda: held(world, a)[0] == "account", "held")
    ((new, _),) = await agents(world, {"KEY": "one"})
    await world.send(new, "second")
    assert held(world, new) == ("account", 1)


async def _limit(world: World, limit: dict[str, Any]) -> None:
    records = await world.store.agents()
    await world.store.commit(agents=[record.model_copy(update={"limit": limit}) for record in records])
