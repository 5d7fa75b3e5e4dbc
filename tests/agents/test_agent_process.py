"""The program of one agent: start, stop, exits, the restart policy, and a new daemon's adoption."""

import asyncio
import signal
from typing import Any

import pytest

from synapsed.config.config import AgentConfig, RestartPolicy
from synapsed.errors import AgentError, KeeperLost, LaunchError, NotReady, StoreError
from synapsed.model.agent import ProcessState
from synapsed.model.events import ActivityChanged, StateChanged
from synapsed.model.link import LinkExited
from synapsed.model.task import TaskState
from tests.fakes.clock import PATIENCE_S, until
from tests.support.world import World

AGENT = "synapse-fake-8190"
TALKER = "synapse-talker-8170"


def states(world: World) -> list[str]:
    return world.told(StateChanged, lambda d: d.state.value)


async def test_start_and_stop(world: World) -> None:
    view = await world.start(ready=False)
    assert (view.name, view.id, view.state, view.activity) == ("fake", AGENT, "running", "starting")
    assert view.pid == world.link.launch.pid
    record = (await world.store.agents())[0]
    assert (record.launch, record.state) == (world.link.launch, "running")
    view = await world.manager.stop(AGENT)
    assert (view.state, view.pid) == ("stopped", None)
    assert world.link.closed
    assert states(world) == ["starting", "running", "stopping", "stopped"]
    assert [v.name for v in world.manager.directory.agents()] == ["fake"]
    assert (await world.manager.stop(AGENT)).state == "stopped"


async def test_the_launch_is_recorded_before_the_link_is_opened(world: World) -> None:
    recorded = []
    launch = world.factory.launch

    async def looking(*args):
        link = await launch(*args)
        opened = link.open

        async def open_(emit):
            recorded.append((await world.store.agents())[0].launch)
            await opened(emit)

        link.open = open_
        return link

    world.factory.launch = looking
    await world.start()
    assert recorded == [world.link.launch]


async def test_a_launch_that_fails_leaves_no_agent(world: World) -> None:
    world.factory.failing("exec format error")
    with pytest.raises(LaunchError, match="exec format"):
        await world.start()
    assert world.manager.directory.agents() == []
    assert await world.store.agents() == []
    world.factory.refuse = None
    assert (await world.start()).name == "fake"


async def test_a_launch_that_fails_by_a_fault_leaves_no_agent_that_starts_for_ever(world: World) -> None:
    async def faulty(*_: Any) -> Any:
        raise RuntimeError("can't start new thread")

    launch, world.factory.launch = world.factory.launch, faulty
    with pytest.raises(AgentError, match="thread"):
        await world.start()
    assert world.manager.directory.agents() == []
    world.factory.launch = launch
    assert (await world.start()).name == "fake"


async def test_a_stop_that_fails_by_a_fault_ends_all_the_same(world: World) -> None:
    await world.start()

    async def faulty(_grace: float) -> LinkExited:
        raise RuntimeError("can't start new thread")

    world.link.stop = faulty
    assert (await world.manager.stop(AGENT)).state == "stopped"
    assert world.factory.swept == [world.link.launch.launch_id]


async def test_stop_during_start_ends_what_was_started(world: World) -> None:
    world.factory.gate = asyncio.get_running_loop().create_future()
    starting = asyncio.ensure_future(world.start(ready=False))
    await until(world.manager.directory.agents)
    stopping = asyncio.ensure_future(world.manager.stop(AGENT))
    await world.agent_is(AGENT, ProcessState.STOPPING)
    world.factory.gate.set_result(None)
    assert (await stopping).state == "stopped"
    await starting
    assert world.link.exit is not None


async def test_restart_keeps_name_and_port(world: World) -> None:
    before = await world.start()
    first = world.link
    view = await world.manager.restart(AGENT)
    assert (view.name, view.port, view.state) == (before.name, before.port, "running")
    assert view.pid != before.pid
    assert first.closed
    assert view.restarts == 0


async def test_restart_of_a_stopped_agent(world: World) -> None:
    await world.start()
    await world.manager.stop(AGENT)
    assert (await world.manager.restart(AGENT)).state == "running"


