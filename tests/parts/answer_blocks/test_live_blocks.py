"""Blocks of an answer that is still being said: told when they are whole, once, and the same as at the end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.model.events import TaskArtifactAdded
from synapsed.model.link import LinkTurnProgress, LinkTurnSaid
from synapsed.model.task import Artifact, Task, TaskState
from synapsed.parts.answer_blocks import reading
from synapsed.parts.answer_blocks.reading import AnswerBlocks
from synapsed.profiles.profile import Parsers
from synapsed.tasks import transitions
from tests.agents.test_agent_process import restarted
from tests.fakes.clock import until
from tests.store.samples import a_task
from tests.support.world import World

AGENT = "synapse-fake-8190"

BEGINNING = "Look:\n\n```python\nprint(1)\n```\n"
PYTHON = {"language": "python", "mimeType": "text/x-python"}


def told(world: World) -> list[tuple[str, str, bool]]:
    """What was told of blocks: id, text, and whether there still is one."""
    every = world.told(TaskArtifactAdded)
    assert all(not data.append and data.last_chunk for data in every if data.artifact.is_block)
    return [
        (data.artifact.artifact_id, data.artifact.text, bool(data.artifact.parts))
        for data in every
        if data.artifact.is_block
    ]


async def begun(world: World) -> Task:
    await world.start()
    task = await world.send(AGENT, "what?")
    await world.delivered()
    world.link.submit()
    return task


async def kept(world: World, task: Task) -> list[tuple[str, str]]:
    found = await world.manager.tasks.find(task.id)
    return [(a.artifact_id, a.text) for a in found.artifacts if a.is_block]


async def test_code_is_an_artifact_when_its_fence_closes(world: World) -> None:
    task = await begun(world)
    for number, piece in enumerate(("Look:\n\n``", "`python\nprint", "(1)\n```")):
        world.link.emit(LinkTurnSaid(task.id, piece, append=True))
        await until(lambda number=number: len(world.told(TaskArtifactAdded)) == number + 1)
    assert told(world) == []  # the fence may become longer
    world.link.emit(LinkTurnSaid(task.id, "\nAnd ", append=True))
    await until(lambda: told(world))
    assert told(world) == [("answer.1", "Look:", True), ("answer.2", "print(1)", True)]
    assert await kept(world, task) == [("answer.1", "Look:"), ("answer.2", "print(1)")]
    code = world.told(TaskArtifactAdded, lambda data: data.artifact)[-2]
    assert (code.type, code.metadata) == ("code", PYTHON)
    assert (await world.manager.tasks.find(task.id)).status is TaskState.WORKING
    world.link.end(BEGINNING + "And more.")
    done = await world.task_is(task.id, TaskState.COMPLETED)
    assert [(a.artifact_id, a.text) for a in done.artifacts] == [
        ("answer", BEGINNING + "And more."),
        ("answer.1", "Look:"),
        ("answer.2", "print(1)"),
        ("answer.3", "And more."),
    ]
    assert told(world)[2:] == [("answer.3", "And more.", True)]


async def test_where_the_end_is_another_text_its_blocks_take_the_place_of_those_told(world: World) -> None:
    task = await begun(world)
    world.link.emit(LinkTurnSaid(task.id, BEGINNING, append=True))
    await until(lambda: told(world))
    world.link.end("Look:\n\n```python\nprint(2)\n```")
    await world.task_is(task.id, TaskState.COMPLETED)
    assert told(world)[2:] == [("answer.2", "print(2)", True)]


@pytest.mark.parametrize("answer", ["Only words.", ""])
async def test_blocks_that_the_answer_has_not_are_taken_back(world: World, answer: str) -> None:
    task = await begun(world)
    world.link.emit(LinkTurnSaid(task.id, BEGINNING, append=True))
    await until(lambda: told(world))
    world.link.end(answer)
    done = await world.task_is(task.id, TaskState.COMPLETED)
    assert [a.artifact_id for a in done.artifacts] == ["answer"]
    assert told(world)[2:] == [("answer.1", "", False), ("answer.2", "", False)]


async def test_the_blocks_of_an_earlier_message_are_not_the_answer_s(world: World) -> None:
    task = await begun(world)
    world.link.emit(LinkTurnSaid(task.id, BEGINNING, append=True))
    await until(lambda: told(world))
    world.link.emit(LinkTurnProgress(task.id, "m1", BEGINNING))
    world.link.emit(LinkTurnSaid(task.id, "Now ", append=False))
    await until(lambda: len(told(world)) == 4)
    assert told(world)[2:] == [("answer.1", "", False), ("answer.2", "", False)]
    assert await kept(world, task) == []
    world.link.end("Now it works.")
    done = await world.task_is(task.id, TaskState.COMPLETED)
    assert [(a.name, a.text) for a in done.artifacts] == [("progress", BEGINNING), ("output", "Now it works.")]


async def test_a_restarted_daemon_tells_none_twice(world: World) -> None:
    """It is killed; to the next one the channels tell all of the message again."""
    task = await begun(world)
    await until(lambda: world.link.records)
    world.link.emit(LinkTurnSaid(task.id, BEGINNING, append=True))
    await until(lambda: told(world))
    await restarted(world)
    await world.delivered()
    world.link.emit(LinkTurnSaid(task.id, BEGINNING + "```sh\nls\n```\n", append=False))
    await until(lambda: len(told(world)) > 2)
    assert told(world)[2:] == [("answer.3", "ls", True)]
    world.link.end(BEGINNING + "```sh\nls\n```\nDone.")
    done = await world.task_is(task.id, TaskState.COMPLETED)
    assert told(world)[3:] == [("answer.4", "Done.", True)]
    assert [a.artifact_id for a in done.artifacts] == ["answer", *(f"answer.{number}" for number in range(1, 5))]


async def test_an_answer_that_is_stopped_keeps_its_whole_blocks(world: World) -> None:
    task = await begun(world)
    world.link.emit(LinkTurnSaid(task.id, BEGINNING, append=True))
    await until(lambda: told(world))
    await world.manager.tasks.cancel(task.id)
    done = await world.task_is(task.id, TaskState.CANCELED)
    assert [a.text for a in done.artifacts] == ["Look:", "print(1)"]


# --- laws ------------------------------------------------------------------------------------------------------------

LINES = st.sampled_from(
    ["", "words", "```", "~~~~", "````", "```py", "~~~ `x`", "- ```sh", "  ```", "  x", "> ```", "Created: a.py", "{}"]
)
ENDS = st.sampled_from(["\n", "\r\n"])
ANSWERS = st.lists(st.tuples(LINES, ENDS), max_size=20).map(lambda lines: "".join(a + b for a, b in lines))


@given(ANSWERS, st.lists(st.integers(0, 200), max_size=12), st.integers(0, 60), st.integers(0, 20))
async def test_what_was_told_early_stays_as_it_is(answer: str, cuts: list[int], other: int, left: int) -> None:
    """However it comes, after another message or after a restart (`left` pieces are then not seen)."""
    task = a_task(1)
    blocks, seen = AnswerBlocks(Parsers()), {}
    await blocks.read(answer[other:], whole=False)
    for number, cut in enumerate(sorted(cuts)):
        if number == left:
            blocks = AnswerBlocks(Parsers())
        commit = transitions.in_blocks(task, blocks=await blocks.read(answer[:cut], whole=False), now=1.0)
        if commit is None:
            continue
        task = commit.task
        for event in commit.events:
            assert isinstance(event.data, TaskArtifactAdded)
            artifact = event.data.artifact
            assert artifact.artifact_id not in seen
            seen[artifact.artifact_id] = artifact
    commit = transitions.completed(
        task, answer=answer, exact=True, now=2.0, blocks=await blocks.read(answer, whole=True)
    )
    for event in commit.events:
        if isinstance(event.data, TaskArtifactAdded) and event.data.artifact.is_block:
            assert event.data.artifact.artifact_id not in seen
            seen[event.data.artifact.artifact_id] = event.data.artifact
    assert list(seen.values()) == [a for a in commit.task.artifacts if a.is_block]
    assert [a for a in commit.task.artifacts if a.is_block] == list(
        await AnswerBlocks(Parsers()).read(answer, whole=True)
    )


async def test_of_a_long_answer_the_first_blocks_count() -> None:
    code = "```\nx\n```\n"
    answer = code + "y" * reading.PARSED_MAX
    blocks = AnswerBlocks(Parsers())
    early = list(await blocks.read(answer[:100], whole=False))
    assert [block.text for block in early] == ["x"]
    assert list(await blocks.read(answer, whole=True)) == early


async def test_nothing_is_read_where_nothing_is_wanted() -> None:
    off = Parsers(code=False, data=False, files=False, errors=False)
    blocks = AnswerBlocks(off)
    assert (await blocks.read(BEGINNING, whole=False), await blocks.read(BEGINNING, whole=True)) == ((), ())


def test_blocks_are_told_in_their_order() -> None:
    made = [Artifact.block(number, parts=[]) for number in range(1, 13)]
    commit = transitions.in_blocks(a_task(1), blocks=made, now=1.0)
    assert commit is not None
    assert [getattr(event.data, "artifact", None) for event in commit.events] == made
    assert transitions.in_blocks(commit.task, blocks=made, now=2.0) is None


FENCED = "Look:\n```python\nprint(1)\n```\nCreated: a.py"


async def test_an_answer_is_kept_whole_and_its_blocks_follow(world: World) -> None:
    await world.start()
    task = await world.send(AGENT, "what?")
    await world.delivered()
    world.link.submit()
    world.link.end(FENCED)
    done = await world.task_is(task.id, TaskState.COMPLETED)
    assert done.answer == FENCED
    assert [(a.artifact_id, a.type, a.name, a.text, a.metadata) for a in done.artifacts] == [
        ("answer", "text", "output", FENCED, None),
        ("answer.1", "text", "output", "Look:", None),
        ("answer.2", "code", "code", "print(1)", {"language": "python", "mimeType": "text/x-python"}),
        ("answer.3", "text", "output", "Created: a.py", None),
        ("answer.4", "file", "a.py", "File reference: a.py", {"path": "a.py"}),
    ]
    told = world.told(TaskArtifactAdded)
    assert [data.artifact for data in told] == done.artifacts
    assert all(not data.append and data.last_chunk for data in told)


@pytest.mark.parametrize("answer", ["only text\n\nin two paragraphs", "", "```\n" + "x" * 300_000 + "\n```"])
async def test_where_there_is_only_text_there_are_no_blocks(world: World, answer: str) -> None:
    await world.start()
    task = await world.send(AGENT, "what?")
    await world.delivered()
    world.link.submit()
    world.link.end(answer)
    done = await world.task_is(task.id, TaskState.COMPLETED)
    assert [(a.artifact_id, a.text) for a in done.artifacts] == [("answer", answer)]


async def test_a_long_answer_has_so_many_blocks_and_no_more(world: World) -> None:
    await world.start()
    task = await world.send(AGENT, "what?")
    await world.delivered()
    world.link.submit()
    world.link.end('{"a": 1}\n' * 5000)
    done = await world.task_is(task.id, TaskState.COMPLETED)
    assert [a.artifact_id for a in done.artifacts] == ["answer", *(f"answer.{n}" for n in range(1, 201))]


async def test_an_answer_is_its_text_where_the_reader_has_a_fault(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def breaks(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    task = await begun(world)
    monkeypatch.setattr(AnswerBlocks, "read", breaks)
    world.link.end(BEGINNING)
    done = await world.task_is(task.id, TaskState.COMPLETED)
    assert [a.text for a in done.artifacts] == [BEGINNING]
    monkeypatch.undo()
    await world.send(AGENT, "again")
    await world.delivered(2)
    world.link.submit()
    world.link.end(BEGINNING)
    await until(lambda: told(world))
