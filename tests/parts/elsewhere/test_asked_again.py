"""The same question asked again: another one in the inbox, once the first was answered, and never one too many."""

import asyncio

import pytest

from synapsed.a2a_types.partial_answer import Snapshot
from synapsed.a2a_types.remote_outcome import TAKEN_UP_S, UNMARKED_S, outcome
from synapsed.errors import NotWaiting, PromptChanged, TaskNotCancelable
from synapsed.model.events import AttentionChanged, InputAnswered
from synapsed.model.external import KEY
from synapsed.model.task import Message, Task, TaskState
from synapsed.parts.elsewhere.questions import ElsewhereAsking
from tests.fakes.clock import until
from tests.parts.elsewhere.asker import asker
from tests.parts.elsewhere.here import Here

WORDS = "Which colour?"


async def told(here: Here) -> list[str]:
    """States of questions, as they were told."""
    followed = ElsewhereAsking(here.store)
    await followed.restore()
    await followed.catch_up()
    return [event.data.state for event in here.store.events.all if isinstance(event.data, AttentionChanged)]


async def asked(here: Here, task: Task, *, after: str = "") -> Task:
    """The task once it asks something else than `after`."""
    return await here.until(task, lambda now: now.prompt is not None and now.prompt.prompt_id != after)


async def test_it_is_another_question(here: Here) -> None:
    await told(here)
    async with asker(WORDS, WORDS) as far:
        await here.externals.discover(far.agent.url, "far", headers=None)
        first = await asked(here, await here.send("paint"))
        assert first.prompt is not None
        await here.externals.answer(first, Message.of("red"), first.prompt.prompt_id)
        second = await asked(here, first, after=first.prompt.prompt_id)
        assert second.prompt is not None
        assert (second.prompt.prompt, await told(here)) == (WORDS, ["opened", "answered", "opened"])
        with pytest.raises(PromptChanged):
            await here.externals.answer(second, Message.of("yes"), first.prompt.prompt_id)
        await here.externals.answer(second, Message.of("blue"), second.prompt.prompt_id)
        task = await here.over(second)
    assert (task.answer, far.said) == ("done: paint, red, blue", ["paint", "red", "blue"])
    assert await told(here) == ["opened", "answered", "opened", "answered"]
    answers = [event.data.answer for event in here.store.events.all if isinstance(event.data, InputAnswered)]
    assert answers == ["red", "blue"]


async def test_an_answer_is_not_given_to_a_question_that_came_meanwhile(here: Here) -> None:
    async with asker(WORDS, WORDS) as far:
        await here.externals.discover(far.agent.url, "far", headers=None)
        task = await asked(here, await here.send("paint"))
        assert task.prompt is not None
        courier = here.externals._couriers[task.id]
        async with courier._turn:  # a look over there is about to be recorded
            answering = asyncio.ensure_future(here.externals.answer(task, Message.of("yes"), task.prompt.prompt_id))
            while not courier._answering:
                await asyncio.sleep(0)
            other = task.prompt.model_copy(update={"prompt_id": "other", "prompt": "Delete all?"})
            courier.task = courier.task.model_copy(update={"prompt": other})
        with pytest.raises(PromptChanged):
            await answering
    assert far.said == ["paint"]


async def test_an_agent_that_takes_up_the_answer_late_has_not_asked_again(here: Here) -> None:
    await told(here)
    async with asker(WORDS, late=2) as far:
        await here.externals.discover(far.agent.url, "far", headers=None)
        task = await asked(here, await here.send("paint"))
        answered = await here.externals.answer(task, Message.of("red"))
        assert (answered.status, answered.prompt) == (TaskState.WORKING, None)
        await here.over(task)
    assert await told(here) == ["opened", "answered"]


async def test_a_daemon_that_comes_back_does_not_ask_again_what_was_answered(here: Here) -> None:
    await told(here)
    async with asker(WORDS, late=4) as far:
        await here.externals.discover(far.agent.url, "far", headers=None)
        task = await asked(here, await here.send("paint"))
        await here.externals.answer(task, Message.of("red"))
        await here.restarted()
        await here.over(task)
    assert await told(here) == ["opened", "answered"]


