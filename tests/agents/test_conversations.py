"""The conversation of an agent over its programs: resumed where that can be, and told where it cannot."""

from dataclasses import replace

import pytest

from synapsed.errors import ConversationTaken, InvalidRequest, StoreError
from synapsed.model.agent import Activity, Conversation, ProcessState
from synapsed.model.events import AgentAlert, AttentionChanged
from synapsed.model.facts import PromptAccepted
from synapsed.model.link import LinkSession, LinkTold, LinkTurnAccepted
from synapsed.model.task import TaskState
from synapsed.profiles.library import ProfileLibrary
from tests.fakes.clock import until
from tests.support.world import World

TALKER = "synapse-talker-8170"


def plans(world: World) -> list[tuple[bool, str | None]]:
    return [(plan.resumed, plan.conversation) for _, plan in world.factory.launched]


async def worked(world: World) -> None:
    world.link.ready()
    await until(lambda: world.manager.directory.view(TALKER).activity is Activity.READY)
    world.link.observe_as(Activity.BUSY)
    await until(lambda: world.manager.directory.view(TALKER).activity is Activity.BUSY)


async def test_a_conversation_is_resumed_once_there_was_a_turn(world: World) -> None:
    await world.start("talker")
    await world.manager.restart(TALKER)
    (_, first), (resumed, second) = plans(world)
    assert first is not None
    assert not resumed  # nothing was said: there is nothing to resume
    assert second not in (None, first)
    world.link.emit(LinkSession("told"))
    await worked(world)
    await world.manager.restart(TALKER)
    assert plans(world)[2] == (True, "told")
    assert (await world.store.agents())[0].launch.resumed


async def test_a_program_that_continues_its_last_conversation_needs_no_id(world: World) -> None:
    await world.start("last")
    agent = world.manager.directory.resolve("last")
    world.link.ready()
    await until(lambda: world.manager.directory.view(agent).activity is Activity.READY)
    world.link.observe_as(Activity.BUSY)
    await until(lambda: world.manager.directory.view(agent).activity is Activity.BUSY)
    await world.manager.restart(agent)
    assert [resumed for resumed, _ in plans(world)] == [False, True]


async def test_a_conversation_that_cannot_be_resumed_is_given_up(world: World) -> None:
    await world.start("talker")
    await worked(world)
    await world.manager.restart(TALKER)
    assert plans(world)[1] == (True, plans(world)[0][1])
    world.link.die(1)
    await world.agent_is(TALKER, ProcessState.BACKOFF)
    assert world.told(AgentAlert, lambda d: d.code) == ["CONVERSATION_LOST"]
    world.clock.advance(1)
    await world.agent_is(TALKER, ProcessState.RUNNING)
    assert not plans(world)[2][0]


async def test_a_crash_of_a_resumed_program_that_was_ready_keeps_the_conversation(world: World) -> None:
    await world.start("talker")
    await worked(world)
    for number in (1, 2):
        world.link.die(1)
        await world.agent_is(TALKER, ProcessState.BACKOFF)
        world.clock.advance(5)
        await world.agent_is(TALKER, ProcessState.RUNNING)
        world.link.ready()
        await until(lambda: world.manager.directory.view(TALKER).activity is Activity.READY)
        assert plans(world)[number] == (True, plans(world)[0][1])


def conversation(world: World, agent: str = TALKER) -> Conversation:
    found = world.manager.directory.detail(agent).conversation
    assert found is not None
    return found


def lost(world: World) -> list[str]:
    return [alert.message for alert in world.told(AgentAlert) if alert.code == "CONVERSATION_LOST"]


async def test_how_a_conversation_came_about_is_shown(world: World) -> None:
    await world.start("talker")
    first = conversation(world)
    assert (first.id, first.said, first.resumed, first.note) == (None, False, False, None)
    await world.manager.restart(TALKER)
    assert conversation(world).note == "new: nothing had been said in the one before"
    assert conversation(world).context_id == first.context_id
    await worked(world)
    id_ = plans(world)[1][1]
    assert (conversation(world).id, conversation(world).said) == (id_, True)
    await world.manager.restart(TALKER)
    assert (conversation(world).resumed, conversation(world).note) == (True, f"goes on with {id_}")
    assert conversation(world).context_id == first.context_id
    assert lost(world) == []


async def test_busy_before_it_was_ready_is_no_conversation(world: World) -> None:
    await world.start("talker", ready=False)
    world.link.observe_as(Activity.BUSY)
    world.link.ready()
    await until(lambda: world.manager.directory.view(TALKER).activity is Activity.READY)
    assert not conversation(world).said