async def test_two_stops_at_once_and_a_start_between(world: World) -> None:
    await world.start()
    world.link.stop_gate = asyncio.get_running_loop().create_future()
    stops = [asyncio.ensure_future(world.manager.stop(AGENT)) for _ in range(2)]
    await world.agent_is(AGENT, ProcessState.STOPPING)
    world.link.stop_gate.set_result(None)
    assert [view.state for view in await asyncio.gather(*stops)] == ["stopped", "stopped"]


async def test_agents_do_not_wait_for_each_other(world: World) -> None:
    await world.start()
    world.link.stop_gate = asyncio.get_running_loop().create_future()
    stopping = asyncio.ensure_future(world.manager.stop(AGENT))
    other = await world.start()
    assert other.name == "fake-8191"
    assert not stopping.done()
    world.factory.links[0].stop_gate.set_result(None)
    await stopping


async def test_an_exit_is_followed_by_backoff_and_a_new_program(world: World) -> None:
    await world.start()
    world.link.die(7)
    view = await world.agent_is(AGENT, ProcessState.BACKOFF)
    assert "exit code 7" in view.evidence
    assert view.pid is None
    assert states(world) == ["starting", "running", "exited", "backoff"]
    world.clock.advance(0.49)
    assert world.manager.directory.view(AGENT).state == "backoff"
    world.clock.advance(0.02)
    view = await world.agent_is(AGENT, ProcessState.RUNNING)
    assert view.restarts == 1
    world.link.ready()
    await until(lambda: world.manager.directory.view(AGENT).activity == "ready")


async def test_a_fine_code_stays_exited(world: World) -> None:
    await world.start()
    world.link.die(3)
    view = await world.agent_is(AGENT, ProcessState.EXITED)
    assert "exit code 3" in view.evidence
    with pytest.raises(NotReady):
        await world.send(AGENT)
    assert (await world.manager.restart(AGENT)).state == "running"


async def test_a_crash_loop_is_retried_slowly_and_never_dead(world: World) -> None:
    await world.start()
    for _ in range(8):
        world.link.die(1)
        await world.agent_is(AGENT, ProcessState.BACKOFF)
        world.clock.jump(3600)
        world.clock.advance(5)
        for _ in range(3):
            if world.manager.directory.view(AGENT).state == "backoff":
                world.clock.advance(30)
            await asyncio.sleep(0)
        await world.agent_is(AGENT, ProcessState.RUNNING)
        if world.told(StateChanged)[-1].restarts == 8:
            break
    assert world.manager.directory.view(AGENT).restarts == 8


async def test_too_many_exits_in_the_window_fail(world: World) -> None:
    policy = RestartPolicy(limit=2, retry=300, jitter=0, initial=0.1)
    world.agents["c"] = AgentConfig(profile="fake", autostart=True, restart=policy)
    await world.close()
    world.managers.clear()
    await world.daemon()
    agent = world.manager.directory.resolve("c")
    for _ in range(2):
        world.link.die(1)
        await world.agent_is(agent, ProcessState.BACKOFF)
        world.clock.advance(1)
        await world.agent_is(agent, ProcessState.RUNNING)
    world.link.die(1)
    assert "trying again in 300 s" in (await world.agent_is(agent, ProcessState.FAILED)).evidence
    world.clock.advance(299)
    assert world.manager.directory.view(agent).state == "failed"
    world.clock.advance(1.1)
    await world.agent_is(agent, ProcessState.RUNNING)


async def test_stop_during_backoff(world: World) -> None:
    await world.start()
    world.link.die(1)
    await world.agent_is(AGENT, ProcessState.BACKOFF)
    assert (await world.manager.stop(AGENT)).state == "stopped"
    world.clock.advance(3600)
    assert world.manager.directory.view(AGENT).state == "stopped"


@pytest.mark.parametrize("asked", ["stop", "restart"])
async def test_what_the_database_refuses_during_backoff_changes_nothing(world: World, asked: str) -> None:
    await world.start()
    world.link.die(1)
    await world.agent_is(AGENT, ProcessState.BACKOFF)
    world.store.refuse = StoreError("disk full")
    with pytest.raises(StoreError):
        await (world.manager.stop(AGENT) if asked == "stop" else world.manager.restart(AGENT))
    world.store.refuse = None
    world.clock.advance(60.0)
    await world.agent_is(AGENT, ProcessState.RUNNING)


