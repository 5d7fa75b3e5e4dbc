"""Plans, diffs and limits of a program's account, as its channel tells of them."""

import pytest

from synapsed.model.events import DiffUpdated, NewEvent, PlanUpdated, RateLimitsSeen
from synapsed.model.facts import DiffTold, LimitsTold, LimitWindow, PlanTold
from synapsed.model.link import LinkTold
from synapsed.parts.work_events.telling import DIFF_MAX, WorkTold
from tests.fakes.clock import until
from tests.support.world import World

AGENT = "synapse-fake-8190"
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