async def test_a_conversation_that_no_profile_can_resume_is_told_to_be_lost_once(world: World) -> None:
    view = await world.start()
    before = conversation(world, view.id).context_id
    task = await world.send(view.id)
    await world.delivered()
    world.link.submit()
    world.link.end("x")
    await world.task_is(task.id, TaskState.COMPLETED)
    await until(lambda: conversation(world, view.id).said)
    await world.manager.restart(view.id)
    (message,) = lost(world)
    assert "no way to resume" in message
    found = conversation(world, view.id)
    assert found.note is not None
    assert "no way to resume" in found.note
    assert found.context_id != before
    await world.manager.restart(view.id)
    assert lost(world) == [message]
    assert conversation(world, view.id).note == found.note


async def test_a_program_that_goes_on_elsewhere_is_told(world: World) -> None:
    await world.start("talker")
    await worked(world)
    await world.manager.restart(TALKER)
    world.link.emit(LinkSession("another"))
    await until(lambda: lost(world))
    assert not conversation(world).said
    await worked(world)
    assert conversation(world).id == "another"


async def test_a_conversation_begun_in_the_program_counts_from_its_first_turn(world: World) -> None:
    await world.start("talker")
    world.link.emit(LinkSession("one"))
    await worked(world)
    world.link.ready()
    await until(lambda: world.manager.directory.view(TALKER).activity is Activity.READY)
    world.link.emit(LinkSession("two"))
    await until(lambda: not conversation(world).said)
    assert conversation(world).id is None
    await worked(world)
    assert conversation(world).id == "two"
    world.link.emit(LinkSession("three"))  # a program that tells its id with the first prompt
    await until(lambda: conversation(world).id == "three")
    assert conversation(world).said
    assert lost(world) == []


async def test_what_an_earlier_daemon_was_told_is_told_again_and_moves_nothing(world: World) -> None:
    """A person's own new conversation: the reports of the one before are kept, and come first."""
    await world.start("talker")
    world.link.emit(LinkSession("one", 10))
    await worked(world)
    world.link.ready()
    world.link.emit(LinkSession("two", 20))
    world.link.emit(LinkTold(PromptAccepted(channel="hooks", at_ns=21, session="two")))
    await until(lambda: conversation(world).id == "two")
    context = conversation(world).context_id
    await world.manager.close(keep_agents=True)
    await world.daemon()
    for told in (LinkSession("one", 10), LinkSession("two", 20)):
        world.link.emit(told)
        world.link.emit(LinkTold(PromptAccepted(channel="hooks", at_ns=told.at_ns + 1, session=told.conversation)))
    world.link.ready()
    await until(lambda: world.manager.directory.view(TALKER).activity is Activity.READY)
    found = conversation(world)
    assert (found.id, found.said, found.context_id) == ("two", True, context)
    await world.manager.restart(TALKER)
    assert plans(world)[-1] == (True, "two")


async def test_a_prompt_that_was_answered_before_anybody_looked_was_said(world: World) -> None:
    await world.start("talker")
    world.link.emit(LinkSession("one", 10))
    world.link.emit(LinkTold(PromptAccepted(channel="hooks", at_ns=5, session="another")))
    world.link.emit(LinkTold(PromptAccepted(channel="hooks", at_ns=11, session="one")))
    await until(lambda: conversation(world).said)
    assert conversation(world).id == "one"


async def test_a_lost_conversation_is_a_persons_to_know_until_something_is_said(world: World) -> None:
    await world.start("talker")
    await worked(world)
    await world.manager.restart(TALKER)
    world.link.emit(LinkSession("another"))
    await until(lambda: lost(world))
    world.link.ready()
    opened = [told for told in world.told(AttentionChanged) if told.code == "CONVERSATION_LOST"]
    assert [told.state for told in opened] == ["opened"]
    assert "reports another" in opened[0].question
    await worked(world)
    await until(lambda: [told.state for told in world.told(AttentionChanged)] == ["opened", "gone"])


async def test_a_kill_before_it_was_ready_is_no_refusal(world: World) -> None:
    await world.start("talker")
    await worked(world)
    await world.manager.restart(TALKER)
    world.link.die(-9)
    await world.agent_is(TALKER, ProcessState.BACKOFF)
    world.clock.advance(1)
    await world.agent_is(TALKER, ProcessState.RUNNING)
    assert plans(world)[2] == plans(world)[1]


