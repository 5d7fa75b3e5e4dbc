"""Tasks that are interrupted or canceled: urgent messages, cancellation, a person at the terminal."""

import asyncio
import threading
from typing import Any

import pytest

from synapsed.agents import message_files
from synapsed.errors import NotReady, ProgramEnded, StoreError, TaskNotCancelable
from synapsed.interfaces import SendRequest
from synapsed.model.agent import Activity
from synapsed.model.events import StateChanged
from synapsed.model.link import LinkTurnInterrupted, LinkTurnRecord
from synapsed.model.task import FileContent, FilePart, Message, Prompt, TaskState
from tests.fakes.clock import until
from tests.support.world import PERMISSION, World

AGENT = "synapse-fake-8190"


async def test_priority_5_interrupts_then_goes_first(world: World) -> None:
    await world.start()
    old = await world.send(AGENT, "old")
    await world.delivered()
    world.link.submit()
    waiting = await world.send(AGENT, "waiting", priority=4)
    urgent = await world.send(AGENT, "urgent", priority=5)
    canceled = await world.task_is(old.id, TaskState.CANCELED)
    assert canceled.metadata["reason"] == "interrupted"
    world.link.ready()
    await world.delivered(2)
    assert world.link.deliveries[1].task_id == urgent.id
    world.link.end("done")
    await world.delivered(3)
    assert world.link.deliveries[2].task_id == waiting.id
    assert world.link.interrupts == 1


async def test_priority_5_interrupts_although_the_daemon_dies(world: World) -> None:
    await world.start()
    old = await world.send(AGENT, "old")
    await world.delivered()
    world.link.submit()
    await until(lambda: world.link.records)
    unconfirmed = world.link.confirms_interrupt = asyncio.get_running_loop().create_future()
    urgent = await world.send(AGENT, "urgent", priority=5)
    await world.daemon()
    await world.delivered()
    assert world.link.deliveries[0].task_id == old.id
    await world.task_is(old.id, TaskState.CANCELED)
    world.link.ready()
    await world.delivered(2)
    assert world.link.deliveries[1].task_id == urgent.id
    unconfirmed.set_result(False)


async def test_a_cancellation_under_which_the_daemon_dies_is_done_by_the_next(world: World) -> None:
    await world.start()
    task = await world.send(AGENT)
    await world.delivered()
    record = world.link.deliveries[0].record.model_copy(update={"link": {"submitted": True, "interrupting": True}})
    world.link.emit(LinkTurnRecord(record))
    await until(lambda: world.link.records)
    await world.daemon()
    canceled = await world.task_is(task.id, TaskState.CANCELED)
    assert (canceled.metadata["reason"], world.link.interrupts) == ("canceled", 1)


async def taken_up(world: World, opened: "asyncio.Future[None]") -> "asyncio.Task[None]":
    """The next daemon is about to take up the program, whose link opens with `opened`."""
    world.factory.slow_to_open[AGENT] = opened
    manager = await world.daemon(adopt=False)
    adopting = asyncio.ensure_future(manager.adopt())
    await until(lambda: world.told(StateChanged, lambda d: d.reason)[-1] == "adopted")
    return adopting


async def test_who_cancels_as_the_daemon_comes_up_waits_for_the_program(world: World) -> None:
    await world.start()
    task = await world.send(AGENT)
    await world.delivered()
    opened = asyncio.get_running_loop().create_future()
    adopting = await taken_up(world, opened)
    canceling = asyncio.ensure_future(world.manager.tasks.cancel(task.id))
    assert (await asyncio.wait([canceling], timeout=0.05))[1], "it is neither done nor refused"
    opened.set_result(None)
    await until(lambda: world.link.interrupts == 1, "it is interrupted")
    world.link.emit(LinkTurnInterrupted(task.id, "interrupted", "fake"))
    assert (await canceling).status is TaskState.CANCELED
    await adopting


async def test_who_asks_for_the_screen_of_a_program_that_is_taken_up_is_to_try_again(world: World) -> None:
    await world.start()
    opened = asyncio.get_running_loop().create_future()
    adopting = await taken_up(world, opened)
    with pytest.raises(NotReady) as refused:
        await world.manager.terminals.screen(AGENT, "text")
    opened.set_result(None)
    await adopting
    assert refused.value.message == f"{world.manager.directory.view(AGENT).name} cannot be reached just now; try again"


async def test_who_cancels_at_a_keeper_that_stands_still_hears_of_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synapsed.agents.stop_requests.CANCEL_ADOPTION_S", 0.01)
    await world.start()
    task = await world.send(AGENT)
    await world.delivered()
    opened = asyncio.get_running_loop().create_future()
    adopting = await taken_up(world, opened)
    with pytest.raises(TaskNotCancelable, match="cannot be reached just now; try again"):
        await world.manager.tasks.cancel(task.id)
    opened.set_result(None)
    await adopting


