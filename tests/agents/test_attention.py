"""What a person is needed for: opened once, then answered by somebody from somewhere, or gone."""

import asyncio

import pytest

from synapsed.agents.alerts import HELD_UP, HELD_UP_S, NOT_STARTED, START_SLOW_S
from synapsed.errors import KeeperLost, NotTaken
from synapsed.model.agent import Activity, ProcessState
from synapsed.model.events import (
    AgentAlert,
    AttentionChanged,
    Event,
    InputAnswered,
    InputRequired,
    Origin,
    ScreenRested,
)
from synapsed.model.link import LinkAlert, LinkObserved
from synapsed.model.task import Prompt, TaskState
from tests.fakes.clock import until
from tests.support.world import PERMISSION, World

AGENT = "synapse-fake-8190"
OTHER = PERMISSION.model_copy(update={"prompt_id": "p2", "prompt": "And this?"})


def attention(world: World) -> list[tuple[str, str | None]]:
    return world.told(AttentionChanged, lambda told: (told.state, told.prompt_id or told.code))


def ids(world: World) -> list[str]:
    return world.told(AttentionChanged, lambda told: told.id)


async def asking(world: World):
    await world.start()
    task = await world.send(AGENT)
    await world.delivered()
    world.link.submit()
    world.link.observe_as(Activity.WAITING, prompt=PERMISSION)
    return await world.task_is(task.id, TaskState.INPUT_REQUIRED)


def observed(prompt=None, *, activity: Activity = Activity.BUSY, by_hand: str | None = None, asking: int = 0):
    return LinkObserved(activity, "fake", prompt, can_receive=False, asking=asking, by_hand=by_hand)


def show(world: World, seen: LinkObserved) -> None:
    world.link.seen = seen
    world.link.emit(seen)


async def test_a_task_that_asks_and_who_answered_it(world: World) -> None:
    task = await asking(world)
    (asked,) = world.told(InputRequired)
    assert asked.prompt == PERMISSION
    origin = Origin("agent", "synapse-codex-8120", "http")
    await world.manager.tasks.provide_input(task.id, "2", origin=origin)
    (told,) = world.told(InputAnswered)
    assert (told.prompt_id, told.answer, told.by, told.who, told.where) == ("p1", "2", *_words(origin))
    opened, answered = world.told(AttentionChanged)
    assert (opened.id, opened.kind, opened.question) == (answered.id, "permission", "Run it?")
    assert (answered.state, answered.by, answered.who, answered.where) == ("answered", *_words(origin))
    of_task: list[Event] = [
        event for event in world.store.events.all if isinstance(event.data, AttentionChanged | InputRequired)
    ]
    assert {(event.task_id, event.context_id) for event in of_task} == {(task.id, task.context_id)}


def _words(origin: Origin) -> tuple[str, str | None, str | None]:
    return origin.by, origin.who, origin.where


async def test_what_the_terminal_still_shows_after_its_answer_is_not_opened_again(world: World) -> None:
    task = await asking(world)
    await world.manager.tasks.provide_input(task.id, "2")
    show(world, observed(PERMISSION, activity=Activity.WAITING))
    show(world, observed(OTHER, activity=Activity.WAITING))
    await until(lambda: attention(world)[-1] == ("opened", "p2"))
    assert attention(world) == [("opened", "p1"), ("answered", "p1"), ("opened", "p2")]


async def test_an_answer_at_the_terminal(world: World) -> None:
    await asking(world)
    show(world, observed(by_hand="p1"))
    await until(lambda: len(attention(world)) == 2)
    assert attention(world) == [("opened", "p1"), ("answered", "p1")]
    assert world.told(InputAnswered, lambda told: (told.answer, told.by, told.where)) == [(None, "person", "terminal")]


async def test_a_prompt_that_goes_by_itself_is_gone(world: World) -> None:
    await asking(world)
    show(world, observed())
    await until(lambda: len(attention(world)) == 2)
    assert attention(world) == [("opened", "p1"), ("gone", "p1")]
    assert world.told(InputAnswered) == []


async def test_a_prompt_that_is_asked_once_more_was_answered(world: World) -> None:
    await asking(world)
    show(world, observed(PERMISSION, activity=Activity.WAITING, asking=1))
    await until(lambda: len(attention(world)) == 3)
    assert attention(world) == [("opened", "p1"), ("answered", "p1"), ("opened", "p1")]
    first, second, third = ids(world)
    assert first == second != third


async def test_while_an_answer_is_typed_its_prompt_does_not_count_as_gone(world: World) -> None:
    """Outside of any task, too."""
    await world.start()
    world.link.observe_as(Activity.WAITING, prompt=PERMISSION)
    await until(lambda: attention(world) == [("opened", "p1")])

    async def answer(text: str, prompt_id: str | None) -> bool:
        show(world, observed(OTHER, activity=Activity.WAITING))
        await until(lambda: world.manager.directory.detail(AGENT).prompt == OTHER)
        return False

    world.link.answer = answer
    await world.manager.terminals.answer(AGENT, "1")
    await until(lambda: len(attention(world)) == 3)
    assert attention(world) == [("opened", "p1"), ("answered", "p1"), ("opened", "p2")]


