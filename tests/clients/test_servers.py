"""Servers as others run them, as agents elsewhere: the SDK's of A2A 0.3, with its own way of keeping a task."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from synapsed.clock import SystemClock
from synapsed.errors import CardInvalid
from synapsed.interfaces import SendRequest
from synapsed.model.events import TaskArtifactAdded
from synapsed.model.external import KEY
from synapsed.model.task import FileContent, FilePart, Message, Part, Task, TaskState, TextPart
from synapsed.parts.elsewhere.addressbook import AddressBook
from synapsed.parts.elsewhere.externals import Externals
from tests.clients.programs import FRAMEWORKS
from tests.fakes.store import MemoryStore

PATIENCE_S = 60.0
SERVER = Path(__file__).parent / "servers" / "sdk03.py"
SDK = FRAMEWORKS["sdk03"]
MISSING = SDK.missing()

pytestmark = pytest.mark.skipif(MISSING is not None, reason=f"*** A SERVER OF A2A 0.3 NOT TRIED: {MISSING} ***")


@asynccontextmanager
async def serving(*arguments: str) -> AsyncGenerator[str]:
    """The address of a server of 0.3."""
    process = await asyncio.create_subprocess_exec(
        SDK.program("python"),
        str(SERVER),
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={"PATH": os.defpath},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield f"http://127.0.0.1:{int(await process.stdout.readline())}"
            process.stdin.close()
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.fixture
async def far() -> AsyncGenerator[str]:
    async with serving() as url:
        yield url


class Here:
    def __init__(self, folder: Path) -> None:
        self.store = MemoryStore()
        self.externals = Externals(store=self.store, book=AddressBook(folder), clock=SystemClock())

    async def send(self, text: str, *more: Part) -> Task:
        message = Message.of(text)
        message = message.model_copy(update={"parts": [*message.parts, *more]})
        return await self.externals.send("far", SendRequest(message=message))

    async def until(self, task: Task, *states: TaskState) -> Task:
        while (now := await self.externals.task("far", task.id)).status not in states:
            assert not now.terminal, now
            await asyncio.sleep(0.01)
        return now

    def told(self, task: Task) -> list[tuple[str, bool]]:
        """Pieces of the answer, and whether each is appended."""
        added = [event.data for event in self.store.events.all if event.task_id == task.id]
        pieces = [data for data in added if isinstance(data, TaskArtifactAdded) and not data.artifact.is_block]
        return [(data.artifact.text, data.append) for data in pieces]


@pytest.fixture
async def here(far: str, tmp_path: Path) -> AsyncGenerator[Here]:
    found = Here(tmp_path)
    await found.externals.discover(far, "far", headers=None)
    try:
        yield found
    finally:
        await found.externals.close()


def counted(number: int) -> str:
    return "".join(f"piece {n}, " for n in range(number))


async def test_an_answer_in_pieces_is_kept_once(here: Here, tmp_path: Path) -> None:
    """Its own store has every piece twice of a task that somebody else subscribed to besides who sent it."""
    task = await here.send(f"count 20 read {tmp_path}")
    for number in (0, 9):
        while not any(f"piece {number}, " in text for text, _ in here.told(task)):
            await asyncio.sleep(0.01)
        (tmp_path / str(number)).touch()
    task = await here.until(task, TaskState.COMPLETED)
    assert task.answer == counted(20)
    told = here.told(task)
    assert len(told) > 2
    assert "".join(text for text, _ in told) == task.answer
    assert all(append for _, append in told)


async def test_a_stream_that_breaks_loses_and_doubles_nothing(here: Here) -> None:
    task = await here.until(await here.send("count 60 break 3"), TaskState.COMPLETED)
    assert task.answer == counted(60)
    assert "".join(text for text, _ in here.told(task)) == task.answer


async def test_a_question_and_its_answer(here: Here) -> None:
    task = await here.until(await here.send("ask"), TaskState.INPUT_REQUIRED)
    assert task.prompt is not None
    assert task.prompt.prompt == "How many?"
    await here.externals.answer(task, Message.of("count 15"))
    task = await here.until(task, TaskState.COMPLETED)
    assert task.answer == counted(15)
    assert "".join(text for text, _ in here.told(task)) == task.answer


@pytest.mark.night
async def test_an_answer_without_a_task(here: Here) -> None:
    task = await here.until(await here.send("message"), TaskState.COMPLETED)
    assert task.answer == "no task at all"


async def test_the_same_question_twice(here: Here) -> None:
    first = await here.until(await here.send("again"), TaskState.INPUT_REQUIRED)
    assert first.prompt is not None
    await here.externals.answer(first, Message.of("again"), first.prompt.prompt_id)
    second = await here.until(first, TaskState.INPUT_REQUIRED)
    while second.prompt is None or second.prompt.prompt_id == first.prompt.prompt_id:
        await asyncio.sleep(0.01)
        second = await here.externals.task("far", first.id)
    assert second.prompt.prompt == first.prompt.prompt
    await here.externals.answer(second, Message.of("count 2"), second.prompt.prompt_id)
    assert (await here.until(second, TaskState.COMPLETED)).answer == counted(2)


@pytest.mark.night
async def test_it_is_canceled(here: Here) -> None:
    task = await here.until(await here.send("hold"), TaskState.WORKING)
    while "task_id" not in (await here.externals.task("far", task.id)).metadata.get(KEY, {}):
        await asyncio.sleep(0.01)
    canceled = await here.externals.cancel(await here.externals.task("far", task.id))
    assert canceled.status is TaskState.CANCELED


async def test_files_go_there_and_come_back(here: Here) -> None:
    file = FilePart(file=FileContent(name="b.bin", mime_type="application/octet-stream", bytes="AAEC"))
    task = await here.until(await here.send("weigh", file), TaskState.COMPLETED)
    assert task.answer == "b.bin 3"
    task = await here.until(await here.send("files"), TaskState.COMPLETED)
    given = [part for artifact in task.artifacts for part in artifact.parts if not isinstance(part, TextPart)]
    assert [part.type for part in given] == ["file", "data"]
    assert isinstance(given[0], FilePart)
    assert (given[0].file.name, given[0].file.bytes) == ("a.txt", "aGVsbG8=")


@pytest.mark.night
async def test_a_key_in_the_query_and_the_extended_card(tmp_path: Path) -> None:
    found = Here(tmp_path)
    async with serving("s3cret-key") as url:
        try:
            with pytest.raises(CardInvalid, match="--query-env key=VARIABLE"):
                await found.externals.discover(url, "far", headers=None)
            added = await found.externals.discover(url, "far", headers=None, query={"key": "s3cret-key"})
            assert (added.skills, added.extended, added.needs) == (["Count", "Ask"], True, [])
            assert (await found.until(await found.send("count 2"), TaskState.COMPLETED)).answer == counted(2)
        finally:
            await found.externals.close()