async def test_kill_is_followed_by_the_policy(world: World) -> None:
    await world.start()
    await world.manager.kill(AGENT)
    view = await world.agent_is(AGENT, ProcessState.BACKOFF)
    assert "SIGKILL" in view.evidence
    assert world.link.signals == [9]
    with pytest.raises(NotReady):
        await world.manager.kill(AGENT)


async def test_a_crash_fails_the_running_task_and_keeps_the_waiting(world: World) -> None:
    await world.start()
    running = await world.send(AGENT, "running")
    waiting = await world.send(AGENT, "waiting")
    await world.delivered()
    world.link.submit()
    await until(lambda: world.link.records)
    world.link.screen = "Segmentation fault"
    world.link.die(-11)
    failed = await world.task_is(running.id, TaskState.FAILED)
    assert failed.error is not None
    assert failed.error.code == "AGENT_EXITED"
    assert failed.error.details == {"exit_code": -11, "signal": "SIGSEGV"}
    assert "SIGSEGV" in failed.error.message
    await world.agent_is(AGENT, ProcessState.BACKOFF)
    assert await world.manager.terminals.context(AGENT) == "Segmentation fault"
    assert await world.store.turns() == []
    world.clock.advance(1)
    await world.agent_is(AGENT, ProcessState.RUNNING)
    world.link.ready()
    await world.delivered()
    assert world.link.deliveries[0].task_id == waiting.id


async def test_a_message_that_was_not_submitted_is_delivered_after_the_restart(world: World) -> None:
    await world.start()
    first = await world.send(AGENT, "first")
    await world.send(AGENT, "second", priority=4)
    await world.delivered()
    world.link.die(1)
    await world.agent_is(AGENT, ProcessState.BACKOFF)
    assert (await world.store.task(first.id)).status is TaskState.SUBMITTED
    assert world.manager.directory.view(AGENT).queue == 2
    world.clock.advance(1)
    await world.agent_is(AGENT, ProcessState.RUNNING)
    world.link.ready()
    await world.delivered()
    delivery = world.link.deliveries[0]
    assert (delivery.task_id, delivery.record.attempt) == (first.id, 2)
    assert delivery.record.launch_id == world.link.launch.launch_id


@pytest.mark.parametrize("error", [KeeperLost("refused"), RuntimeError("can't start new thread")])
async def test_a_keeper_that_cannot_be_reached_counts_as_an_exit(world: World, error: Exception) -> None:
    """What is left of it is ended before that is on record."""
    launch = world.factory.launch

    async def broken(*args):
        link = await launch(*args)
        link.open_error = error
        return link

    world.factory.launch = broken
    world.factory.sweep_gate = asyncio.get_running_loop().create_future()
    starting = asyncio.ensure_future(world.start(ready=False))
    await until(lambda: world.factory.swept)
    assert (world.factory.swept, world.store._agents[AGENT].state) == (["launch-0"], "running")
    world.factory.sweep_gate.set_result(None)
    await starting
    await world.agent_is(AGENT, ProcessState.BACKOFF)
    assert str(error) in world.told(StateChanged, lambda d: d.reason)[-1]
    waiting = await world.send(AGENT)
    world.factory.launch, world.factory.sweep_gate = launch, None
    await world.manager.restart(AGENT)
    world.link.ready()
    await world.delivered()
    assert world.link.deliveries[0].task_id == waiting.id


@pytest.mark.parametrize("faulty", [("adopt",), ("adopt", "ended"), ("adopt", "ended", "sweep")])
async def test_a_program_that_a_fault_keeps_from_being_adopted_is_ended_and_started_again(
    world: World, faulty: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: Any) -> Any:
        raise RuntimeError("can't start new thread")

    await world.start()
    first = world.link.launch.launch_id
    for name in faulty:
        monkeypatch.setattr(world.factory, name, fails)
    await restarted(world)
    await world.agent_is(AGENT, ProcessState.BACKOFF)
    assert world.factory.swept == ([] if "sweep" in faulty else [first])
    world.clock.advance(1)
    await world.agent_is(AGENT, ProcessState.RUNNING)
    assert world.link.launch.launch_id != first