async def test_priority_5_interrupts_a_person_s_own_turn(world: World) -> None:
    await world.start()
    world.link.observe_as(Activity.BUSY)
    await until(lambda: world.manager.directory.view(AGENT).activity is Activity.BUSY)
    await world.send(AGENT, "urgent", priority=5)
    await until(lambda: world.link.interrupts == 1)
    world.link.ready()
    await world.delivered()


@pytest.mark.parametrize("prompt", [PERMISSION.model_copy(update={"type": "trust"}), None], ids=["trust", "unknown"])
async def test_priority_5_leaves_a_dialog_of_no_turn_alone(world: World, prompt: Prompt | None) -> None:
    await world.start()
    world.link.observe_as(Activity.WAITING, prompt=prompt, held="dialog")
    task = await world.send(AGENT, priority=5)
    assert not await world.manager.terminals.interrupt(AGENT)
    assert (task.status, world.link.interrupts) == (TaskState.SUBMITTED, 0)


async def test_priority_5_on_a_ready_agent_interrupts_nothing(world: World) -> None:
    await world.start()
    await world.send(AGENT, "urgent", priority=5)
    await world.delivered()
    assert world.link.interrupts == 0


async def test_no_task_is_taken_while_an_interruption_is_under_way(world: World) -> None:
    await world.start()
    world.link.confirms_interrupt = asyncio.get_running_loop().create_future()
    old = await world.send(AGENT, "old")
    await world.delivered()
    await world.send(AGENT, "urgent", priority=5)
    world.link.emit(LinkTurnInterrupted(old.id, "interrupted", "fake"))
    world.link.ready()
    await world.task_is(old.id, TaskState.CANCELED)
    world.clock.advance(1.0)
    assert len(world.link.deliveries) == 1
    world.link.confirms_interrupt.set_result(True)
    await world.delivered(2)


async def test_a_turn_that_ended_by_itself_while_it_was_interrupted_is_completed(world: World) -> None:
    await world.start()
    world.link.confirms_interrupt = asyncio.get_running_loop().create_future()
    old = await world.send(AGENT, "old")
    await world.delivered()
    world.link.submit()
    canceling = asyncio.ensure_future(world.manager.tasks.cancel(old.id))
    await until(lambda: world.link.interrupts)
    world.link.confirms_interrupt.set_result(True)
    world.link.end("finished")
    with pytest.raises(TaskNotCancelable):
        await canceling
    assert (await world.task_is(old.id, TaskState.COMPLETED)).answer == "finished"


async def test_a_confirmed_interruption_of_which_the_link_says_no_more_cancels_in_the_end(world: World) -> None:
    await world.start()
    world.link.confirms_interrupt = asyncio.get_running_loop().create_future()
    task = await world.send(AGENT)
    await world.delivered()
    canceling = asyncio.ensure_future(world.manager.tasks.cancel(task.id))
    await until(lambda: world.link.interrupts)
    world.link.confirms_interrupt.set_result(True)
    await until(lambda: any(2.9 < wait <= 3.0 for wait in world.clock.pending()))
    world.clock.advance(3.0)
    assert (await canceling).status is TaskState.CANCELED


async def test_an_interruption_of_which_the_link_told_late_does_not_end_the_next_task(world: World) -> None:
    await world.start()
    world.link.confirms_interrupt = asyncio.get_running_loop().create_future()
    old = await world.send(AGENT, "old")
    await world.delivered()
    following = await world.send(AGENT, "next")
    canceling = asyncio.ensure_future(world.manager.tasks.cancel(old.id))
    await until(lambda: world.link.interrupts)
    world.link.confirms_interrupt.set_result(True)
    await until(lambda: any(2.9 < wait <= 3.0 for wait in world.clock.pending()))
    unconfirmed = world.link.confirms_interrupt = asyncio.get_running_loop().create_future()
    agent = world.manager._agents[AGENT]

    async def interrupt_next() -> None:
        assert agent.turns.current is not None
        assert agent.turns.current.id == following.id
        agent.turns.interruption.begin("interrupted")

    world.link.end("finished")  # all three wait for the actor at once, in this order
    agent._actor.post(interrupt_next)
    world.clock.advance(3.0)
    with pytest.raises(TaskNotCancelable):
        await canceling
    await until(lambda: world.link.interrupts == 2)
    unconfirmed.set_result(False)
    await until(lambda: agent.turns.interruption.pending is None)
    assert (await world.manager.tasks.find(following.id)).status is TaskState.WORKING


async def test_cancel_of_a_running_task(world: World) -> None:
    await world.start()
    task = await world.send(AGENT)
    await world.delivered()
    world.link.submit()
    canceled = await world.manager.tasks.cancel(task.id)
    assert (canceled.status, canceled.metadata["reason"]) == (TaskState.CANCELED, "canceled")
    assert world.link.interrupts == 1
    with pytest.raises(TaskNotCancelable):
        await world.manager.tasks.cancel(task.id)


