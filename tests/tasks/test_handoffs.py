"""When work passes from one agent to another, and back."""

from typing import Any

import pytest

from synapsed.model.events import AgentTransition
from synapsed.model.link import LinkTurnFailed
from synapsed.model.sender import SYSTEM, Sender, Tier
from synapsed.model.task import Message, Task, TaskState
from synapsed.tasks.transitions import passed_on
from tests.fakes.clock import until
from tests.support.world import World
from tests.tasks.test_replies import A, B, Pair


@pytest.fixture
async def pair(world: World) -> Pair:
    return await Pair(world).start()


def told(world: World) -> list[tuple[str | None, str | None, str, str | None, str | None, str | None]]:
    return [
        (event.task_id, data.from_agent, data.to_agent, data.kind, data.reason, data.from_task)
        for event in world.store.events.all
        if isinstance(data := event.data, AgentTransition)
    ]


async def test_a_question_and_the_answer_that_is_its_reply(world: World, pair: Pair) -> None:
    own = await pair.own()
    request = await pair.ask(own, text="what  is\nit?")
    assert told(world) == [(request.id, A, B, "message", "what is it?", own.id)]
    await pair.turn(B, 1, "42")
    await world.task_is(own.id, TaskState.COMPLETED)
    assert told(world)[1:] == [(own.id, B, A, "reply", "its turn ended: completed", request.id)]


async def test_words_of_its_own_and_a_failure(world: World, pair: Pair) -> None:
    own = await pair.own(wait=True)
    request = await pair.ask(own)
    await pair.reply(own.id, "mine")
    assert told(world)[1:] == [(own.id, B, A, "reply", "it replied", request.id)]
    await pair.turn(B, 1, "x")
    await world.task_is(request.id, TaskState.COMPLETED)

    own = await pair.own(wait=True)
    request = await pair.ask(own)
    link = pair.link(B)
    await world.delivered(2, link)
    link.submit()
    link.emit(LinkTurnFailed(request.id, "MODEL_ERROR", "no", "fake"))
    await world.task_is(own.id, TaskState.FAILED)
    assert told(world)[-1] == (own.id, B, A, "reply", "its turn ended: failed, MODEL_ERROR", request.id)


async def test_a_person_s_message_passes_from_nobody(world: World, pair: Pair) -> None:
    await world.send(B, "hello")
    assert told(world) == []


async def test_it_stands_in_the_commit_of_the_task(world: World, pair: Pair) -> None:
    """Also where the task has to wait, and for each message once."""
    first = await world.send(B, "hello")
    await pair.turn(B, 1, "x")
    await world.task_is(first.id, TaskState.COMPLETED)
    sent = [await pair.ask(await pair.own(), text=text) for text in ("one", "two")]
    await until(lambda: len(told(world)) == 2)
    assert [row[0] for row in told(world)] == [task.id for task in sent]


@pytest.mark.parametrize(
    ("sender", "to", "expected"),
    [
        (Sender(id=SYSTEM, tier=Tier.AGENT), A, None),
        (Sender(id="schedule-x", tier=Tier.PERSON), A, None),
        (Sender(id=A, tier=Tier.AGENT), "external:desk", (A, "external:desk", "external")),
        (Sender(id=A, tier=Tier.AGENT), "x@far", (A, "x@far", "external")),
        (Sender(id="desk", tier=Tier.EXTERNAL), A, ("external:desk", A, "external")),
        (Sender(id="x@far", tier=Tier.EXTERNAL), A, ("x@far", A, "external")),
    ],
)
def test_who_passes_to_whom(sender: Sender, to: str, expected: tuple[str, str, str] | None) -> None:
    metadata: dict[str, Any] = {"sender": sender.metadata(), "sender_task_id": 7}
    task = Task(
        agent_id=to, message=Message.of("word " * 500), metadata=metadata, created_at="2026-01-01", updated_at="2026"
    )
    events = passed_on(task)
    if expected is None:
        assert events == ()
        return
    (event,) = events
    data = event.data
    assert isinstance(data, AgentTransition)
    assert (data.from_agent, data.to_agent, data.kind, data.from_task) == (*expected, None)
    assert event.task_id == task.id
    assert len(data.reason or "") == 200
