"""Usage limits: the agent is parked, the mailbox waits, the limit ends."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from synapsed.clock import iso
from synapsed.errors import NotTaken, StoreError
from synapsed.model.agent import Activity, AgentView
from synapsed.model.events import ActivityChanged, AttentionChanged
from synapsed.model.link import LinkTurnFailed, LinkTurnInterrupted
from synapsed.model.task import Prompt, PromptOption, Task, TaskState
from synapsed.parts.usage_limits.face import UsageLimitPolicy
from synapsed.parts.usage_limits.holding import LOOK_EVERY_S
from synapsed.parts.usage_limits.limit_notices import Limit
from synapsed.parts.usage_limits.limit_record import SLACK_S, LimitRecord, begun
from tests.fakes.clock import JUMPS, until
from tests.parts.usage_limits.conftest import AGENT_MODEL
from tests.support.world import World

LIMITER = """
command = "sh"
ports = [8140, 8149]
[[limit]]
pattern = 'limit reached(?:, until (?P<until>.+))?'
[[limit]]
pattern = 'Usage limit(?: till (?P<until>.+))?'
answer = "stop"
[[limit]]
pattern = 'No access to \\S+'
answer = "stop"
code = "MODEL_ERROR"
"""

DIALOG = Prompt(
    prompt_id="d1",
    type="question",
    prompt="Usage limit till 1700003600",
    options=[PromptOption(key="1", label="Keep trying"), PromptOption(key="2", label="Stop")],
)


async def limited(world: World, policy: UsageLimitPolicy | None = None, **config: Any) -> AgentView:
    world.agents["limiter"] = AGENT_MODEL(cwd="/", autostart=True, usage_limit=policy or UsageLimitPolicy(), **config)
    (world.paths.config.parent / "profiles" / "limiter.toml").write_text(LIMITER)
    world.library.reload()
    await world.daemon()
    return await ready(world)


async def ready(world: World) -> AgentView:
    await until(lambda: bool(world.factory.links), "launched")
    world.link.ready()
    view = world.manager.directory.agents()[0]
    await until(lambda: world.manager.directory.view(view.id).activity in ("ready", "limited"), "ready")
    return view


async def refused(world: World, count: int = 1, text: str = "limit reached", code: str = "RATE_LIMITED") -> None:
    """The program's turn ends by the limit."""
    await world.delivered(count)
    world.link.submit()
    world.link.emit(LinkTurnFailed(world.link.deliveries[-1].task_id, code, text, "fake"))
    world.link.ready()


async def is_limited(world: World, agent: AgentView) -> AgentView:
    await until(lambda: world.manager.directory.view(agent.id).activity == "limited", "limited")
    return world.manager.directory.view(agent.id)


def later(world: World, seconds: float) -> str:
    return iso(world.clock.wall() + seconds)


async def test_the_task_ends_the_mailbox_waits_and_the_reset_time_resumes(quiet_world: World) -> None:
    world = quiet_world
    agent = await limited(world)
    first, second = await world.send(agent.id, "one"), await world.send(agent.id, "two")
    await refused(world, text="limit reached, until 2 hours")
    failed = await world.task_is(first.id, TaskState.FAILED)
    assert failed.error is not None
    assert (failed.error.code, failed.error.details) == ("RATE_LIMITED", {"until": later(world, 7200)})
    view = await is_limited(world, agent)
    assert (view.until, view.held, view.queue) == (later(world, 7200 + SLACK_S), "limit", 1)
    assert world.told(ActivityChanged)[-1].activity in (Activity.LIMITED, Activity.READY)
    assert Activity.LIMITED in world.told(ActivityChanged, lambda data: data.activity)
    world.clock.advance(7200)
    assert world.manager.directory.view(agent.id).activity == "limited"
    assert len(world.link.deliveries) == 1
    world.clock.advance(60 + SLACK_S)
    await world.delivered(2)
    assert world.link.deliveries[-1].task_id == second.id
    world.link.submit()
    world.link.end("done")
    await world.task_is(second.id, TaskState.COMPLETED)
    assert world.manager.directory.view(agent.id).activity == "ready"


@pytest.mark.parametrize("zone", ["Asia/Tokyo", ":America/New_York", "Nowhere/City"])
async def test_a_time_of_day_is_that_of_the_agent(quiet_world: World, zone: str) -> None:
    """Not of the daemon, whose environment may say another one."""
    world = quiet_world
    agent = await limited(world, env={"TZ": zone})
    task = await world.send(agent.id)
    where = ZoneInfo(zone.removeprefix(":")) if "Nowhere" not in zone else None
    ends = datetime.fromtimestamp(world.clock.wall() + 7200, where).replace(second=0, microsecond=0)
    await refused(world, text=f"limit reached, until {ends:%I:%M %p}")
    failed = await world.task_is(task.id, TaskState.FAILED)
    assert failed.error is not None
    assert failed.error.details == {"until": iso(ends.timestamp())}