async def test_who_cancels_hears_of_it_before_the_composer_is_cleared_and_the_next_task_begins(world: World) -> None:
    await world.start()
    clearing = world.link.confirms_interrupt = asyncio.get_running_loop().create_future()
    task = await world.send(AGENT)
    await world.delivered()
    world.link.submit()
    canceling = asyncio.ensure_future(world.manager.tasks.cancel(task.id))
    await until(lambda: world.link.interrupts)
    world.link.emit(LinkTurnInterrupted(task.id, "interrupted", "fake"))
    assert (await canceling).status is TaskState.CANCELED
    await world.send(AGENT, "next")
    world.link.ready()
    await until(lambda: world.manager.directory.view(AGENT).activity is Activity.READY)
    assert len(world.link.deliveries) == 1
    clearing.set_result(True)
    await world.delivered(2)


async def test_cancel_while_the_message_s_files_are_being_written(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link has not got it yet: it would say that there is nothing to stop."""
    await world.start()
    written = threading.Event()
    put = message_files.put

    def slow(*arguments: Any) -> None:
        assert written.wait(60)
        put(*arguments)

    monkeypatch.setattr("synapsed.agents.turns.message_files.put", slow)
    parts = [FilePart(file=FileContent(name="a.txt", bytes="aGVsbG8="))]
    task = await world.manager.tasks.send(AGENT, SendRequest(message=Message(parts=parts)))
    canceling = asyncio.ensure_future(world.manager.tasks.cancel(task.id))
    await until(lambda: world.manager._agents[AGENT].turns.interruption.pending)
    written.set()
    assert (await canceling).status is TaskState.CANCELED
    assert (len(world.link.deliveries), world.link.interrupts) == (1, 1)


async def test_cancel_of_a_task_that_ends_at_the_same_moment(world: World) -> None:
    await world.start()
    task = await world.send(AGENT)
    await world.delivered()
    world.link.submit()
    world.link.end("done")
    with pytest.raises(TaskNotCancelable):
        await world.manager.tasks.cancel(task.id)
    assert (await world.store.task(task.id)).status is TaskState.COMPLETED


async def test_a_cancellation_that_the_database_refuses_leaves_the_task_in_its_place(world: World) -> None:
    await world.start(ready=False)
    first = await world.send(AGENT, "first", priority=4)
    second = await world.send(AGENT, "second")
    world.store.refuse = StoreError("disk full")
    with pytest.raises(StoreError):
        await world.manager.tasks.cancel(second.id)
    world.store.refuse = None
    world.link.ready()
    await world.delivered()
    assert world.link.deliveries[0].task_id == first.id


async def test_cancel_of_a_waiting_task_types_nothing(world: World) -> None:
    await world.start(ready=False)
    task = await world.send(AGENT)
    assert (await world.manager.tasks.cancel(task.id[:8])).status is TaskState.CANCELED
    assert world.link.interrupts == 0
    assert world.manager.directory.view(AGENT).queue == 0


async def test_a_program_that_goes_on_is_not_called_canceled(world: World) -> None:
    await world.start()
    world.link.confirms_interrupt = False
    task = await world.send(AGENT)
    await world.delivered()
    world.link.submit()
    with pytest.raises(TaskNotCancelable):
        await world.manager.tasks.cancel(task.id)
    world.link.end("still here")
    assert (await world.task_is(task.id, TaskState.COMPLETED)).answer == "still here"


async def test_interrupt(world: World) -> None:
    await world.start()
    assert await world.manager.terminals.interrupt(AGENT) is False
    task = await world.send(AGENT)
    await world.delivered()
    assert await world.manager.terminals.interrupt(AGENT) is True
    assert (await world.task_is(task.id, TaskState.CANCELED)).metadata["reason"] == "interrupted"


@pytest.mark.parametrize("by", ["task", "agent", "agent without a task"])
async def test_an_interrupt_that_ends_the_program_says_so(by: str, world: World) -> None:
    await world.start()
    task = None if by == "agent without a task" else await world.send(AGENT)
    if task is not None:
        await world.delivered()
        world.link.submit()
    world.link.observe_as(Activity.BUSY)
    await until(lambda: world.manager.directory.view(AGENT).activity is Activity.BUSY)
    unconfirmed = world.link.confirms_interrupt = asyncio.get_running_loop().create_future()
    asked = (
        world.manager.terminals.interrupt(AGENT)
        if task is None or by == "agent"
        else world.manager.tasks.cancel(task.id)
    )
    asking = asyncio.ensure_future(asked)
    await until(lambda: world.link.interrupts)
    world.link.die(130)
    unconfirmed.set_result(False)
    expected = TaskNotCancelable if by == "task" else ProgramEnded
    with pytest.raises(expected, match=r"program ended .*exit code 130"):
        await asking


async def test_a_person_stops_the_turn_in_the_terminal(world: World) -> None:
    await world.start()
    task = await world.send(AGENT)
    await world.delivered()
    world.link.emit(LinkTurnInterrupted(task.id, "person", "fake"))
    assert (await world.task_is(task.id, TaskState.CANCELED)).metadata["reason"] == "person"
