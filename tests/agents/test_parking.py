"""Parking: what is idle, that an idle agent's program ends and comes back, and that nothing is lost over any of it."""

import asyncio
import weakref
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.agents.parking import SETTLED_S, Memory, Situation, first_to_park, occupied, threshold
from synapsed.config.config import AgentConfig, ParkPolicy, RestartPolicy
from synapsed.errors import InvalidRequest, NotReady, NotWaiting
from synapsed.model.agent import Activity, AgentView, ProcessState
from synapsed.model.events import AgentAlert, StateChanged
from synapsed.model.link import LinkObserved
from synapsed.model.records import Checkpoint
from synapsed.model.task import TaskState
from tests.fakes.clock import until
from tests.support.world import PERMISSION, World

A = "synapse-talker-8170"
IDLE_S = 30.0


def states(world: World) -> list[str]:
    return world.told(StateChanged, lambda d: d.state.value)


# --- what is idle ---

READY = LinkObserved(Activity.READY, "fake", None, can_receive=True)
IDLE = Situation(seen=READY, busy=False, attached=0, restart_pending=False, hold=None)


def test_an_agent_at_rest_is_idle() -> None:
    assert occupied(IDLE) is None


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"seen": None}, "does not run"),
        ({"busy": True}, "messages"),
        ({"attached": 1}, "attached"),
        ({"hold": "its usage limit is reached"}, "limit"),
        ({"restart_pending": True}, "restarted"),
        ({"seen": replace(READY, activity=Activity.BUSY)}, "busy"),
        ({"seen": replace(READY, activity=Activity.WAITING, held="dialog")}, "waiting"),
        ({"seen": replace(READY, activity=Activity.STARTING)}, "starting"),
        ({"seen": replace(READY, activity=Activity.UNKNOWN)}, "unknown"),
        ({"seen": replace(READY, can_receive=False, held="typing")}, "typing"),
        ({"seen": replace(READY, background=("Serve", "Look"))}, "2 background tasks would end with it"),
    ],
)
def test_not_idle(changes: dict[str, object], why: str) -> None:
    reason = occupied(replace(IDLE, **changes))  # type: ignore[arg-type]  # each is a field of its type
    assert reason is not None
    assert why in reason


@pytest.mark.parametrize(
    ("size", "expected"), [("512", 512), ("2K", 2048), ("3M", 3 << 20), ("2G", 2 << 30), ("1T", 1 << 40), ("25%", 50)]
)
def test_thresholds(size: str, expected: int) -> None:
    assert threshold(size, 200) == expected


@given(st.lists(st.tuples(st.floats(0, 1e6), st.sampled_from(["10%", None, "50%"]))), st.integers(0, 100))
def test_the_longest_idle_of_those_that_are_to_make_room(
    agents: list[tuple[float, str | None]], available: int
) -> None:
    idle = [(n, seconds, ParkPolicy(memory_below=below)) for n, (seconds, below) in enumerate(agents)]
    chosen = first_to_park(idle, Memory(total=100, available=available))
    wanted = [
        (seconds, n)
        for n, (seconds, below) in enumerate(agents)
        if below is not None and seconds >= SETTLED_S and available < int(below[:-1])
    ]
    assert (chosen is None) == (not wanted)
    if chosen is not None:
        assert agents[chosen][0] == max(wanted)[0]


# --- one agent ---


async def begin(world: World, *, park: ParkPolicy | None = None, **config: object) -> AgentView:
    """A configured agent that has a conversation, idle from now on."""
    policy = park or ParkPolicy(idle_timeout=IDLE_S)
    world.agents["talker"] = AgentConfig(autostart=True, park=policy, **config)  # type: ignore[arg-type]  # its fields
    await world.daemon()
    await talk(world)
    return world.manager.directory.view(A)


async def talk(world: World) -> None:
    world.link.ready()
    task = await world.send(A)
    await answered(world, task.id)


async def answered(world: World, task_id: str, text: str = "so") -> None:
    """The program takes the task and answers it."""
    await until(lambda: any(d.task_id == task_id for d in world.link.deliveries), "it is delivered")
    world.link.submit()
    world.link.end(text)
    await world.task_is(task_id, TaskState.COMPLETED)
    await until(lambda: world.manager.directory.view(A).activity is Activity.READY)