async def test_without_a_time_the_next_message_tries_it_out_and_is_not_lost(quiet_world: World) -> None:
    world = quiet_world
    agent = await limited(world, UsageLimitPolicy(probe=10, maximum=30, attempts=4))
    await world.send(agent.id, "one")
    second = await world.send(agent.id, "two")
    await refused(world)
    for number, pause in enumerate((10, 20), start=2):
        await is_limited(world, agent)
        world.clock.advance(pause - 1)
        assert len(world.link.deliveries) == number - 1
        world.clock.advance(1)
        await refused(world, number)
        await world.task_is(second.id, TaskState.SUBMITTED)
    await is_limited(world, agent)
    world.clock.advance(30)
    await refused(world, 4)
    failed = await world.task_is(second.id, TaskState.FAILED)
    assert failed.error is not None
    assert failed.error.code == "RATE_LIMITED", "attempts are bounded"
    texts = [delivery.text for delivery in world.link.deliveries]
    assert texts[:2] == ["one", "two"], "the message is typed once"
    assert all("the usage limit is over" in text.lower() for text in texts[2:])


@pytest.mark.parametrize("jump", [*(jump for jump in JUMPS if jump < 0), 0.0])
async def test_a_limit_lasts_no_longer_than_it_was_to(quiet_world: World, jump: float) -> None:
    """It holds if the clock is set back, if the machine sleeps, and over a restart."""
    world = quiet_world
    agent = await limited(world)
    await world.send(agent.id, "one")
    await refused(world, text="limit reached, until 2 hours")
    await is_limited(world, agent)
    world.clock.jump(jump)
    world.clock.sleep(3600.0)
    world.clock.advance(LOOK_EVERY_S)
    assert world.manager.directory.view(agent.id).activity == "limited"
    if jump:
        await world.manager.close(keep_agents=True)
        await world.daemon()
        await until(lambda: world.manager.directory.view(agent.id).activity == "limited", "limited")
        world.clock.sleep(3600.0)
    world.clock.sleep(3600.0)
    world.clock.advance(LOOK_EVERY_S + SLACK_S)
    await until(lambda: world.manager.directory.view(agent.id).until is None, "it is tried out")


@pytest.mark.parametrize("jump", [jump for jump in JUMPS if jump > 0])
async def test_a_limit_is_tried_out_when_its_date_has_come(quiet_world: World, jump: float) -> None:
    world = quiet_world
    agent = await limited(world)
    await world.send(agent.id, "one")
    await refused(world, text="limit reached, until 2 hours")
    await is_limited(world, agent)
    world.clock.jump(jump)
    world.clock.advance(LOOK_EVERY_S)
    await until(lambda: world.manager.directory.view(agent.id).until is None, "it is tried out")


def test_a_limit_that_never_ends_is_tried_out_for_ever() -> None:
    before = LimitRecord(since=0.0, resume_at=0.0, attempt=5000, lifted=True)
    limit = begun(before, Limit(words="limit reached"), UsageLimitPolicy(maximum=300.0), 1000.0)
    assert (limit.attempt, limit.resume_at) == (5001, 1300.0)


async def test_by_policy_the_task_goes_on(quiet_world: World) -> None:
    world = quiet_world
    agent = await limited(world, UsageLimitPolicy(task="continue"))
    task = await world.send(agent.id, "one")
    await refused(world, text="limit reached, until 60s")
    await is_limited(world, agent)
    waiting = await world.task_is(task.id, TaskState.SUBMITTED)
    assert waiting.error is None
    world.clock.advance(60 + SLACK_S)
    await world.delivered(2)
    delivery = world.link.deliveries[-1]
    assert (delivery.task_id, delivery.record.attempt) == (task.id, 2)
    assert delivery.text == f"[A2A:{task.id[:8]}:synapse-system] The usage limit is over: go on with what was asked."
    world.link.submit()
    world.link.end("done")
    await world.task_is(task.id, TaskState.COMPLETED)


