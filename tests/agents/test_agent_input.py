"""Tasks whose program asks something: the prompt, its answer, what is kept of them."""

from dataclasses import replace

import pytest

from synapsed.errors import (
    NotTaken,
    NotWaiting,
    PromptChanged,
)
from synapsed.model.agent import Activity
from synapsed.model.events import InputAnswered, TaskArtifactAdded
from synapsed.model.task import (
    HISTORY_KEPT,
    Artifact,
    Message,
    Task,
    TaskState,
    TextPart,
)
from synapsed.tasks import transitions
from tests.fakes.clock import until
from tests.support.world import PERMISSION, World

AGENT = "synapse-fake-8190"


async def asking(world: World):
    await world.start()
    task = await world.send(AGENT)
    await world.delivered()
    world.link.submit()
    world.link.observe_as(Activity.WAITING, prompt=PERMISSION)
    return await world.task_is(task.id, TaskState.INPUT_REQUIRED)


async def test_a_prompt_makes_the_task_wait_and_its_answer_lets_it_go_on(world: World) -> None:
    task = await asking(world)
    assert task.prompt == PERMISSION
    assert world.manager.directory.detail(AGENT).prompt == PERMISSION

    async def answer(text: str, prompt_id: str | None) -> None:
        world.link.answers.append((text, prompt_id))
        world.link.observe_as(Activity.BUSY)

    world.link.answer = answer
    task = await world.manager.tasks.provide_input(task.id, "2")
    assert world.link.answers == [("2", "p1")]
    assert (task.status, task.prompt) == (TaskState.WORKING, None)
    assert world.told(InputAnswered, lambda d: (d.prompt_id, d.answer)) == [("p1", "2")]
    world.link.end("refused")
    await world.task_is(task.id, TaskState.COMPLETED)
    assert world.statuses(task.id) == ["submitted", "working", "input_required", "working", "completed"]


async def test_an_answer_that_was_not_taken_leaves_the_task_at_its_prompt(world: World) -> None:
    task = await asking(world)
    world.link.answer_error = NotTaken("it asks the same")
    with pytest.raises(NotTaken):
        await world.manager.tasks.provide_input(task.id, "2")
    assert (await world.store.task(task.id)).status is TaskState.INPUT_REQUIRED
    assert world.statuses(task.id) == ["submitted", "working", "input_required"]
    assert world.told(InputAnswered) == []


async def test_what_was_answered_and_is_still_shown_is_not_asked_again(world: World) -> None:
    """What a terminal hid leaves a password's prompt on the screen until the program says something."""
    task = await asking(world)
    task = await world.manager.tasks.provide_input(task.id, "2")
    assert (task.status, task.prompt) == (TaskState.WORKING, None)
    world.link.observe_as(Activity.WAITING, prompt=PERMISSION, evidence="drawn again")
    world.link.observe_as(Activity.BUSY)
    await until(lambda: world.manager.directory.view(AGENT).activity is Activity.BUSY)
    world.link.observe_as(Activity.WAITING, prompt=PERMISSION)  # another call's
    await world.task_is(task.id, TaskState.INPUT_REQUIRED)
    assert world.statuses(task.id) == ["submitted", "working", "input_required", "working", "input_required"]


async def test_an_answered_task_is_worked_on_before_the_next_question(world: World) -> None:
    """The answer, the commit that tells of it, and the stream: working; then what is asked next, however early it was
    seen."""
    task = await asking(world)
    following = PERMISSION.model_copy(update={"prompt_id": "p2"})

    async def answer(text: str, prompt_id: str | None) -> None:
        world.link.observe_as(Activity.WAITING, prompt=following)
        await until(lambda: world.manager.directory.detail(AGENT).prompt == following)

    world.link.answer = answer
    answered = await world.manager.tasks.provide_input(task.id, "2")
    assert (answered.status, answered.prompt) == (TaskState.WORKING, None)
    await until(lambda: world.statuses(task.id)[-1] == "input_required" and len(world.statuses(task.id)) == 5)
    assert (await world.store.task(task.id)).prompt == following
    assert world.statuses(task.id) == ["submitted", "working", "input_required", "working", "input_required"]


async def test_what_was_asked_and_answered_is_kept_in_its_order(world: World) -> None:
    task = await asking(world)

    async def answer(text: str, prompt_id: str | None) -> None:
        world.link.observe_as(Activity.BUSY)

    world.link.answer = answer
    await world.send(AGENT, "1", task_id=task.id)
    world.link.observe_as(Activity.WAITING, prompt=PERMISSION.model_copy(update={"prompt_id": "p2"}))
    await world.task_is(task.id, TaskState.INPUT_REQUIRED)

    async def answer_and_end(text: str, prompt_id: str | None) -> None:
        world.link.observe_as(Activity.BUSY)
        world.link.end("done")
        await world.task_is(task.id, TaskState.COMPLETED)

    world.link.answer = answer_and_end
    await world.manager.tasks.provide_input(task.id, "2")
    done = await world.store.task(task.id)
    assert [(said.role, said.text) for said in done.exchange] == [
        ("agent", PERMISSION.prompt),
        ("user", "1"),
        ("agent", PERMISSION.prompt),
        ("user", "2"),
    ]
    assert done.status is TaskState.COMPLETED


async def test_the_exchange_of_a_task_is_bounded() -> None:
    task = Task(agent_id="a", message=Message.of("hi"), created_at="t", updated_at="t")
    for number in range(HISTORY_KEPT):
        task = transitions.answered(task, prompt=PERMISSION, answer=Message.of(str(number)))
    assert len(task.exchange) == HISTORY_KEPT
    assert task.exchange[-1].text == str(HISTORY_KEPT - 1)