async def parked(world: World) -> AgentView:
    await until(lambda: world.manager.directory.view(A).activity is Activity.READY)
    world.clock.advance(2)  # the sweep sees that it is idle
    world.clock.advance(IDLE_S + 2)
    return await world.agent_is(A, ProcessState.PARKED)


async def test_an_idle_agent_is_parked_and_the_next_message_wakes_it(quiet_world: World) -> None:
    world = quiet_world
    await begin(world)
    first = world.link
    view = await parked(world)
    assert (view.pid, view.held, view.queue) == (None, None, 0)
    assert "parked: idle for" in view.evidence
    assert (first.screens_kept, first.closed) == (1, True)
    assert world.manager.directory.resolve("talker") == A
    task = await world.send(A, "wake up")
    assert task.status is TaskState.SUBMITTED
    await world.agent_is(A, ProcessState.RUNNING)
    assert world.factory.launched[-1][1].resumed
    world.link.ready()
    await answered(world, task.id)
    assert [d.task_id for d in world.link.deliveries] == [task.id]
    assert states(world) == ["starting", "running", "stopping", "parked", "starting", "running"]
    assert world.manager.directory.view(A).restarts == 0
    assert world.told(AgentAlert) == []


async def test_it_is_not_parked_unless_that_is_configured(world: World) -> None:
    await world.start("talker")
    await talk(world)
    world.clock.advance(3600)
    assert world.manager.directory.view(A).state is ProcessState.RUNNING


@pytest.mark.parametrize("what", ["attached", "typing", "dialog", "busy", "restart"])
async def test_one_that_is_not_idle_is_not_parked_and_its_time_begins_anew(quiet_world: World, what: str) -> None:
    world = quiet_world
    await begin(world)
    world.clock.advance(IDLE_S - 5)
    if what == "attached":
        world.link.attached = 1
    elif what == "typing":
        world.link.observe_as(Activity.READY, held="typing")
    elif what == "dialog":
        world.link.observe_as(Activity.WAITING, prompt=PERMISSION, held="dialog")
    elif what == "busy":
        world.link.observe_as(Activity.BUSY)
    else:
        world.link.observe_as(Activity.READY, held="typing")
        await world.manager.restart(A, when_idle=True)
    await until(
        lambda: (
            what == "attached"
            or world.manager.directory.view(A).held
            or world.manager.directory.view(A).activity == "busy"
        )
    )
    world.clock.advance(100)
    if what == "restart":
        return
    with pytest.raises(NotReady, match="not ended to save memory"):
        await world.manager.park(A)
    world.link.attached = 0
    world.link.ready()
    await until(
        lambda: (
            world.manager.directory.view(A).activity is Activity.READY and world.manager.directory.view(A).held is None
        )
    )
    world.clock.advance(IDLE_S - 5)
    assert world.manager.directory.view(A).state is ProcessState.RUNNING
    world.clock.advance(10)
    await world.agent_is(A, ProcessState.PARKED)


async def test_a_short_turn_between_two_looks_begins_the_time_anew(quiet_world: World) -> None:
    world = quiet_world
    await begin(world)
    world.clock.advance(IDLE_S - 1.5)
    await talk(world)
    world.clock.advance(3)
    assert world.manager.directory.view(A).state is ProcessState.RUNNING


async def test_a_conversation_that_cannot_be_gone_on_with_is_not_parked(quiet_world: World) -> None:
    world = quiet_world
    world.agents["fake"] = AgentConfig(autostart=True, park=ParkPolicy(idle_timeout=IDLE_S))
    await world.daemon()
    agent = world.manager.directory.resolve("fake")
    world.link.ready()
    task = await world.send(agent)
    await world.delivered()
    world.link.submit()
    world.link.end("x")
    await world.task_is(task.id, TaskState.COMPLETED)
    await until(lambda: world.manager.directory.detail(agent).conversation.said)  # type: ignore[union-attr]  # it runs: there is one
    world.clock.advance(1000)
    with pytest.raises(InvalidRequest, match="no way to resume"):
        await world.manager.park(agent)
    assert world.manager.directory.view(agent).state is ProcessState.RUNNING