async def test_a_new_program_that_knows_nothing_gets_the_message_itself(quiet_world: World) -> None:
    world = quiet_world
    agent = await limited(world, UsageLimitPolicy(task="continue"))
    task = await world.send(agent.id, "one")
    await refused(world, text="limit reached, until 1 hour")
    await is_limited(world, agent)
    await world.manager.restart(agent.id)
    world.link.ready()
    await world.delivered(1)
    assert world.link.deliveries[0].text == "one"
    world.link.submit()
    world.link.end("done")
    await world.task_is(task.id, TaskState.COMPLETED)


async def test_a_priority_message_does_not_wait(quiet_world: World) -> None:
    world = quiet_world
    agent = await limited(world)
    await world.send(agent.id, "one")
    await refused(world, text="limit reached, until 1 hour")
    await is_limited(world, agent)
    urgent = await world.send(agent.id, "now", priority=5)
    await world.delivered(2)
    assert world.link.deliveries[-1].task_id == urgent.id
    assert world.manager.directory.view(agent.id).activity != "limited"


async def test_cancel_ends_the_waiting(quiet_world: World) -> None:
    world = quiet_world
    agent = await limited(world)
    await world.send(agent.id, "one")
    second = await world.send(agent.id, "two")
    await refused(world, text="limit reached, until 1 hour")
    await is_limited(world, agent)
    assert await world.manager.terminals.interrupt(agent.id)
    await world.delivered(2)
    assert world.link.deliveries[-1].task_id == second.id


async def test_a_waiting_task_is_canceled_in_the_mailbox(quiet_world: World) -> None:
    world = quiet_world
    agent = await limited(world, UsageLimitPolicy(task="continue"))
    task = await world.send(agent.id, "one")
    await refused(world, text="limit reached, until 1 hour")
    await is_limited(world, agent)
    assert (await world.manager.tasks.cancel(task.id)).status is TaskState.CANCELED


@pytest.mark.parametrize("task_policy", ["fail", "continue"])
async def test_it_survives_the_daemon(quiet_world: World, task_policy: Any) -> None:
    world = quiet_world
    agent = await limited(world, UsageLimitPolicy(task=task_policy))
    first = await world.send(agent.id, "one")
    second = await world.send(agent.id, "two")
    await refused(world, text="limit reached, until 1 hour")
    before = await is_limited(world, agent)
    await world.manager.close(keep_agents=True)
    world.clock.advance(1800)
    await world.daemon()
    await ready(world)
    after = await is_limited(world, agent)
    assert (after.until, after.queue) == (before.until, before.queue)
    assert not world.link.deliveries
    world.clock.advance(1800 + SLACK_S)
    await world.delivered(1)
    assert world.link.deliveries[0].task_id == (second.id if task_policy == "fail" else first.id)


async def test_a_task_that_goes_on_is_in_its_new_conversation_already(quiet_world: World) -> None:
    world = quiet_world
    agent = await limited(world, UsageLimitPolicy(task="continue"))
    task = await world.send(agent.id, "one", metadata={"new_conversation": True})
    await refused(world, text="limit reached, until 1 hour")
    await is_limited(world, agent)
    await world.manager.close(keep_agents=True)
    await world.daemon()
    await ready(world)
    world.clock.advance(3600 + SLACK_S)
    await world.delivered(1)
    assert world.link.deliveries[0].task_id == task.id
    assert "go on with what was asked" in world.link.deliveries[0].text
    assert len(world.factory.launched) == 1


async def test_a_limit_told_in_a_dialog_is_answered_and_ends_the_turn(quiet_world: World) -> None:
    world = quiet_world
    agent = await limited(world)
    task = await world.send(agent.id, "one")
    await world.delivered()
    world.link.submit()
    world.link.observe_as(Activity.WAITING, prompt=DIALOG)
    await until(lambda: world.link.answers == [("stop", "d1")], "answered")
    world.link.observe_as(Activity.BUSY)
    world.link.emit(LinkTurnInterrupted(task.id, "person", "fake"))
    world.link.ready()
    failed = await world.task_is(task.id, TaskState.FAILED)
    assert failed.error is not None
    assert (failed.error.code, failed.error.details) == ("RATE_LIMITED", {"until": iso(1_700_003_600)})
    assert "input_required" not in world.statuses(task.id)
    await is_limited(world, agent)


