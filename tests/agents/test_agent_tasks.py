"""Tasks of one agent: order, durability before acts, ends."""

import asyncio
import os
from pathlib import Path

import pytest

from synapsed.agents import message_files
from synapsed.errors import (
    InvalidRequest,
    NotReady,
    QueueFull,
    StoreError,
    TooLarge,
)
from synapsed.interfaces import SendRequest, TaskFilter
from synapsed.model.agent import Activity, ProcessState
from synapsed.model.events import TaskArtifactAdded, TaskDelivered, TaskStatusChanged
from synapsed.model.link import (
    LinkTurnAccepted,
    LinkTurnFailed,
    LinkTurnProgress,
    LinkTurnRecord,
    LinkTurnSaid,
    LinkUndelivered,
)
from synapsed.model.records import TurnRecord
from synapsed.model.task import (
    FileContent,
    FilePart,
    Message,
    Task,
    TaskState,
    TextPart,
)
from synapsed.profiles.screen_spec import DeliverySpec
from synapsed.tasks import prompt_text
from synapsed.tasks.prompt_text import Letter
from tests.fakes.clock import until
from tests.support.world import World

AGENT = "synapse-fake-8190"


async def test_a_message_whose_turn_is_over_at_once_is_told_as_delivered(world: World) -> None:
    """Its record is not made durable any more."""
    await world.start()
    task = await world.send(AGENT, "what?")
    await world.delivered()
    world.link.emit(LinkTurnAccepted(task.id, "fake"))
    world.link.end("x")
    await until(lambda: world.statuses(task.id)[-1:] == ["completed"])
    assert len(world.told(TaskDelivered)) == 1


async def test_a_message_becomes_a_turn_and_its_answer_the_task_s(world: World) -> None:
    await world.start()
    task = await world.send(AGENT, "what?")
    await world.delivered()
    delivery = world.link.deliveries[0]
    assert (delivery.task_id, delivery.text, delivery.command, delivery.record.attempt) == (task.id, "what?", False, 1)
    world.link.submit()
    world.link.end("```py\nx\n```\n")
    done = await world.task_is(task.id, TaskState.COMPLETED)
    assert (done.answer, done.exact) == ("```py\nx\n```\n", True)
    assert world.statuses(task.id) == ["submitted", "working", "completed"]
    assert await world.store.turns() == []
    assert world.manager.directory.view(AGENT).task is None