async def test_a_message_that_comes_as_it_is_about_to_be_parked_goes_first(
    quiet_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = quiet_world
    await begin(world)
    monkeypatch.setattr(world.link, "deliver", _nothing)  # it has not begun to look occupied
    failed = asyncio.Event()
    actor = world.manager._agents[A]._actor
    monkeypatch.setattr(actor, "_log_failure", lambda done: done.exception() and failed.set())
    world.clock.advance(2)
    sending = asyncio.ensure_future(world.send(A))
    await asyncio.sleep(0)
    world.clock.advance(IDLE_S + 2)
    task = await sending
    await actor.call(_nothing)  # after all that was posted
    assert not failed.is_set()
    assert world.store._tasks[task.id].status is TaskState.WORKING
    assert world.manager.directory.view(A).state is ProcessState.RUNNING


async def _nothing(*_: object) -> None:
    pass


async def test_parked_by_hand(world: World) -> None:
    await world.start("talker")
    await talk(world)
    assert (await world.manager.park(A)).state is ProcessState.PARKED
    assert (await world.manager.park(A)).state is ProcessState.PARKED
    assert "as asked" in world.manager.directory.view(A).evidence


async def test_what_else_may_be_done_to_a_parked_one(quiet_world: World) -> None:
    world = quiet_world
    await begin(world)
    await parked(world)
    launches = len(world.factory.launched)
    assert not await world.manager.terminals.interrupt(A)
    with pytest.raises(NotWaiting):
        await world.manager.terminals.answer(A, "yes")
    with pytest.raises(NotReady, match="parked"):
        await world.manager.kill(A)
    await world.manager.restart(A, when_idle=True)
    assert world.manager.directory.view(A).state is ProcessState.PARKED
    assert await world.manager.terminals.context(A) == "fake screen"
    await world.store.save_checkpoint(A, Checkpoint(offset=9, cols=20, rows=3, redraw=b"\x1b[1mkept"))
    assert "kept" in str(await world.manager.terminals.screen(A, "text"))
    assert b"kept" in bytes(await world.manager.terminals.screen(A, "ansi"))  # type: ignore[arg-type]  # that is bytes
    shown = await world.manager.terminals.screen(A, "json")
    assert isinstance(shown, dict)
    assert (shown["cols"], shown["lines"][0].strip()) == (20, "kept")
    assert len(world.factory.launched) == launches, "nothing of this wakes it"
    assert (await world.manager.restart(A)).state is ProcessState.RUNNING
    assert world.factory.launched[-1][1].resumed
    world.link.ready()
    await parked(world)
    assert (await world.manager.stop(A)).state is ProcessState.STOPPED
    with pytest.raises(NotReady, match="stopped"):
        await world.send(A)
    await world.daemon()
    assert world.manager.directory.view(A).state is ProcessState.RUNNING, "it says autostart"


async def test_a_terminal_wakes_it(quiet_world: World) -> None:
    world = quiet_world
    await begin(world)
    await parked(world)
    assert await world.manager.terminals.attach(A, cols=80, rows=24, read_only=True)
    assert world.manager.directory.view(A).state is ProcessState.RUNNING


async def test_a_message_with_priority_5_wakes_it(quiet_world: World) -> None:
    world = quiet_world
    await begin(world)
    await parked(world)
    task = await world.send(A, priority=5)
    await world.agent_is(A, ProcessState.RUNNING)
    world.link.ready()
    await answered(world, task.id)
    assert world.link.interrupts == 0


# --- while it is being parked ---


async def leaving(world: World) -> asyncio.Future[None]:
    """It is being parked; done when the future is."""
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    world.link.stop_gate = gate
    world.clock.advance(2)
    world.clock.advance(IDLE_S + 2)
    await world.agent_is(A, ProcessState.STOPPING)
    return gate


async def test_a_message_meanwhile_is_delivered_afterwards(quiet_world: World) -> None:
    world = quiet_world
    await begin(world)
    gate = await leaving(world)
    first = world.link
    task = await world.send(A, "just then")
    gate.set_result(None)
    await until(lambda: world.link is not first)
    world.link.ready()
    await answered(world, task.id)
    assert [d.task_id for d in first.deliveries].count(task.id) == 0
    assert states(world)[-4:] == ["stopping", "parked", "starting", "running"]


async def test_a_terminal_meanwhile_gets_the_next_program(quiet_world: World) -> None:
    world = quiet_world
    await begin(world)
    gate = await leaving(world)
    attaching = asyncio.create_task(world.manager.terminals.attach(A, cols=80, rows=24, read_only=False))
    await asyncio.sleep(0)
    gate.set_result(None)
    assert await attaching
    assert world.manager.directory.view(A).state is ProcessState.RUNNING


async def test_a_stop_meanwhile_stops_it(quiet_world: World) -> None:
    world = quiet_world
    await begin(world)
    gate = await leaving(world)
    stopping = asyncio.create_task(world.manager.stop(A))
    await until(lambda: not world.store._agents[A].parking)
    gate.set_result(None)
    assert (await stopping).state is ProcessState.STOPPED


# --- from one daemon to the next ---


async def test_a_parked_agent_stays_parked(quiet_world: World) -> None:
    world = quiet_world
    await begin(world)
    await parked(world)
    await world.store.save_checkpoint(A, Checkpoint(offset=9, cols=20, rows=3, redraw=b"kept"))
    for keep in (True, False):
        launches = len(world.factory.launched)
        await world.manager.close(keep_agents=keep)
        world.factory.programs.clear()
        await world.daemon()
        world.clock.advance(100)
        assert world.manager.directory.view(A).state is ProcessState.PARKED
        assert len(world.factory.launched) == launches
    assert "kept" in await world.manager.terminals.context(A)
    task = await world.send(A)
    await world.agent_is(A, ProcessState.RUNNING)
    assert world.factory.launched[-1][1].resumed
    world.link.ready()
    await answered(world, task.id)


async def test_a_message_that_was_taken_just_before_the_daemon_died_wakes_it(quiet_world: World) -> None:
    world = quiet_world
    await begin(world)
    await parked(world)
    world.factory.gate = asyncio.get_running_loop().create_future()  # the launch never comes to pass
    task = await world.send(A)
    record = world.store._agents[A].model_copy(deep=True)
    await world.agent_is(A, ProcessState.STARTING)
    world.factory.gate = None
    world.store._agents[A] = record.model_copy(update={"state": "parked", "parking": True})
    world.factory.programs.clear()
    await world.daemon()
    await world.agent_is(A, ProcessState.RUNNING)
    world.link.ready()
    await answered(world, task.id)


async def test_a_parked_agent_is_not_woken_before_it_is_taken_up(quiet_world: World) -> None:
    """Else its launch would be taken for one of the last daemon's, and ended as such."""
    world = quiet_world
    await begin(world)
    await parked(world)
    await world.manager.close(keep_agents=True)
    launches = len(world.factory.launched)
    await world.daemon(adopt=False)
    first = await world.send(A)
    world.clock.advance(10)  # mailboxes are swept
    second = await world.send(A)  # which comes after all that was posted to the actor
    assert world.manager.directory.view(A).state is ProcessState.PARKED
    await world.manager.adopt()
    await world.agent_is(A, ProcessState.RUNNING)
    assert len(world.factory.launched) == launches + 1
    world.link.ready()
    for task in (first, second):
        await answered(world, task.id)


async def test_a_daemon_that_died_while_it_parked_goes_on_with_that(quiet_world: World) -> None:
    world = quiet_world
    await begin(world)
    gate = await leaving(world)
    await world.daemon()
    await world.agent_is(A, ProcessState.PARKED)
    gate.set_result(None)
    assert world.link.exit is not None, "the program that was found alive was ended"


async def test_a_program_that_died_with_the_daemon_while_it_was_parked_is_parked(quiet_world: World) -> None:
    world = quiet_world
    await begin(world)
    gate = await leaving(world)
    world.factory.programs.clear()
    await world.daemon()
    await world.agent_is(A, ProcessState.PARKED)
    gate.set_result(None)


@pytest.mark.parametrize("policy", ["never", "on-failure"])
async def test_a_daemon_that_died_while_it_woke_it_wakes_it_again(quiet_world: World, policy: str) -> None:
    world = quiet_world
    await begin(world, restart=RestartPolicy(policy=policy))  # type: ignore[arg-type]  # both are
    await parked(world)
    world.factory.gate = asyncio.get_running_loop().create_future()
    task = await world.send(A)
    await world.agent_is(A, ProcessState.STARTING)
    world.factory.gate = None
    world.factory.programs.clear()
    await world.daemon()
    world.clock.advance(0.001)
    await world.agent_is(A, ProcessState.RUNNING)
    world.link.ready()
    await answered(world, task.id)
    assert [d.task_id for d in world.link.deliveries] == [task.id]


async def test_a_message_at_the_daemon_s_end_waits_for_the_next_one(quiet_world: World) -> None:
    world = quiet_world
    await begin(world)
    gate = await leaving(world)
    task = await world.send(A)
    closing = asyncio.create_task(world.manager.close(keep_agents=False))
    await asyncio.sleep(0)
    gate.set_result(None)
    await closing
    launches = len(world.factory.launched)
    assert world.store._agents[A].state == "parked"
    world.factory.programs.clear()
    await world.daemon()
    await world.agent_is(A, ProcessState.RUNNING)
    assert len(world.factory.launched) == launches + 1
    world.link.ready()
    await answered(world, task.id)


async def test_one_that_is_not_configured_any_more_is_stopped(quiet_world: World) -> None:
    world = quiet_world
    world.paths.config.mkdir(parents=True, exist_ok=True)
    world.paths.config_file.write_text("[agents.talker]\nautostart = true\npark = { idle_timeout = 30 }\n")
    await begin(world)
    await parked(world)
    text = '[agents.talker]\nautostart = true\nargs = ["--x"]\npark = { idle_timeout = 30 }\n'
    world.paths.config_file.write_text(text)
    await world.manager.reload()
    assert world.manager.directory.view(A).state is ProcessState.PARKED, "its next program has the new arguments"
    world.paths.config_file.write_text("")
    await world.manager.reload()
    assert world.manager.directory.view(A).state is ProcessState.STOPPED


# --- memory ---


async def test_the_one_that_is_idle_longest_makes_room(quiet_world: World) -> None:
    world = quiet_world
    for name in ("one", "two", "three"):
        policy = ParkPolicy() if name == "three" else ParkPolicy(memory_below="10%")
        world.agents[name] = AgentConfig(profile="talker", autostart=True, park=policy)
    await world.daemon()
    for link in world.factory.links:
        link.ready()
    await until(lambda: all(view.activity is Activity.READY for view in world.manager.directory.agents()))
    world.clock.advance(2)
    second = world.manager.directory.resolve("two")
    task = await world.send(world.manager.directory.resolve("one"))
    link = next(link for link in world.factory.links if any(d.task_id == task.id for d in link.deliveries))
    link.submit()
    link.end("x")
    await world.task_is(task.id, TaskState.COMPLETED)
    world.clock.advance(1000)
    assert {view.state for view in world.manager.directory.agents()} == {ProcessState.RUNNING}
    world.memory = Memory(total=100, available=9)
    world.clock.advance(6)
    view = await world.agent_is(second, ProcessState.PARKED)
    assert "memory" in view.evidence
    world.memory = Memory(total=100, available=11)
    world.clock.advance(20)
    assert [view.state for view in world.manager.directory.agents()].count(ProcessState.RUNNING) == 2, "that was enough"


async def test_what_a_parked_agent_held_is_freed(quiet_world: World) -> None:
    world = quiet_world
    await begin(world)
    link = weakref.ref(world.link)
    world.link.itself = world.link  # type: ignore[attr-defined]  # only the collector finds it
    await world.manager.park(A)
    await until(lambda: not world.manager._agents[A]._actor._operations)
    world.factory.links.clear()
    world.clock.advance(2)
    assert link() is None