async def test_an_answer_that_was_not_taken_leaves_it_open(world: World) -> None:
    task = await asking(world)
    world.link.answer_error = NotTaken("it asks the same")
    with pytest.raises(NotTaken):
        await world.manager.tasks.provide_input(task.id, "2")
    assert attention(world) == [("opened", "p1")]


async def test_what_a_program_needed_goes_with_it(world: World) -> None:
    await asking(world)
    world.link.emit(LinkAlert("DISK_FULL", "the disk is full", "begins"))
    await until(lambda: len(attention(world)) == 2)
    world.link.die(7)
    await world.agent_is(AGENT, ProcessState.BACKOFF)
    assert attention(world) == [("opened", "p1"), ("opened", "DISK_FULL"), ("gone", "p1"), ("gone", "DISK_FULL")]


async def test_an_alert_is_open_until_it_is_over(world: World) -> None:
    await world.start()
    for state in ("begins", "begins", "over", "over", "happened"):
        world.link.emit(LinkAlert("DISK_FULL", "the disk is full", state))
    await until(lambda: len(attention(world)) == 2)
    assert attention(world) == [("opened", "DISK_FULL"), ("gone", "DISK_FULL")]
    assert len(set(ids(world))) == 1


async def test_a_screen_that_nobody_can_read_is_one_matter(world: World) -> None:
    await world.start()
    page = Prompt(prompt_id="page", type="screen", prompt="a page of its own")
    show(world, observed(page, activity=Activity.UNKNOWN))
    world.link.emit(LinkAlert("UNKNOWN_SCREEN", "its screen is not understood", "begins"))
    world.link.emit(LinkAlert("DISK_FULL", "the disk is full", "begins"))
    await until(lambda: len(attention(world)) == 2)
    show(world, observed())
    world.link.emit(LinkAlert("UNKNOWN_SCREEN", "its screen is understood again", "over"))
    world.link.emit(LinkAlert("DISK_FULL", "there is room", "over"))
    await until(lambda: len(attention(world)) == 4)
    assert attention(world) == [("opened", "page"), ("opened", "DISK_FULL"), ("gone", "page"), ("gone", "DISK_FULL")]


async def test_whether_a_folder_is_trusted_is_told_by_the_question(world: World) -> None:
    await world.start()
    text = "Accessing workspace:\n/home/me/src/api\nA check: Is this a project you trust?\nIt can read files here."
    show(world, observed(Prompt(prompt_id="t", type="trust", prompt=text), activity=Activity.WAITING))
    await until(lambda: world.manager.directory.view(AGENT).asks is not None)
    assert world.manager.directory.view(AGENT).asks == (
        "A check: Is this a project you trust? · It can read files here."
    )


async def test_of_a_screen_that_nobody_can_read_its_last_rows_are_told(world: World) -> None:
    await world.start()
    rows = ["a banner", *(f"row {n}" for n in range(60)), "Warnings 1 of 1", "", "k keep · esc close", ""]
    show(world, observed(Prompt(prompt_id="s", type="screen", prompt="\n".join(rows)), activity=Activity.UNKNOWN))
    await until(lambda: world.manager.directory.view(AGENT).asks is not None)
    assert world.manager.directory.view(AGENT).asks == "Warnings 1 of 1 · k keep · esc close"


async def test_the_next_daemon_opens_nothing_twice(world: World) -> None:
    task = await asking(world)
    world.link.emit(LinkAlert("DISK_FULL", "the disk is full", "begins"))
    await until(lambda: len(attention(world)) == 2)
    await world.manager.close(keep_agents=True)
    await world.daemon()
    await until(lambda: attention(world)[2:] == [("gone", "DISK_FULL")])
    world.link.observe_as(Activity.WAITING, prompt=PERMISSION, evidence="drawn again")
    await world.manager.tasks.provide_input(task.id, "1")
    assert attention(world)[3:] == [("answered", "p1")]
    assert len(set(ids(world))) == 2


async def test_a_screen_that_comes_to_rest_is_told_once(world: World) -> None:
    await world.start()
    for screen in ("one", "one", "two"):
        world.link.screen = screen
        world.link.observe_as(Activity.BUSY)
        await until(lambda: world.manager.directory.view(AGENT).activity is Activity.BUSY)
        world.link.ready()
        await until(lambda: world.manager.directory.view(AGENT).activity is Activity.READY)
    digests = world.told(ScreenRested, lambda told: told.digest)
    assert len(digests) == len(set(digests)) == 3


