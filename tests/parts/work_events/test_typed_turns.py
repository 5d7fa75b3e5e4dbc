"""Turns that a person typed at the agent's terminal."""

from typing import Any

import pytest

from synapsed.model.events import TokensUsed, TurnSeen
from synapsed.model.facts import PromptAccepted, ToolBegan, TurnEnded, TurnFailed, TurnInterrupted, TurnUsed
from synapsed.model.link import LinkTold
from synapsed.model.task import TaskState
from tests.fakes.clock import until
from tests.support.world import World

AGENT = "synapse-fake-8190"


def accepted(prompt: str | None, turn: str | None = "t1") -> LinkTold:
    return LinkTold(PromptAccepted(channel="hooks", at_ns=1, turn=turn, prompt=prompt))


def ended(answer: str | None, turn: str | None = "t1") -> LinkTold:
    return LinkTold(TurnEnded(channel="hooks", at_ns=2, turn=turn, answer=answer))


def told(world: World) -> list[tuple[str, str | None, str | None]]:
    return [(data.text, data.answer, data.turn_id) for data in world.told(TurnSeen)]


async def settled(world: World) -> None:
    """All that was told before has been dealt with."""
    await world.manager._agents[AGENT]._actor.call(_nothing)


async def _nothing() -> None:
    return None


async def test_text_and_answer(world: World) -> None:
    await world.start()
    world.link.emit(accepted("what is this?"))
    world.link.emit(ended("A test."))
    await until(lambda: bool(told(world)))
    assert told(world) == [("what is this?", "A test.", "t1")]


@pytest.mark.parametrize(
    "end", [TurnFailed(channel="h", at_ns=2, turn="t1"), TurnInterrupted(channel="h", at_ns=2, turn="t1")]
)
async def test_a_turn_without_an_answer(world: World, end: Any) -> None:
    await world.start()
    world.link.emit(accepted("what?"))
    world.link.emit(LinkTold(end))
    await until(lambda: bool(told(world)))
    assert told(world) == [("what?", None, "t1")]


async def test_a_task_s_turn_is_none_also_where_it_is_reported_late(world: World) -> None:
    await world.start()
    task = await world.send(AGENT, "do the\nwork")
    await world.delivered()
    world.link.submit()
    world.link.emit(accepted("do the work"))
    world.link.emit(ended("done"))
    world.link.end("done")
    await world.task_is(task.id, TaskState.COMPLETED)
    world.link.emit(accepted("[A2A:1234abcd:x] do the\nwork", "t2"))
    world.link.emit(ended("done", "t2"))
    world.link.emit(accepted("thanks", "t3"))
    world.link.emit(ended("Welcome.", "t3"))
    await until(lambda: bool(told(world)))
    assert told(world) == [("thanks", "Welcome.", "t3")]


async def test_ends_of_other_turns_and_what_has_no_text(world: World) -> None:
    await world.start()
    world.link.emit(accepted(None, "t0"))
    world.link.emit(ended("x", "t0"))
    world.link.emit(accepted("one"))
    world.link.emit(ended("another's", "t9"))
    world.link.emit(LinkTold(ToolBegan(channel="hooks", at_ns=2, turn="t1", tool="Bash")))
    await settled(world)
    assert told(world) == []


async def test_a_new_daemon_that_is_told_again_tells_nothing_twice(world: World) -> None:
    await world.start()
    world.link.emit(accepted("what?"))
    world.link.emit(ended("that"))
    world.link.emit(accepted("and?", "t2"))
    await until(lambda: bool(told(world)))
    await world.manager.close(keep_agents=True)
    await world.daemon()
    await until(lambda: world.link.opened)
    for event in (accepted("what?"), ended("that"), accepted("and?", "t2"), ended("so", "t2")):
        world.link.emit(event)
    await until(lambda: len(told(world)) == 2)
    assert told(world) == [("what?", "that", "t1"), ("and?", "so", "t2")]


async def test_what_a_turn_used_is_its_task_s_and_told_once(world: World) -> None:
    await world.start()
    task = await world.send(AGENT, "work")
    await world.delivered()
    world.link.submit()
    world.link.emit(accepted("work"))
    world.link.end("done")
    await world.task_is(task.id, TaskState.COMPLETED)
    for turn in ("t1", "t1", "t2"):
        world.link.emit(LinkTold(TurnUsed(channel="hooks", at_ns=3, turn=turn, model="m", input_tokens=3)))
    await until(lambda: len(world.told(TokensUsed)) == 2)
    found = [event for event in world.store.events.all if isinstance(event.data, TokensUsed)]
    assert [(event.task_id, event.context_id) for event in found] == [(task.id, task.context_id), (None, None)]
    await world.manager.close(keep_agents=True)
    await world.daemon()
    await until(lambda: world.link.opened)
    for turn in ("t1", "t3"):
        world.link.emit(LinkTold(TurnUsed(channel="hooks", at_ns=3, turn=turn, model="m", input_tokens=3)))
    await until(lambda: len(world.told(TokensUsed)) == 3)
    assert world.told(TokensUsed, lambda data: data.turn_id) == ["t1", "t2", "t3"]


async def test_what_a_turn_used_is_its_task_s_where_a_new_daemon_is_told(world: World) -> None:
    """Two tasks with the same words, the second of which is worked on; and a note of ours in the first one's turn."""
    await world.start()
    begun: list[int] = []
    for _ in range(2):
        task = await world.send(AGENT, "again")
        await world.delivered()
        world.link.submit()
        begun.append(round(world.clock.monotonic() * 1e9))
        world.clock.advance(10)
        if not begun[1:]:
            world.link.end("done")
            first = await world.task_is(task.id, TaskState.COMPLETED)
            world.clock.advance(10)
    await world.manager.close(keep_agents=True)
    world.clock.advance(10)
    await world.daemon()
    await until(lambda: world.link.opened)
    told_again = [("t1", "again", begun[0]), ("t2", "It was refused.", begun[0] + 1), ("t3", "again", begun[1])]
    for turn, prompt, at_ns in told_again:
        world.link.emit(LinkTold(PromptAccepted(channel="hooks", at_ns=at_ns, turn=turn, prompt=prompt)))
        world.link.emit(LinkTold(TurnUsed(channel="hooks", at_ns=at_ns, turn=turn, model="m", input_tokens=3)))
    await until(lambda: len(world.told(TokensUsed)) == 3)
    found = [event for event in world.store.events.all if isinstance(event.data, TokensUsed)]
    assert [event.task_id for event in found] == [first.id, first.id, task.id]
    assert [fact.at_ns for fact in world.link.taken_facts] == [at for *_, at in told_again for _ in range(2)]


async def test_a_turn_that_a_message_joins_is_told_before_and_its_answer_is_the_task_s(world: World) -> None:
    await world.start()
    world.link.emit(LinkTold(PromptAccepted(channel="server", at_ns=1, turn="t1", prompt="mine", own=False)))
    await world.send(AGENT, "do it")
    await world.delivered()
    world.link.emit(LinkTold(PromptAccepted(channel="server", at_ns=2, turn="t1", prompt="do it", own=True)))
    world.link.emit(ended("To both."))
    await settled(world)
    assert told(world) == [("mine", None, "t1")]