async def test_what_is_typed_is_composed_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given to the link as it was when it was accepted."""
    composed: list[str] = []
    compose = prompt_text.compose

    def counted(task: Task, spec: DeliverySpec, inbox: Path) -> Letter:
        composed.append(task.id)
        return compose(task, spec, inbox)

    monkeypatch.setattr(prompt_text, "compose", counted)
    await world.start()
    task = await world.send(AGENT, "what?")
    await world.delivered()
    assert (composed, world.link.deliveries[0].text) == ([task.id], "what?")


async def test_working_and_its_turn_are_durable_before_anything_is_delivered(world: World) -> None:
    await world.start()
    states: list[tuple[str, int]] = []
    deliver = world.link.deliver

    async def looking(delivery):
        stored = await world.store.task(delivery.task_id)
        assert stored is not None
        states.append((stored.status.value, len(await world.store.turns())))
        await deliver(delivery)

    world.link.deliver = looking
    await world.send(AGENT)
    await world.delivered()
    assert states == [("working", 1)]


async def test_what_the_link_writes_ahead_is_durable_with_a_turn_that_begins(world: World) -> None:
    await world.start()
    world.link.prepare = lambda record, *, command: record.model_copy(update={"link": {"phase": "pasting"}})
    await world.send(AGENT)
    await world.delivered()
    delivery = world.link.deliveries[0]
    assert delivery.fresh
    assert await world.store.turns() == [delivery.record]
    assert delivery.record.link == {"phase": "pasting"}


async def test_the_link_s_record_is_durable_before_it_goes_on(world: World) -> None:
    await world.start()
    await world.send(AGENT)
    await world.delivered()
    record = world.link.deliveries[0].record.model_copy(update={"link": {"phase": "pasting"}})
    world.link.emit(LinkTurnRecord(record))
    await until(lambda: world.link.records)
    assert await world.store.turns() == [record]
    world.link.emit(LinkTurnRecord(TurnRecord(task_id="another", launch_id="x")))
    world.link.end("x")
    await until(lambda: world.manager.directory.view(AGENT).task is None)
    assert world.link.records == [record]


async def test_one_turn_at_a_time_by_priority_then_arrival(world: World) -> None:
    await world.start()
    names = {}
    for text, priority in [("a", 1), ("b", 1), ("c", 4), ("d", 2)]:
        names[(await world.send(AGENT, text, priority=priority)).id] = text
    for number in range(4):
        await world.delivered(number + 1)
        assert world.manager.directory.view(AGENT).queue == 3 - number
        world.link.end("done")
    await until(lambda: world.manager.directory.view(AGENT).task is None)
    assert [names[d.task_id] for d in world.link.deliveries] == ["a", "c", "d", "b"]


async def test_nothing_is_delivered_while_the_agent_cannot_receive(world: World) -> None:
    await world.start(ready=False)
    task = await world.send(AGENT)
    for activity in (Activity.BUSY, Activity.UNKNOWN, Activity.STARTING):
        world.link.observe_as(activity)
        await until(lambda: world.manager.directory.view(AGENT).activity is activity)  # noqa: B023
    world.link.observe_as(Activity.READY, held="typing")
    await until(lambda: world.manager.directory.view(AGENT).held == "typing")
    assert world.link.deliveries == []
    assert task.status is TaskState.SUBMITTED
    world.link.ready()
    await world.delivered()


async def test_the_sweep_delivers_what_an_event_missed(world: World) -> None:
    await world.start(ready=False)
    await world.send(AGENT)
    world.link.seen = type(world.link.seen)(Activity.READY, "fake", None, can_receive=True)
    world.clock.advance(1.0)
    await world.delivered()


async def test_a_sweep_that_fails_is_not_the_last(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.start(ready=False)
    await world.send(AGENT)

    failed = list[str]()

    def fail() -> None:
        failed.append("too many open files")
        raise OSError(failed[-1])

    monkeypatch.setattr(world.manager._memory, "look", fail)
    world.clock.advance(1.0)
    assert failed
    monkeypatch.undo()
    assert not await world.manager.terminals.interrupt(AGENT)  # what that one has begun is done
    world.link.seen = type(world.link.seen)(Activity.READY, "fake", None, can_receive=True)
    world.clock.advance(1.0)
    await world.delivered()


async def test_the_sender_is_named(world: World) -> None:
    await world.start()
    task = await world.send(AGENT, "hi", metadata={"sender": {"sender_id": "synapse-codex-8120"}})
    await world.delivered()
    assert world.link.deliveries[0].text == f"[A2A:{task.id[:8]}:synapse-codex-8120] hi"


async def test_a_command_is_marked(world: World) -> None:
    await world.start()
    await world.send(AGENT, "/compact", command=True)
    await world.delivered()
    assert world.link.deliveries[0].command


async def test_what_cannot_be_typed_is_in_the_inbox_before_the_message_is_delivered(world: World) -> None:
    await world.start()
    inbox = world.paths.inbox(AGENT)
    parts = [TextPart(text="look"), FilePart(file=FileContent(name="../a b.txt", bytes="aGVsbG8="))]
    deliver, found = world.link.deliver, []

    async def looking(delivery):
        found.extend((path.name, path.read_bytes(), path.stat().st_mode & 0o777) for path in inbox.iterdir())
        await deliver(delivery)

    world.link.deliver = looking
    task = await world.manager.tasks.send(AGENT, SendRequest(message=Message(parts=parts)))
    await world.delivered()
    name = f"{task.id[:8]}-a_b.txt"
    assert found == [(name, b"hello", 0o600)]
    assert world.link.deliveries[0].text == f"look\nAttached file: {inbox / name}"


async def test_a_delivery_taken_up_again_has_the_same_words_and_files(world: World) -> None:
    await world.start()
    task = await world.send(AGENT, "long " * 20_000)
    await world.delivered()
    (path,) = world.paths.inbox(AGENT).iterdir()
    path.unlink()
    before = world.link.deliveries[0].text
    assert str(path) in before
    await world.daemon()
    await world.delivered()
    assert world.link.deliveries[0].text == before
    assert path.read_text() == "long " * 20_000
    world.link.submit()
    await until(lambda: world.manager.directory.view(AGENT).activity is Activity.BUSY)
    path.write_text("the agent's own")
    await world.daemon()
    await world.delivered()
    assert path.read_text() == "the agent's own", "what was submitted is not written again"
    assert world.manager.directory.view(AGENT).task == task.id


async def test_files_that_cannot_be_written_are_told(world: World) -> None:
    await world.start()
    world.paths.inbox(AGENT).write_text("in the way")
    task = await world.send(AGENT, "x" * 60_000)
    failed = await world.task_is(task.id, TaskState.FAILED)
    assert failed.error is not None
    assert failed.error.code == "UNDELIVERED"
    assert "files cannot be written" in failed.error.message
    assert world.link.deliveries == []


@pytest.mark.night
@pytest.mark.slow
async def test_old_files_go_at_the_start_and_daily(world: World) -> None:
    inbox = world.paths.inbox(AGENT)
    await world.start()
    for name in ("00000000-old", "11111111-new"):
        message_files.put(inbox, [prompt_text.Enclosure(name, b"x")], world.paths.kept_files)
    os.utime(inbox / "00000000-old", (0, world.clock.wall() - message_files.FINISHED_KEPT_S - 1))
    os.utime(inbox / "11111111-new", (0, world.clock.wall()))
    await world.daemon()
    await until(lambda: [path.name for path in inbox.iterdir()] == ["11111111-new"])
    os.utime(inbox / "11111111-new", (0, 1))
    world.clock.advance(message_files.TIDY_EVERY_S)
    await until(lambda: not list(inbox.iterdir()))


async def test_bad_messages_are_refused(world: World) -> None:
    await world.start()
    for bad in ({"text": "  \n"}, {"priority": 0}, {"priority": 6}):
        with pytest.raises(InvalidRequest):
            await world.send(AGENT, **bad)
    with pytest.raises(TooLarge):
        await world.send(AGENT, "x" * (1 << 20) + "x")
    with pytest.raises(TooLarge):
        await world.send(AGENT, "/x" * 60_000, command=True)
    for content in (FileContent(bytes="no base64!"), FileContent(name="nothing")):
        with pytest.raises(InvalidRequest):
            await world.manager.tasks.send(AGENT, SendRequest(message=Message(parts=[FilePart(file=content)])))
    assert await world.store.open_tasks() == []


async def test_full(world: World) -> None:
    await world.start(ready=False)
    for _ in range(100):
        await world.send(AGENT)
    with pytest.raises(QueueFull):
        await world.send(AGENT)
    assert world.manager.directory.view(AGENT).queue == 100
    assert len(await world.store.open_tasks()) == 100


async def test_progress_is_kept_apart_from_the_answer(world: World) -> None:
    await world.start()
    task = await world.send(AGENT)
    await world.delivered()
    for text in ("fir", "first"):
        world.link.emit(LinkTurnProgress(task.id, "m1", text))
    world.link.emit(LinkTurnProgress(task.id, "m2", "second"))
    world.link.end("last", exact=False)
    done = await world.task_is(task.id, TaskState.COMPLETED)
    assert [(a.name, a.text) for a in done.artifacts] == [
        ("progress", "first"),
        ("progress", "second"),
        ("output", "last"),
    ]
    assert done.exact is False


async def test_pieces_of_text_are_told_and_not_kept(world: World) -> None:
    await world.start()
    task = await world.send(AGENT, "what?")
    await world.delivered()
    world.link.submit()
    for text, append in (("Hel", True), ("lo", True), ("Hello you", False)):
        world.link.emit(LinkTurnSaid(task.id, text, append))
    world.link.emit(LinkTurnSaid("another", "no", append=True))
    await until(lambda: len(world.told(TaskArtifactAdded)) == 3)
    assert (await world.task_is(task.id, TaskState.WORKING)).artifacts == []
    world.link.end("Hello you.")
    done = await world.task_is(task.id, TaskState.COMPLETED)
    assert [a.text for a in done.artifacts] == ["Hello you."]
    told = world.told(TaskArtifactAdded, lambda data: (data.artifact.text, data.append, data.last_chunk))
    assert told == [("Hel", True, False), ("lo", True, False), (" you", True, False), (".", True, True)]
    assert {data.artifact.artifact_id for data in world.told(TaskArtifactAdded)} == {"answer"}


async def test_a_piece_that_the_database_refuses_is_dropped(world: World) -> None:
    await world.start()
    task = await world.send(AGENT, "what?")
    await world.delivered()
    world.link.submit()
    await until(lambda: world.manager.directory.view(AGENT).activity == "busy")
    world.store.refuse = StoreError("disk full")
    world.link.emit(LinkTurnSaid(task.id, "Hel", append=True))
    with pytest.raises(StoreError):
        await world.send(AGENT, "refused too: the piece was before it")
    world.store.refuse = None
    world.link.end("Hello.")
    assert (await world.task_is(task.id, TaskState.COMPLETED)).answer == "Hello."
    assert world.told(TaskArtifactAdded, lambda data: data.artifact.text) == ["Hello."]


async def test_failure(world: World) -> None:
    await world.start()
    task = await world.send(AGENT)
    await world.delivered()
    world.link.emit(LinkTurnFailed(task.id, "RATE_LIMITED", "slow down", "fake"))
    failed = await world.task_is(task.id, TaskState.FAILED)
    assert failed.error is not None
    assert (failed.error.code, failed.error.message) == ("RATE_LIMITED", "slow down")


async def test_undelivered_shows_the_screen(world: World) -> None:
    await world.start()
    task = await world.send(AGENT)
    await world.delivered()
    world.link.emit(LinkUndelivered(task.id, "the composer is gone", "Update now?"))
    failed = await world.task_is(task.id, TaskState.FAILED)
    assert failed.error is not None
    assert (failed.error.code, failed.error.details["screen"]) == ("UNDELIVERED", "Update now?")


async def test_a_link_that_cannot_deliver_fails_the_task(world: World) -> None:
    await world.start()

    async def refuse(delivery):
        raise NotReady("a turn runs already")

    world.link.deliver = refuse
    task = await world.send(AGENT)
    failed = await world.task_is(task.id, TaskState.FAILED)
    assert failed.error is not None
    assert failed.error.code == "UNDELIVERED"


async def test_a_delivery_that_fails_late_fails_no_later_attempt(world: World) -> None:
    await world.start()
    late: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def hang(delivery):
        await late

    first = world.link
    first.deliver = hang
    task = await world.send(AGENT)
    first.die(1)
    await world.agent_is(AGENT, ProcessState.BACKOFF)
    world.clock.advance(60)
    await until(lambda: world.link is not first, "it is started again")
    world.link.ready()
    await world.delivered()
    late.set_exception(NotReady("the connection is closed"))
    await world.manager._agents[AGENT].believed()
    world.link.submit()
    world.link.end("done")
    await world.task_is(task.id, TaskState.COMPLETED)


async def test_facts_of_another_turn_change_nothing(world: World) -> None:
    await world.start()
    task = await world.send(AGENT)
    await world.delivered()
    world.link.emit(LinkTurnFailed("another", "MODEL_ERROR", "x", "fake"))
    world.link.end("right")
    assert (await world.task_is(task.id, TaskState.COMPLETED)).answer == "right"


# --- the database refuses ---


async def test_a_send_that_cannot_be_stored_is_refused(world: World) -> None:
    await world.start()
    world.store.refuse = StoreError("disk full")
    with pytest.raises(StoreError):
        await world.send(AGENT)
    world.store.refuse = None
    assert world.manager.directory.view(AGENT).queue == 0
    await world.send(AGENT)
    await world.delivered()


async def test_an_answer_waits_for_the_database(world: World) -> None:
    await world.start()
    task = await world.send(AGENT)
    await world.delivered()
    world.store.refuse = StoreError("disk full")
    world.link.end("precious")
    await until(lambda: 1.0 in world.clock.pending())
    world.store.refuse = None
    world.clock.advance(1.0)
    assert (await world.task_is(task.id, TaskState.COMPLETED)).answer == "precious"
    assert world.told(TaskStatusChanged, lambda d: d.state).count(TaskState.COMPLETED) == 1


async def test_a_send_is_answered_while_a_fact_waits_for_the_database(world: World) -> None:
    """At once, and what was refused is not done later; also what had come before the fact was refused."""
    await world.start()
    task = await world.send(AGENT)
    await world.delivered()
    world.store.refuse = StoreError("disk full", reason="full")
    world.link.end("precious")
    behind = [asyncio.create_task(world.send(AGENT, f"behind it {number}")) for number in range(20)]
    await until(lambda: 1.0 in world.clock.pending())
    refused = await asyncio.gather(*behind, return_exceptions=True)
    assert [str(one) for one in refused] == ["disk full"] * 20
    with pytest.raises(StoreError) as told:
        await world.send(AGENT, "later")
    assert told.value.details == {"reason": "full"}
    world.store.refuse = None
    world.clock.advance(1.0)
    await world.task_is(task.id, TaskState.COMPLETED)
    after = await world.send(AGENT, "there is room")
    await world.delivered(2)
    assert [one.id for one in (await world.manager.tasks.page(TaskFilter()))[0]] == [after.id, task.id]


async def test_a_send_that_is_stored_is_taken_though_its_turn_is_not_begun(world: World) -> None:
    """The disk is full behind it: whoever sent it is not told that it was refused, for it is done later."""
    await world.start()
    first = await world.send(AGENT)
    await world.delivered()
    world.link.submit()
    turns = world.manager._agents[AGENT].turns
    pump = turns.pump

    async def full() -> None:
        raise StoreError("disk full")

    turns.pump = full  # type: ignore[method-assign]
    second = await world.send(AGENT, "next")
    turns.pump = pump  # type: ignore[method-assign]
    assert second.status is TaskState.SUBMITTED
    world.link.end("done")
    await world.task_is(first.id, TaskState.COMPLETED)
    await world.delivered(2)


async def test_keys_that_the_person_has_bound_otherwise_are_named(world: World) -> None:
    await world.start()
    record = world.manager._agents[AGENT].record
    assert record.launch is not None
    launch = record.launch.model_copy(update={"keys": "keys.json binds enter otherwise"})
    world.manager._agents[AGENT].process.record = record.model_copy(update={"launch": launch})
    task = await world.send(AGENT)
    await world.delivered()
    world.link.emit(LinkUndelivered(task.id, "the composer is gone", "Update now?"))
    failed = await world.task_is(task.id, TaskState.FAILED)
    assert failed.error is not None
    assert failed.error.message.endswith("the composer is gone; keys.json binds enter otherwise")