async def test_an_exit_waits_for_the_database(world: World) -> None:
    await world.start()
    world.store.refuse = StoreError("disk full")
    world.link.die(1)
    await until(lambda: world.clock.pending().count(1.0) == 1)
    world.store.refuse = None
    world.clock.advance(1)
    await world.agent_is(AGENT, ProcessState.BACKOFF)


async def test_stop_remove_leaves_only_the_tasks(world: World) -> None:
    await world.start(ready=False)
    task = await world.send(AGENT)
    directory = world.paths.agent(AGENT)
    assert directory.is_dir()
    await world.manager.stop(AGENT, remove=True)
    assert world.manager.directory.agents() == []
    assert await world.store.agents() == []
    assert not directory.exists()
    assert (await world.store.task(task.id)).metadata["reason"] == "removed"
    assert (await world.start()).id == AGENT


# --- from one daemon to the next ---


async def restarted(world: World, *, adopt: bool = True) -> None:
    """The daemon is killed: nothing is closed, a new one comes."""
    old = world.manager
    for agent in old._agents.values():
        for link in world.factory.links:
            link.emit = lambda _event: None
        agent._actor._task.cancel()
        for operation in agent._actor._operations:
            operation.cancel()
    old._sweeper.cancel()
    old._news._running.cancel()
    world.managers.remove(old)
    await world.daemon(adopt=adopt)


async def test_a_new_daemon_takes_up_the_program_and_its_turn(world: World) -> None:
    before = await world.start()
    task = await world.send(AGENT, "long work")
    waiting = await world.send(AGENT, "next")
    await world.delivered()
    world.link.submit()
    await until(lambda: world.link.records)
    record = world.link.records[0]
    await restarted(world)
    view = world.manager.directory.view(AGENT)
    assert (view.pid, view.state, view.task, view.queue) == (before.pid, "running", task.id, 1)
    assert len(world.factory.launched) == 1
    await world.delivered()
    assert world.link.deliveries[0].record == record
    assert world.link.deliveries[0].text == "long work"
    world.link.end("whole answer")
    assert (await world.task_is(task.id, TaskState.COMPLETED)).answer == "whole answer"
    await world.delivered(2)
    assert world.link.deliveries[1].task_id == waiting.id
    assert world.statuses(task.id) == ["submitted", "working", "completed"]


async def test_an_exit_while_the_daemon_was_down_is_told_once_and_the_policy_applied_once(world: World) -> None:
    await world.start()
    task = await world.send(AGENT)
    await world.delivered()
    world.link.submit()
    await until(lambda: world.link.records)
    world.factory.dead[AGENT] = LinkExited(7, "the program ended")
    await restarted(world)
    failed = await world.task_is(task.id, TaskState.FAILED)
    assert failed.error is not None
    assert (failed.error.code, failed.error.details["exit_code"]) == ("AGENT_EXITED", 7)
    await world.agent_is(AGENT, ProcessState.BACKOFF)
    world.factory.dead.clear()
    world.clock.advance(1)
    await world.agent_is(AGENT, ProcessState.RUNNING)
    assert len(world.factory.launched) == 2
    assert states(world).count("exited") == 1


async def test_keeper_and_daemon_killed_together(world: World) -> None:
    await world.start()
    launch = world.link.launch.launch_id
    task = await world.send(AGENT)
    await world.delivered()
    world.link.submit()
    await until(lambda: world.link.records)
    world.factory.programs.clear()
    world.factory.sweep_gate = asyncio.get_running_loop().create_future()
    await world.daemon(adopt=False)
    adopting = asyncio.ensure_future(world.manager.adopt())
    await until(lambda: world.factory.swept == [launch])
    assert world.store._agents[AGENT].state == "running", "what is left of it is ended first: no daemon looks again"
    world.factory.sweep_gate.set_result(None)
    await adopting
    failed = await world.task_is(task.id, TaskState.FAILED)
    assert failed.error is not None
    assert failed.error.code == "INTERRUPTED"
    world.clock.advance(1)
    await world.agent_is(AGENT, ProcessState.RUNNING)