async def test_a_dialog_that_does_not_take_the_answer_is_a_persons(quiet_world: World) -> None:
    world = quiet_world
    agent = await limited(world)
    task = await world.send(agent.id, "one")
    await world.delivered()
    world.link.submit()
    tries = []

    async def refuse(text: str, prompt_id: str | None) -> bool:
        tries.append(prompt_id)
        assert len(tries) < 9, "without end"
        raise NotTaken("it asks the same", prompt_id=prompt_id)

    world.link.answer = refuse
    world.link.observe_as(Activity.WAITING, prompt=DIALOG)
    await world.task_is(task.id, TaskState.INPUT_REQUIRED)
    assert tries == ["d1"]
    world.link.observe_as(Activity.BUSY)
    await world.task_is(task.id, TaskState.WORKING)
    world.link.observe_as(Activity.WAITING, prompt=DIALOG)
    await until(lambda: tries == ["d1", "d1"], "the dialog is shown again, so it may be another one")


async def test_a_dialog_may_be_about_the_account_instead(quiet_world: World) -> None:
    """All behind it wait, for no time that is known."""
    world = quiet_world
    agent = await limited(world)
    task, behind = await world.send(agent.id, "one"), await world.send(agent.id, "two")
    await world.delivered()
    world.link.submit()
    asked = DIALOG.model_copy(update={"prompt": "No access to model-x\nContact your admin."})
    world.link.observe_as(Activity.WAITING, prompt=asked)
    await until(lambda: world.link.answers == [("stop", "d1")], "answered")
    world.link.observe_as(Activity.BUSY)
    world.link.emit(LinkTurnInterrupted(task.id, "person", "fake"))
    world.link.ready()
    failed = await world.task_is(task.id, TaskState.FAILED)
    assert failed.error is not None
    assert (failed.error.code, failed.error.details) == ("MODEL_ERROR", {"held": "account"})
    view = world.manager.directory.view(agent.id)
    assert (view.held, view.queue, view.activity) == ("account", 1, "ready")
    assert world.statuses(behind.id) == ["submitted"]


@pytest.mark.parametrize(
    "asks",
    [
        {"type": "permission", "prompt": "Usage limit\nAllow execution?"},
        {"prompt": "What is to be done about a Usage limit?"},
    ],
)
async def test_a_dialog_that_has_the_words_in_it_is_a_persons(quiet_world: World, asks: dict[str, str]) -> None:
    world = quiet_world
    agent = await limited(world)
    task = await world.send(agent.id, "one")
    await world.delivered()
    world.link.submit()
    world.link.observe_as(Activity.WAITING, prompt=DIALOG.model_copy(update=asks))
    await world.task_is(task.id, TaskState.INPUT_REQUIRED)
    assert world.link.answers == []


async def test_a_persons_own_dialog_is_left_to_the_person(quiet_world: World) -> None:
    world = quiet_world
    agent = await limited(world)
    world.link.observe_as(Activity.WAITING, prompt=DIALOG)
    await until(lambda: world.manager.directory.view(agent.id).activity == "waiting", "waiting")
    assert world.link.answers == []


async def test_other_failures_park_nothing(quiet_world: World) -> None:
    world = quiet_world
    agent = await limited(world)
    task: Task = await world.send(agent.id, "one")
    await refused(world, text="broken", code="MODEL_ERROR")
    await world.task_is(task.id, TaskState.FAILED)
    assert world.manager.directory.view(agent.id).activity == "ready"


async def test_a_limit_whose_end_cannot_be_written_down_ends_by_itself(quiet_world: World) -> None:
    world = quiet_world
    agent = await limited(world)
    await world.send(agent.id, "one")
    await refused(world, text="limit reached, until 2 hours")
    await is_limited(world, agent)
    await world.send(agent.id, "two")
    world.store.refuse = StoreError("disk full")
    with pytest.raises(StoreError):
        await world.manager.terminals.interrupt(agent.id)
    world.store.refuse = None

    def tried() -> bool:
        world.clock.advance(60)
        return len(world.link.deliveries) == 2

    await until(tried, "the second message is given")


async def test_a_limit_that_is_met_again_after_a_kill_counts_once(quiet_world: World) -> None:
    """The limit was recorded, and the end of its task not."""
    world = quiet_world
    agent = await limited(world)
    task = await world.send(agent.id, "one")
    await world.delivered(1)
    world.link.submit()
    met = LinkTurnFailed(task.id, "RATE_LIMITED", "limit reached, until 2 hours", "fake")
    live = world.manager._agents[agent.id]
    await live._actor.report(live.hold.turn_over, met, stopped=False)
    await world.manager.close(keep_agents=True)
    await world.daemon()
    world.link.emit(met)
    await until(lambda: world.statuses(task.id)[-1] == "failed", "it is not put back")
    opened = {event.id for event in world.told(AttentionChanged) if event.kind == "limit"}
    assert len(opened) == 1
