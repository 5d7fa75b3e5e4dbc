"""Plans, diffs and limits of a program's account, as its channel tells of them."""

from unittest.mock import AsyncMock, Mock

import pytest

from synapsed.errors import NotReady, StoreError
from synapsed.model.events import DiffUpdated, NewEvent, PlanUpdated, RateLimitsSeen, ToolExecution
from synapsed.model.facts import DiffTold, LimitsTold, LimitWindow, PlanTold, ToolBegan
from synapsed.model.link import LinkTold
from synapsed.model.task import TaskState
from synapsed.parts.work_events.reporting import DIFF_MAX, ToolEvents, WorkEvents, WorkTold
from tests.fakes.clock import until
from tests.support.gated import first_of
from tests.support.world import World

AGENT = "synapse-fake-8190"
CALL = ToolBegan(channel="hooks", at_ns=1, tool="Bash", input={"command": "ls"}, call="c1")
PLAN = PlanTold(channel="server", at_ns=1, turn="t1", steps=(("look", "completed"), ("write", "in_progress")))


async def test_a_plan_is_told_with_its_task(world: World) -> None:
    await world.start()
    task = await world.send(AGENT, "do it")
    await world.delivered()
    world.link.emit(LinkTold(PLAN))
    await until(lambda: bool(world.told(PlanUpdated)))
    (plan,) = world.told(PlanUpdated)
    assert [(step.text, step.status) for step in plan.steps] == [("look", "completed"), ("write", "in_progress")]
    assert plan.turn_id == "t1"
    assert plan.source == "server"
    (event,) = [event for event in await world.store.events.read(0) if event.data.type == "plan"]
    assert event.task_id == task.id


def events(work: WorkTold, fact: PlanTold | DiffTold | LimitsTold) -> list[NewEvent]:
    return work.told(fact, None)


def test_the_same_is_told_once_and_another_again() -> None:
    work = WorkTold(AGENT)
    other = PlanTold(channel="server", at_ns=2, turn="t1", steps=(("look", "completed"), ("write", "completed")))
    assert [len(events(work, fact)) for fact in (PLAN, PLAN, other, PLAN)] == [1, 0, 1, 1]


def test_a_diff_is_bounded_and_says_so() -> None:
    (event,) = events(WorkTold(AGENT), DiffTold(channel="server", at_ns=1, turn="t1", diff="+x\n" * DIFF_MAX))
    assert isinstance(event.data, DiffUpdated)
    assert len(event.data.diff) == DIFF_MAX
    assert event.data.truncated


@pytest.mark.parametrize(("resets_at", "told"), [(None, None), (1_700_000_000.0, "2023-11-14T22:13:20.000Z")])
def test_limits_say_when_they_are_over(resets_at: float | None, told: str | None) -> None:
    window = LimitWindow(name="primary", used=42.0, minutes=300, resets_at=resets_at)
    (event,) = events(WorkTold(AGENT), LimitsTold(channel="server", at_ns=1, windows=(window,), plan="pro"))
    assert isinstance(event.data, RateLimitsSeen)
    (said,) = event.data.windows
    assert (said.name, said.used_percent, said.minutes, said.resets_at) == ("primary", 42.0, 300, told)


async def test_an_agent_whose_adoption_the_database_refused_is_told_of_once_it_runs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise StoreError("full")

    await world.start()
    world.link.emit(LinkTold(CALL))
    await until(lambda: len(world.told(ToolExecution)) == 1)
    await world.manager.stop(AGENT)
    await until(lambda: len(world.told(ToolExecution)) == 2, "the call ends with its program")
    await world.manager.close(keep_agents=True)
    with monkeypatch.context() as full:
        full.setattr(world.store.events, "open_attention", refuse)
        full.setattr(ToolEvents, "restore", refuse)
        await world.daemon()
        await world.manager.restart(AGENT)
        world.link.emit(LinkTold(PLAN))
        await until(lambda: bool(world.told(PlanUpdated)))
    world.link.emit(LinkTold(CALL))
    await until(lambda: len(world.link.taken_facts) == 2)
    assert len(world.told(ToolExecution)) == 2, "what an earlier daemon told is read once it can be"


@pytest.mark.parametrize("error", first_of([NotReady("not now"), ZeroDivisionError(), StoreError("full")]))
async def test_a_fault_where_it_is_told_of_takes_no_fact_from_the_agent(
    world: World, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("restore", "turn", "told"):
        kinds = ZeroDivisionError() if name == "restore" else error
        monkeypatch.setattr(ToolEvents, name, AsyncMock(side_effect=kinds))
    await world.start()
    world.link.emit(LinkTold(PLAN))
    task = await world.send(AGENT, "do it")
    await world.delivered()
    world.link.submit()
    world.link.end("done")
    await world.task_is(task.id, TaskState.COMPLETED)


async def test_a_part_that_tells_of_no_agent_keeps_none_from_adoption(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.start()
    await world.manager.close(keep_agents=True)
    monkeypatch.setattr(WorkEvents, "teller", Mock(side_effect=ZeroDivisionError))
    await world.daemon()
    await until(lambda: world.link.opened)
    world.link.emit(LinkTold(PLAN))
    await until(lambda: bool(world.link.taken_facts), "it is taken all the same")