async def test_killed_while_stopping_goes_on_stopping(world: World) -> None:
    await world.start()
    world.link.stop_gate = asyncio.get_running_loop().create_future()
    stopping = asyncio.ensure_future(world.manager.stop(AGENT))
    await world.agent_is(AGENT, ProcessState.STOPPING)
    stopping.cancel()
    await restarted(world)
    await world.agent_is(AGENT, ProcessState.STOPPED)


@pytest.mark.parametrize(("first", "then", "found"), [("restart", "stop", "stopped"), ("stop", "restart", "running")])
async def test_the_last_word_counts_where_the_daemon_dies_while_it_stops(
    first: str, then: str, found: str, world: World
) -> None:
    await world.start()
    world.link.stop_gate = asyncio.get_running_loop().create_future()
    asked = [asyncio.ensure_future(getattr(world.manager, first)(AGENT))]
    await world.agent_is(AGENT, ProcessState.STOPPING)
    asked.append(asyncio.ensure_future(getattr(world.manager, then)(AGENT)))
    await until(lambda: world.store._agents[AGENT].desired == found)
    for each in asked:
        each.cancel()
    await restarted(world)
    await world.agent_is(AGENT, ProcessState(found))


async def test_restarted_when_idle_while_it_stops_it_is_restarted(world: World) -> None:
    await world.start()
    gate = world.link.stop_gate = asyncio.get_running_loop().create_future()
    stopping = asyncio.ensure_future(world.manager.stop(AGENT))
    await world.agent_is(AGENT, ProcessState.STOPPING)
    restarting = asyncio.ensure_future(world.manager.restart(AGENT, when_idle=True))
    await asyncio.sleep(0)
    gate.set_result(None)
    assert (await restarting).state is ProcessState.RUNNING
    await stopping


async def test_killed_between_launch_and_its_record_finds_the_program(world: World) -> None:
    await world.start()
    record = (await world.store.agents())[0]
    await world.store.commit(agents=[record.model_copy(update={"state": "starting", "launch": None})])
    await restarted(world)
    await world.agent_is(AGENT, ProcessState.RUNNING)
    assert len(world.factory.launched) == 1
    assert (await world.store.agents())[0].launch is not None


async def test_backoff_and_failure_go_on(world: World) -> None:
    await world.start()
    world.link.die(1)
    await world.agent_is(AGENT, ProcessState.BACKOFF)
    launch = world.link.launch.launch_id
    await restarted(world)
    await until(lambda: world.factory.swept == [launch], "the keeper that was not told is dismissed")
    world.clock.advance(1)
    await world.agent_is(AGENT, ProcessState.RUNNING)


@pytest.mark.slow
async def test_a_program_is_taken_up_although_the_database_refuses_the_message_that_waits(world: World) -> None:
    await world.start(ready=False)
    waiting = await world.send(AGENT)
    opened = world.factory.slow_to_open[AGENT] = asyncio.get_running_loop().create_future()
    manager = await world.daemon(adopt=False)
    adopting = asyncio.ensure_future(manager.adopt())
    await until(lambda: world.told(StateChanged, lambda d: d.reason)[-1] == "adopted")
    world.link.ready()
    world.store.refuse = StoreError("disk full")
    opened.set_result(None)
    await asyncio.wait_for(adopting, PATIENCE_S)
    world.store.refuse = None
    world.clock.advance(1)
    await world.delivered()
    assert world.link.deliveries[0].task_id == waiting.id


@pytest.mark.parametrize("early", [False, True])
async def test_a_daemon_that_ends_leaves_a_program_that_it_has_not_reached_to_the_next_one(
    world: World, early: bool
) -> None:
    """Its keeper stands still, perhaps for hours."""
    await world.start()
    world.factory.unreached.add(AGENT)
    manager = await world.daemon(adopt=False)
    adopting = asyncio.ensure_future(manager.adopt())
    if not early:
        await until(lambda: world.told(StateChanged, lambda d: d.reason)[-1] == "adopted")
    await asyncio.wait_for(manager.close(keep_agents=True), PATIENCE_S)
    adopting.cancel()
    await asyncio.wait([adopting])
    world.factory.unreached.clear()
    await restarted(world)
    assert world.manager.directory.view(AGENT).state == "running"
    assert not world.factory.swept


