"""A daemon that is killed at any commit of a task elsewhere: the next one tells what came meanwhile, exactly once."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import pytest

from synapsed.errors import NotWaiting, PromptChanged, RemoteRefused
from synapsed.model.events import AttentionChanged, TaskStatusChanged
from synapsed.model.task import TERMINAL_STATES, Message, Task, TaskState
from synapsed.parts.elsewhere.questions import ElsewhereAsking
from tests.parts.elsewhere.asker import Asker, asker
from tests.parts.elsewhere.here import PATIENCE_S, Here

QUESTIONS = ("Which colour?", "Which colour?", "Which shape?")
COMMITS = 10
"""Commits of a task with these questions, from its first to its last."""


class Deadly:
    """Stops the store before a commit: from then on nothing is kept, as after a kill -9."""

    def __init__(self, here: Here, at: int) -> None:
        self._here, self._commit, self._left = here, here.store.commit, at
        self.dead = asyncio.Event()
        here.store.commit = self._count  # type: ignore[method-assign] # ends with the test

    async def _count(self, **what: object) -> object:
        if self._left == 0:
            self.dead.set()
            await asyncio.Event().wait()
        self._left -= 1
        return await self._commit(**what)  # type: ignore[arg-type] # as it came

    def revive(self) -> None:
        self._here.store.commit = self._commit  # type: ignore[method-assign] # as it was


async def drive(here: Here, task: Task) -> None:
    """Answers whatever it asks, each question once, up to its end."""
    answered: set[str] = set()

    def news(now: Task) -> bool:
        return now.terminal or (now.prompt is not None and now.prompt.prompt_id not in answered)

    while not (now := await here.until(task, news)).terminal:
        assert now.prompt is not None
        answered.add(now.prompt.prompt_id)
        with suppress(NotWaiting, PromptChanged, RemoteRefused):
            await here.externals.answer(now, Message.of("red"), now.prompt.prompt_id)


async def whole(here: Here) -> None:
    await drive(here, await here.send("paint"))


async def tell(here: Here) -> None:
    followed = ElsewhereAsking(here.store)
    await followed.restore()
    await followed.catch_up()


async def killed(here: Here, far: Asker, at: int, meanwhile: Callable[[Asker], None]) -> Task | None:
    """The task at its end, after a kill at this commit; None if the daemon was killed before there was a task."""
    await here.externals.discover(far.agent.url, "far", headers=None)
    await tell(here)
    deadly = Deadly(here, at)
    living, dead = asyncio.create_task(whole(here)), asyncio.create_task(deadly.dead.wait())
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.wait((living, dead), return_when=asyncio.FIRST_COMPLETED)
    for one in (living, dead):
        one.cancel()
    await asyncio.wait((living, dead))
    deadly.revive()
    if at % 2:
        await tell(here)
    meanwhile(far)
    await here.restarted()
    known = list(here.store._tasks.values())
    if known:
        await drive(here, known[0])
    await tell(here)
    return await here.task(known[0]) if known else None


def told_once(here: Here) -> None:
    """Every question was opened once and closed once, and there was one end."""
    events = [event.data for event in here.store.events.all]
    attention = Counter((one.id, one.state == "opened") for one in events if isinstance(one, AttentionChanged))
    assert set(attention.values()) <= {1}
    assert {key for key, opened in attention if opened} == {key for key, opened in attention if not opened}
    assert sum(isinstance(one, TaskStatusChanged) and one.state in TERMINAL_STATES for one in events) == 1


@pytest.mark.parametrize("at", range(COMMITS + 1))
async def test_nothing_happens_meanwhile(here: Here, at: int) -> None:
    async with asker(*QUESTIONS) as far:
        task = await killed(here, far, at, lambda far: None)
    if task is None:
        assert (at, far.said) == (0, [])
        return
    assert task.status is TaskState.COMPLETED
    assert far.said == ["paint", "red", "red", "red"]
    told_once(here)
    opened = [one.data for one in here.store.events.all if isinstance(one.data, AttentionChanged)]
    assert [one.question for one in opened if one.state == "opened"] == list(QUESTIONS)


@pytest.mark.parametrize("at", range(1, COMMITS))
async def test_it_goes_on_meanwhile(here: Here, at: int) -> None:
    """Somebody over there answers: another question is there, or the end."""

    def go_on(far: Asker) -> None:
        for task_id in far.tasks:
            far.next(task_id)

    async with asker(*QUESTIONS) as far:
        task = await killed(here, far, at, go_on)
    assert task is not None
    assert task.status is TaskState.COMPLETED
    assert far.said.count("paint") == 1
    told_once(here)


@pytest.mark.parametrize("at", range(1, COMMITS))
async def test_nobody_knows_it_any_more(here: Here, at: int) -> None:
    async with asker(*QUESTIONS) as far:
        task = await killed(here, far, at, lambda far: far.tasks.clear())
    assert task is not None
    told_once(here)
    if task.status is TaskState.COMPLETED:
        assert at < 3, "its message is not in the list of tasks there: it never arrived"
    else:
        assert task.error is not None
        assert task.error.code == "AGENT_EXITED"
