"""A reply to the beginning of a task's id: only what an agent was asked counts."""

from itertools import count

import pytest

from synapsed.errors import AmbiguousAddress, TaskNotFound
from synapsed.interfaces import SendRequest
from synapsed.model.sender import KEY, Sender, Tier
from synapsed.model.task import Message, Task, TaskState
from tests.support.world import World

SHORT = "0a1b2c3d"


def reply_of(agent: str | None, text: str, **more: bool) -> SendRequest:
    sender = {} if agent is None else {KEY: Sender(id=agent, tier=Tier.AGENT).metadata()}
    return SendRequest(message=Message.of(text), metadata={**sender, "in_reply_to": SHORT}, **more)


async def asked_of(world: World, asker: str, asked: str) -> Task:
    """A task of the agent's own, for which another one was asked."""
    own = await world.manager.tasks.expect_reply(asker, SendRequest(message=Message.of("say")), None)
    sender = Sender(id=asker, tier=Tier.AGENT).metadata()
    await world.send(asked, metadata={KEY: sender, "sender_task_id": own.id}, of_agent=True)
    return own


async def test_a_reply_goes_to_what_the_agent_was_asked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = count()
    monkeypatch.setattr("synapsed.supervisor.dispatcher.new_id", lambda: f"{SHORT}-{next(numbers)}")
    ann, bob, carl = [(await world.start(name=name)).id for name in ("ann", "bob", "carl")]
    of_carl, of_ann = await asked_of(world, ann, carl), await asked_of(world, bob, ann)
    reply = world.manager.tasks.reply
    for by, sender in ((bob, bob), (bob, None)):
        with pytest.raises(TaskNotFound) as unknown:
            await reply(by, reply_of(sender, "mine", of_agent=True))
        assert of_ann.id not in str(unknown.value.details)
        assert of_carl.id not in str(unknown.value.details)
    with pytest.raises(AmbiguousAddress) as ambiguous:
        await reply(carl, reply_of(carl, "a person's words"))
    assert ambiguous.value.details["candidates"] == sorted([of_carl.id, of_ann.id]), "a person is told of all"
    done = await reply(carl, reply_of(carl, "carl's words", of_agent=True))
    assert (done.id, done.status, done.answer) == (of_carl.id, TaskState.COMPLETED, "carl's words")
    done = await world.manager.tasks.send(bob, reply_of(ann, "ann's words", of_agent=True))
    assert (done.id, done.status, done.answer) == (of_ann.id, TaskState.COMPLETED, "ann's words")
    again = await reply(carl, reply_of(carl, "carl's words", of_agent=True))
    assert again.id == of_carl.id, "said twice, it counts once"