async def test_stopped_agents_stay_stopped_and_can_be_restarted(world: World) -> None:
    await world.start(args=("--flag",))
    await world.manager.stop(AGENT)
    await restarted(world)
    assert world.manager.directory.view(AGENT).state == "stopped"
    await world.manager.restart(AGENT)
    assert world.factory.launched[-1][0].args == ["--flag"]


async def test_a_message_that_waited_over_the_daemon_s_end(world: World) -> None:
    await world.start(ready=False)
    tasks = [await world.send(AGENT, str(n), priority=p) for n, p in ((1, 1), (2, 4), (3, 1))]
    await restarted(world)
    assert world.manager.directory.view(AGENT).queue == 3
    world.link.ready()
    for count in (1, 2, 3):
        await world.delivered(count)
        world.link.end("x")
    assert [d.task_id for d in world.link.deliveries] == [tasks[1].id, tasks[0].id, tasks[2].id]


async def test_what_is_asked_before_the_adoption_is_done_after_it(world: World) -> None:
    await world.start()
    await world.start()
    world.factory.links[-1].die(1)
    await world.agent_is("synapse-fake-8191", ProcessState.BACKOFF)
    world.factory.programs.pop("synapse-fake-8191")
    await restarted(world, adopt=False)
    views = await asyncio.gather(world.manager.stop(AGENT), world.manager.restart("synapse-fake-8191"))
    assert [view.state for view in views] == ["stopped", "running"]
    await world.manager.adopt()
    assert len(world.factory.launched) == 3


async def test_a_program_is_adopted_although_the_inbox_cannot_be_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged page of one agent's events keeps neither it nor the others from coming up."""
    await world.start()
    await restarted(world, adopt=False)

    async def read(_: Any, agent_id: str) -> Any:
        raise StoreError(f"the events of {agent_id} are damaged", reason="corrupt")

    monkeypatch.setattr(type(world.store.events), "open_attention", read)
    await world.manager.adopt()
    assert (await world.manager.restart(AGENT)).state == "running"


async def test_what_is_asked_of_a_program_before_the_adoption_is_done_after_it(world: World) -> None:
    await world.start()
    await restarted(world, adopt=False)
    attachment = await world.manager.terminals.attach(AGENT, cols=80, rows=24, read_only=True)
    assert await attachment.redraw() == b""
    await restarted(world, adopt=False)
    await world.manager.kill(AGENT)
    await until(lambda: world.link.signals == [9])


async def test_closing_before_the_adoption_ends_the_programs_too(world: World) -> None:
    await world.start()
    await restarted(world, adopt=False)
    await world.manager.close(keep_agents=False)
    assert world.link.exit is not None
    assert (await world.store.agents())[0].state == "stopped"


async def test_closing_lets_the_program_live(world: World) -> None:
    await world.start()
    await world.manager.close(keep_agents=True)
    assert world.link.exit is None
    assert world.link.closed
    assert (await world.store.agents())[0].state == "running"
    world.managers.clear()


async def test_closing_without_keeping_stops_all(world: World) -> None:
    await world.start()
    await world.start()
    await world.manager.close(keep_agents=False)
    assert [record.state for record in await world.store.agents()] == ["stopped", "stopped"]
    world.managers.clear()


async def test_an_activity_is_shown_with_its_own_since(world: World) -> None:
    """Whoever looks while the change is being stored must not see the new activity with the time of the one before."""
    view = await world.start(ready=False)
    let_through = asyncio.Event()
    commit = world.store.commit

    async def slow(**what):
        await let_through.wait()
        return await commit(**what)

    world.store.commit = slow
    world.clock.advance(7)
    world.link.ready()
    await until(lambda: world.manager.directory.view(AGENT).activity == "ready")
    early = world.manager.directory.view(AGENT).since
    world.clock.advance(7)
    let_through.set()
    await until(lambda: world.told(ActivityChanged, lambda told: told.activity)[-1:] == ["ready"])
    assert view.since < early == world.manager.directory.view(AGENT).since