async def test_what_an_agent_hands_over_stands_beside_its_answer(world: World) -> None:
    await world.start()
    task = await world.send(AGENT)
    other = await world.send(AGENT)
    await world.delivered()
    world.link.submit()

    async def made(text: str, *, append: bool) -> Task:
        part = Artifact(artifact_id="file", parts=[TextPart(text=text)])
        return await world.manager.tasks.hand_over(task.id, part, append=append, last_chunk=append)

    await made("a", append=True)
    await made("b", append=False)
    await made("c", append=True)
    with pytest.raises(NotWaiting):
        await world.manager.tasks.hand_over(other.id, Artifact.answer("x"), append=False, last_chunk=True)
    world.link.end("done")
    done = await world.task_is(task.id, TaskState.COMPLETED)
    assert [(each.artifact_id, each.text) for each in done.artifacts] == [("file", "bc"), ("answer", "done")]
    told = world.told(TaskArtifactAdded, lambda d: (d.artifact.artifact_id, d.artifact.text, d.append, d.last_chunk))
    assert told[:3] == [("file", "a", False, True), ("file", "b", False, False), ("file", "c", True, True)]
    with pytest.raises(NotWaiting):
        await made("d", append=False)


async def test_a_person_answers_in_the_terminal(world: World) -> None:
    task = await asking(world)
    world.link.observe_as(Activity.BUSY)
    await world.task_is(task.id, TaskState.WORKING)
    world.link.observe_as(Activity.WAITING, prompt=PERMISSION.model_copy(update={"prompt_id": "p2"}))
    assert (await world.task_is(task.id, TaskState.INPUT_REQUIRED)).prompt.prompt_id == "p2"


async def test_a_message_for_a_waiting_task_is_its_answer(world: World) -> None:
    task = await asking(world)
    await world.send(AGENT, "1", task_id=task.id)
    assert world.link.answers == [("1", "p1")]


async def test_input_where_nothing_waits(world: World) -> None:
    await world.start()
    task = await world.send(AGENT)
    await world.delivered()
    with pytest.raises(NotWaiting):
        await world.manager.tasks.provide_input(task.id, "y")
    with pytest.raises(NotWaiting):
        await world.manager.terminals.answer(AGENT, "y")
    assert world.link.answers == []


async def test_a_refused_answer_changes_nothing(world: World) -> None:
    task = await asking(world)
    world.link.answer_error = PromptChanged("another one")
    with pytest.raises(PromptChanged):
        await world.manager.tasks.provide_input(task.id, "1", "p0")
    assert (await world.store.task(task.id)).status is TaskState.INPUT_REQUIRED
    assert world.told(InputAnswered) == []


async def test_a_login_needs_authentication_and_a_password_is_not_kept(world: World) -> None:
    await world.start()
    task = await world.send(AGENT)
    await world.delivered()
    login = PERMISSION.model_copy(update={"type": "login"})
    world.link.observe_as(Activity.WAITING, prompt=login)
    await world.task_is(task.id, TaskState.AUTH_REQUIRED)
    password = PERMISSION.model_copy(update={"type": "password", "prompt_id": "p2", "options": []})
    world.link.observe_as(Activity.WAITING, prompt=password)
    await world.task_is(task.id, TaskState.INPUT_REQUIRED)
    await world.manager.tasks.provide_input(task.id, "hunter2")
    assert world.told(InputAnswered, lambda d: d.answer) == [None]
    assert (await world.store.task(task.id)).exchange == []


async def test_an_answer_that_the_terminal_hid_is_kept_as_little_as_a_password(world: World) -> None:
    task = await asking(world)
    world.link.hides_answers = True
    await world.manager.tasks.provide_input(task.id, "hunter2")
    await world.manager.terminals.answer(AGENT, "hunter3")
    assert world.told(InputAnswered, lambda d: d.answer) == [None, None]
    assert (await world.store.task(task.id)).exchange == []


async def test_a_prompt_outside_any_task(world: World) -> None:
    await world.start()
    world.link.observe_as(Activity.WAITING, prompt=PERMISSION)
    await until(lambda: world.manager.directory.view(AGENT).activity is Activity.WAITING)
    await world.manager.terminals.answer(AGENT, "1")
    assert world.link.answers == [("1", "p1")]


async def test_an_answer_to_a_prompt_that_the_task_does_not_have_yet_is_kept_with_that_prompt(world: World) -> None:
    task = await asking(world)
    newer = PERMISSION.model_copy(update={"prompt_id": "p2", "prompt": "Delete it?"})
    world.link.seen = replace(world.link.seen, prompt=newer)
    await world.manager.tasks.provide_input(task.id, "1", "p2")
    kept = await world.store.task(task.id)
    assert [said.text for said in kept.exchange] == ["Delete it?", "1"]


async def test_an_answer_before_a_task_is_not_that_task_s(world: World) -> None:
    await world.start(ready=False)
    world.link.observe_as(Activity.WAITING, prompt=PERMISSION)
    await until(lambda: world.manager.directory.view(AGENT).activity is Activity.WAITING)
    task = await world.send(AGENT)

    async def answer(text: str, prompt_id: str | None) -> bool:
        world.link.ready()
        await world.delivered()
        return False

    world.link.answer = answer
    await world.manager.terminals.answer(AGENT, "1")
    assert (await world.store.task(task.id)).exchange == []
    assert [event.task_id for event in world.store.events.all if isinstance(event.data, InputAnswered)] == [None]