async def test_what_is_observed_counts_although_nobody_draws_the_screen(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synapsed.agents.last_screen.REST_SCREEN_S", 0.01)
    await world.start()
    task = await world.send(AGENT)
    await world.delivered()
    world.link.submit()
    await world.task_is(task.id, TaskState.WORKING)
    rested = world.told(ScreenRested, lambda told: told.digest)
    gate = world.link.screen_gate = asyncio.get_running_loop().create_future()  # what draws it stands still
    try:
        world.link.screen = "a question"
        world.link.observe_as(Activity.WAITING, prompt=PERMISSION)
        await world.task_is(task.id, TaskState.INPUT_REQUIRED)
        assert attention(world) == [("opened", "p1")]
        assert world.told(ScreenRested, lambda told: told.digest) == rested
    finally:
        gate.set_result(None)
    world.link.observe_as(Activity.BUSY)
    world.link.observe_as(Activity.WAITING, prompt=OTHER)
    await until(lambda: len(world.told(ScreenRested, lambda told: told.digest)) == len(rested) + 1)


async def test_what_is_observed_counts_although_its_screen_is_closed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def closed(_limit: int | None = None) -> str:
        raise KeeperLost("the screen is closed")

    task = await asking(world)
    world.link.observe_as(Activity.BUSY)
    await world.task_is(task.id, TaskState.WORKING)
    monkeypatch.setattr(world.link, "screen_text", closed)
    world.link.observe_as(Activity.WAITING, prompt=OTHER)
    assert (await world.task_is(task.id, TaskState.INPUT_REQUIRED)).status is TaskState.INPUT_REQUIRED


async def test_a_program_that_works_is_not_asked_for_its_screen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def text(_limit: int | None = None) -> str:
        asked.append(world.link.seen.activity)
        return "shown"

    await world.start()
    monkeypatch.setattr(world.link, "screen_text", text)
    world.link.observe_as(Activity.BUSY)
    await until(lambda: world.manager.directory.view(AGENT).activity is Activity.BUSY)
    world.link.ready()
    await until(lambda: world.manager.directory.view(AGENT).activity is Activity.READY)
    assert asked == [Activity.READY]


async def test_a_program_that_does_not_come_up_is_told_of_and_used_when_it_does(world: World) -> None:
    """It stood `starting` for eight minutes, and nobody was told."""
    await world.start(ready=False)
    await world.send(AGENT)
    world.link.observe_as(Activity.STARTING, evidence="quiet: nothing yet")
    await until(lambda: world.manager.directory.view(AGENT).evidence == "quiet: nothing yet")
    world.clock.advance(START_SLOW_S - 10.0)
    world.link.observe_as(Activity.STARTING, evidence="quiet: still nothing")
    await until(lambda: world.manager.directory.view(AGENT).evidence == "quiet: still nothing")
    assert attention(world) == []
    world.clock.advance(20.0)
    await until(lambda: attention(world) == [("opened", NOT_STARTED)])
    (told,) = world.told(AttentionChanged, lambda told: told.question)
    assert "has not started for 3 minutes (quiet: still nothing)" in told
    world.link.ready()
    await world.delivered()
    world.clock.advance(5.0)
    await until(lambda: attention(world) == [("opened", NOT_STARTED), ("gone", NOT_STARTED)])


async def test_one_that_does_not_come_up_again_is_told_of_again(world: World) -> None:
    """Its end is not told as its start, and what is counted of one launch is not of the next."""
    await world.start(ready=False)
    for times in (1, 2):
        if times == 2:
            await world.manager.restart(AGENT)
        world.link.observe_as(Activity.STARTING, evidence="quiet: nothing yet")
        await until(lambda: world.manager.directory.view(AGENT).evidence == "quiet: nothing yet")
        for _ in range(2):  # it is looked at as starting, and then for so long
            world.clock.advance(START_SLOW_S)
        await until(lambda times=times: attention(world).count(("opened", NOT_STARTED)) == times)
    assert "its program has started" not in world.told(AgentAlert, lambda told: told.message)


async def test_messages_that_wait_behind_a_draft_for_long(world: World) -> None:
    await world.start(ready=False)
    world.link.observe_as(Activity.READY, held="typing")
    await until(lambda: world.manager.directory.view(AGENT).held == "typing")
    world.clock.advance(2 * HELD_UP_S)  # nothing waits: a draft may stand there for as long as it likes
    await world.send(AGENT)
    world.clock.advance(HELD_UP_S - 5.0)
    world.link.observe_as(Activity.READY, evidence="looked at once more", held="typing")
    await until(lambda: world.manager.directory.view(AGENT).evidence == "looked at once more")
    assert world.told(AttentionChanged) == []
    world.clock.advance(10.0)
    await until(lambda: attention(world) == [("opened", HELD_UP)])
    assert world.told(AttentionChanged, lambda told: told.question)[0].startswith("1 message waits behind")
    world.link.ready()
    await world.delivered()
    world.clock.advance(5.0)
    await until(lambda: attention(world) == [("opened", HELD_UP), ("gone", HELD_UP)])


async def test_a_message_whose_turn_has_begun_waits_behind_a_draft_too(world: World) -> None:
    """As of the daemon before, which was killed while it took another message back: the draft came to be seen only when
    the turn had begun (seed 0 of the simulated world)."""
    await world.start()
    await world.send(AGENT)
    await world.delivered()
    world.link.observe_as(Activity.READY, held="typing")
    await until(lambda: world.manager.directory.view(AGENT).held == "typing")
    world.clock.advance(HELD_UP_S + 10.0)
    await until(lambda: attention(world) == [("opened", HELD_UP)])