async def test_an_exit_does_not_wait_for_a_screen_that_nobody_draws(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synapsed.agents.last_screen.LAST_SCREEN_S", 0.01)
    await world.start()
    link = world.link
    link.screen_gate = asyncio.get_running_loop().create_future()  # what draws it stands still
    link.die(1)
    try:
        await world.agent_is(AGENT, ProcessState.BACKOFF)
    finally:
        link.screen_gate.set_result(None)


# --- a full disk -----------------------------------------------------------------------------------------------------


async def fact_refused(world: World) -> None:
    """The disk is full, and a fact waits for it in the agent's actor."""
    await world.start()
    await world.send(AGENT)
    await world.delivered()
    world.store.refuse = StoreError("disk full", reason="full")
    world.link.end("precious")
    await until(lambda: 1.0 in world.clock.pending())


@pytest.mark.parametrize("waits", [False, True], ids=["nothing waits", "a fact waits"])
async def test_a_program_is_stopped_on_a_full_disk(world: World, waits: bool) -> None:
    """It is what may fill the disk. That it is stopped is told once it is written down, and it is not started again."""
    if waits:
        await fact_refused(world)
    else:
        await world.start()
        world.store.refuse = StoreError("disk full", reason="full")
    program = world.link
    for _ in range(2):
        with pytest.raises(StoreError, match=r"has ended, but .* disk full") as told:
            await world.manager.stop(AGENT)
        assert told.value.details == {"reason": "full"}
        assert program.exit is not None
    for verb in (world.manager.restart, world.manager.park, world.manager.terminals.interrupt):
        with pytest.raises(StoreError, match="disk full"):
            await verb(AGENT)
    world.store.refuse = None
    world.clock.advance(1.0)
    await until(lambda: world.manager.directory.view(AGENT).state is ProcessState.STOPPED)
    assert world.link is program
    assert world.told(StateChanged, lambda d: d.state)[-2:] == [ProcessState.STOPPING, ProcessState.STOPPED]


@pytest.mark.parametrize("keep_agents", [False, True])
async def test_a_daemon_ends_on_a_full_disk(world: World, keep_agents: bool) -> None:
    await fact_refused(world)
    await asyncio.wait_for(world.manager.close(keep_agents=keep_agents), PATIENCE_S)
    assert (world.link.exit is None) is keep_agents


async def test_a_program_is_killed_while_a_fact_waits(world: World) -> None:
    await fact_refused(world)
    await world.manager.kill(AGENT)
    assert world.link.signals == [signal.SIGKILL]


async def test_success_in_the_middle_of_a_turn_is_a_crash_and_in_a_commands_none(world: World) -> None:
    """The exit code may be a wrapper's; and a command, like `/quit`, ends a program."""
    await world.start()
    task = await world.send(AGENT, "work")
    await world.delivered()
    world.link.submit()
    await until(lambda: world.link.records)
    world.link.die(0)
    await world.task_is(task.id, TaskState.FAILED)
    view = await world.agent_is(AGENT, ProcessState.BACKOFF)
    assert "nobody ended it, and it worked on a message: that is no success" in view.evidence
    world.clock.advance(1)
    await world.agent_is(AGENT, ProcessState.RUNNING)
    world.link.ready()
    await world.send(AGENT, "/quit", command=True)
    await world.delivered()
    world.link.submit()
    await until(lambda: world.link.records)
    world.link.die(0)
    await world.agent_is(AGENT, ProcessState.EXITED)


@pytest.mark.parametrize(("ago", "state"), [(1.0, ProcessState.EXITED), (60.0, ProcessState.BACKOFF)])
async def test_whoever_pressed_a_key_just_before_has_ended_it(world: World, ago: float, state: ProcessState) -> None:
    await world.start()
    await world.send(AGENT, "work")
    await world.delivered()
    world.link.submit()
    await until(lambda: world.link.records)
    world.clock.advance(100)
    world.link.person_at = world.clock.monotonic() - ago
    world.link.die(0)
    await world.agent_is(AGENT, state)


async def test_success_at_rest_is_success_unless_a_shell_says_what_ended_it(world: World) -> None:
    await world.start()
    world.link.die(0)
    await world.agent_is(AGENT, ProcessState.EXITED)
    await world.manager.restart(AGENT)
    world.link.ready()
    world.link.screen = "wrapper: line 2:  7 Killed   claude"
    world.link.die(0)
    await world.agent_is(AGENT, ProcessState.BACKOFF)