async def test_two_persons_answer_while_the_agents_are_adopted(here: Here) -> None:
    """Requests are answered before the daemon goes on with what was under way."""
    await told(here)
    async with asker(WORDS) as far:
        await here.externals.discover(far.agent.url, "far", headers=None)
        task = await asked(here, await here.send("paint"))
        await here.restarted(resume=False)
        taken = await here.answered_by_two(task, "red", "blue")
        await here.externals.resume()
        task = await here.over(task)
    assert (task.answer, far.said) == (f"done: paint, {taken}", ["paint", taken])
    assert here.externals._couriers == {}
    assert await told(here) == ["opened", "answered"]


async def test_an_answer_to_a_question_of_a_task_that_has_ended_is_not_sent(here: Here) -> None:
    """The caller has read the task before it ended."""
    async with asker(WORDS) as far:
        await here.externals.discover(far.agent.url, "far", headers=None)
        task = await asked(here, await here.send("paint"))
        await here.externals.answer(task, Message.of("red"))
        await until(lambda: not here.externals._couriers, "nobody follows it any more")
        with pytest.raises(NotWaiting):
            await here.externals.answer(task, Message.of("blue"))
        with pytest.raises(TaskNotCancelable):
            await here.externals.cancel(task)
    assert far.said == ["paint", "red"]


async def test_its_agent_is_removed_while_the_agents_are_adopted(here: Here) -> None:
    async with asker(WORDS, WORDS) as far:
        await here.externals.discover(far.agent.url, "far", headers=None)
        task = await asked(here, await here.send("paint"))
        await here.restarted(resume=False)
        await here.externals.answer(task, Message.of("red"))
        await here.externals.remove("far")
        await here.externals.resume()
    assert ((await here.task(task)).status, here.externals._couriers) == (TaskState.CANCELED, {})


# --- decided ---------------------------------------------------------------------------------------------------------


def waiting(task: Task, mark: str, *, answered: bool, now: float, own: str = "") -> Task:
    prompt = {"prompt": {"prompt_id": own, "type": "question", "prompt": WORDS}} if own else {}
    there = Snapshot("there", "", TaskState.INPUT_REQUIRED, None, WORDS, prompt, mark)
    commit = outcome(task, there, by="far", now=now, answered=answered)
    return task if commit is None else commit.task


def asking(mark: str, own: str = "") -> Task:
    at = "2026-01-01T00:00:00.000Z"
    task = Task(id="t", agent_id="external:far", message=Message.of("hi"), created_at=at, updated_at=at)
    return waiting(task.model_copy(update={"status": TaskState.WORKING}), mark, answered=False, now=0.0, own=own)


@pytest.mark.parametrize(
    ("mark", "own", "patience"), [("m", "", TAKEN_UP_S), ("", "", UNMARKED_S), ("m", "p", TAKEN_UP_S)]
)
def test_it_is_told_again_where_the_answer_is_not_taken_up(mark: str, own: str, patience: float) -> None:
    first = asking(mark, own)
    answered = waiting(first, mark, answered=True, now=10.0, own=own)
    assert answered.status is TaskState.WORKING
    assert waiting(answered, mark, answered=False, now=9.0 + patience, own=own) == answered
    again = waiting(answered, mark, answered=False, now=11.0 + patience, own=own)
    assert (again.status, again.prompt is not None) == (TaskState.INPUT_REQUIRED, True)
    assert (again.prompt == first.prompt) == bool(own)


def test_the_clock_may_be_set_back_meanwhile() -> None:
    answered = waiting(asking("m"), "m", answered=True, now=10.0)
    assert waiting(answered, "m", answered=False, now=5.0).status is TaskState.INPUT_REQUIRED


def test_an_agent_that_marks_its_words_anew_at_each_look_asks_once() -> None:
    first = asking("m1")
    assert waiting(first, "m2", answered=False, now=1.0) == first


def test_a_kill_while_the_answer_was_on_its_way() -> None:
    first = asking("m1")
    cut = first.model_copy(
        update={"metadata": {KEY: {**first.metadata[KEY], "asked": {**first.metadata[KEY]["asked"], "given": True}}}}
    )
    assert waiting(cut, "m1", answered=False, now=1.0) == cut, "it may not have arrived"
    again = waiting(cut, "m2", answered=False, now=1.0)
    assert again.prompt is not None
    assert first.prompt is not None
    assert (again.prompt.prompt, again.prompt.prompt_id == first.prompt.prompt_id) == (WORDS, False)