async def test_adoption_changes_nothing_about_the_conversation(world: World) -> None:
    await world.start("talker")
    await worked(world)
    before = conversation(world)
    await world.daemon()
    world.link.emit(LinkSession(before.id or ""))
    await worked(world)
    assert conversation(world) == before


async def test_messages_share_the_conversation_whatever_their_context(world: World) -> None:
    view = await world.start("talker")
    own = conversation(world).context_id
    first = await world.send(view.id, context_id="theirs")
    assert (await world.send(view.id)).context_id == own, "nothing was said yet"
    await world.delivered()
    world.link.submit()
    world.link.emit(LinkTurnAccepted(first.id, "fake"))
    world.link.end("x")
    await world.delivered(2)
    world.link.submit()
    world.link.end("y")
    await until(lambda: world.manager.directory.view(view.id).task is None)
    assert conversation(world).context_id == "theirs", "the first message's"
    assert (await world.send(view.id)).context_id == "theirs"
    assert (await world.send(view.id, context_id="other")).context_id == "other"
    assert len(plans(world)) == 1


async def test_a_new_conversation_is_begun_where_a_message_asks_for_it(world: World) -> None:
    view = await world.start("talker")
    await worked(world)
    old = conversation(world)
    waiting = await world.send(view.id, "in the old one")
    asked = await world.send(view.id, "hello", metadata={"new_conversation": True})
    assert asked.context_id != old.context_id
    world.link.ready()
    await world.delivered()
    assert world.link.deliveries[0].task_id == waiting.id
    first = world.link
    first.submit()
    first.end("x")
    await until(lambda: len(plans(world)) == 2, "it is started again")
    assert not plans(world)[1][0]
    await world.daemon()
    world.link.ready()
    await world.delivered()
    assert world.link.deliveries[0].task_id == asked.id
    assert [delivery.task_id for delivery in first.deliveries] == [waiting.id]
    assert conversation(world).context_id == asked.context_id
    assert conversation(world).note == "new, as a message asked"
    assert lost(world) == []


async def test_a_new_conversation_that_an_urgent_message_has_taken_is_not_the_next_ones(world: World) -> None:
    view = await world.start("talker")
    await worked(world)
    asked = await world.send(view.id, "hello", metadata={"new_conversation": True})
    world.link.ready()
    await until(lambda: len(plans(world)) == 2, "it is started again")
    urgent = await world.send(view.id, "at once", priority=5)
    world.link.ready()
    await world.delivered()
    assert world.link.deliveries[0].task_id == urgent.id
    second = world.link
    second.submit()
    second.end("x")
    await until(lambda: len(plans(world)) == 3, "the message gets a conversation of its own")
    world.link.ready()
    await world.delivered()
    assert world.link.deliveries[0].task_id == asked.id
    assert [delivery.task_id for delivery in second.deliveries] == [urgent.id]


async def test_a_new_conversation_is_not_the_one_that_the_arguments_chose(world: World) -> None:
    view = await world.start("talker", args=["--continue", "--verbose"])
    world.link.emit(LinkSession("old"))
    await worked(world)
    world.link.ready()
    await until(lambda: world.manager.directory.view(TALKER).activity is Activity.READY)
    asked = await world.send(view.id, "hello", metadata={"new_conversation": True})
    await until(lambda: len(plans(world)) == 2, "it is started again")
    (chosen, conversation_id, args) = own_arguments(world)[1]
    assert (chosen, args) == (False, ("--verbose",))
    assert conversation_id not in (None, "old")
    world.link.ready()
    await world.delivered()
    assert world.link.deliveries[0].task_id == asked.id


async def test_a_new_conversation_that_the_database_did_not_take_is_begun_later(world: World) -> None:
    view = await world.start("talker")
    await worked(world)
    world.link.observe_as(Activity.BUSY)
    await until(lambda: world.manager.directory.view(view.id).activity is Activity.BUSY)
    asked = await world.send(view.id, "hello", metadata={"new_conversation": True})
    world.link.seen = replace(world.link.seen, activity=Activity.READY, can_receive=True)
    world.store.refuse = StoreError("the disk is full")
    with pytest.raises(StoreError):
        await world.manager._agents[view.id]._actor.call(world.manager._agents[view.id].recheck)
    world.store.refuse = None
    world.link.ready()
    await until(lambda: len(plans(world)) == 2, "it is started again")
    world.link.ready()
    await world.delivered()
    assert world.link.deliveries[0].task_id == asked.id


async def test_a_new_conversation_needs_no_new_program_where_nothing_was_said(world: World) -> None:
    view = await world.start("talker")
    task = await world.send(view.id, metadata={"new_conversation": True}, context_id="c")
    await world.delivered()
    world.link.submit()
    world.link.emit(LinkTurnAccepted(task.id, "fake"))
    await until(lambda: conversation(world).context_id == "c")
    assert len(plans(world)) == 1


async def test_an_agent_is_started_on_an_earlier_conversation(world: World) -> None:
    view = await world.start("talker", conversation="earlier-1")
    assert plans(world) == [(True, "earlier-1")]
    found = conversation(world)
    assert (found.id, found.said, found.resumed, found.note) == ("earlier-1", True, True, "goes on with earlier-1")
    with pytest.raises(ConversationTaken, match=view.name):
        await world.start("talker", conversation="earlier-1")
    with pytest.raises(InvalidRequest, match="by its id"):
        await world.start("fake", conversation="earlier-1")
    assert [agent.name for agent in world.manager.directory.agents()] == [view.name]


@pytest.mark.parametrize(("version", "resumed"), [("1.6.0", True), ("1.0.4", False)])
async def test_an_earlier_conversation_where_newer_versions_alone_know_the_way_back(
    world: World, version: str, resumed: bool
) -> None:
    """The version is read when the program starts. If it is too old to go on, it starts over, and synapsed says so."""
    folder = world.paths.state.parent / "profiles"
    way = '[[versions]]\nsince = "1.1.0"\n[versions.resume]\nargs = ["--session-id", "{conversation}"]\n'
    (folder / "grown.toml").write_text(f'command = "sh"\nmodel = true\nversion = {{}}\n{way}')
    world.library = ProfileLibrary([folder])
    await world.daemon()
    world.factory.versions["grown"] = version
    await world.start("grown", conversation="earlier-1")
    assert plans(world) == [(resumed, "earlier-1" if resumed else None)]
    assert bool(lost(world)) is not resumed


async def test_an_earlier_conversation_that_is_refused_is_told(world: World) -> None:
    await world.start("talker", ready=False, conversation="earlier-1")
    world.link.die(1)
    await world.agent_is(TALKER, ProcessState.BACKOFF)
    (message,) = lost(world)
    assert "before it was ready" in message
    assert conversation(world).id is None


def own_arguments(world: World) -> list[tuple[bool, str | None, tuple[str, ...]]]:
    return [(plan.chosen, plan.conversation, plan.args) for _, plan in world.factory.launched]


async def test_a_persons_own_choice_of_the_conversation_is_made_once(world: World) -> None:
    """Beside ours it would be refused; and nobody is asked again at a restart."""
    await world.start("talker", args=["--pick", "--verbose"])
    assert own_arguments(world) == [(True, None, ("--pick", "--verbose"))]
    world.link.emit(LinkSession("empty"))
    world.link.emit(LinkSession("picked"))
    await until(lambda: world.manager.directory.detail(TALKER).conversation.id == "picked")
    await world.manager.restart(TALKER)
    assert own_arguments(world)[1] == (False, "picked", ("--verbose",))
    assert plans(world)[1] == (True, "picked")


async def test_what_a_person_begins_later_in_the_program_is_no_choice_of_the_arguments(world: World) -> None:
    await world.start("talker", args=["--continue"])
    world.link.emit(LinkSession("old"))
    await worked(world)
    world.link.ready()
    await until(lambda: world.manager.directory.view(TALKER).activity is Activity.READY)
    world.link.emit(LinkSession("new"))
    await until(lambda: world.manager.directory.detail(TALKER).conversation.id is None)


async def test_behind_a_wrapper_that_ends_well_a_refused_conversation_is_left_for_a_new_one(world: World) -> None:
    """Its exit code says success, which is not believed: else it would stay down. That of a new one is."""
    await world.start("talker")
    await worked(world)
    await world.manager.restart(TALKER)
    assert plans(world)[-1][0]
    world.link.die(0)
    view = await world.agent_is(TALKER, ProcessState.BACKOFF)
    assert "it did not go on with its conversation" in view.evidence
    world.clock.advance(2)
    await world.agent_is(TALKER, ProcessState.RUNNING)
    assert not plans(world)[-1][0]
    world.link.die(0)
    await world.agent_is(TALKER, ProcessState.EXITED)
