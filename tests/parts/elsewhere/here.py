"""This side of agents elsewhere, without a daemon around it."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synapsed.clock import SystemClock
from synapsed.errors import NotWaiting
from synapsed.interfaces import SendRequest
from synapsed.model.external import KEY
from synapsed.model.task import Message, Task
from synapsed.parts.elsewhere.addressbook import AddressBook
from synapsed.parts.elsewhere.externals import Externals
from tests.fakes.store import MemoryStore
from tests.support.daemon import PATIENCE_S

__all__ = ["PATIENCE_S", "Here", "on_this_side"]


@dataclass
class Here:
    """This side: the store and the address book outlive `externals`, as they outlive a daemon."""

    store: MemoryStore
    book: AddressBook
    folder: Path
    externals: Externals

    async def restarted(self, *, resume: bool = True) -> None:
        """As after a kill -9: nothing was said goodbye to. Without `resume` its agents are not adopted yet."""
        await self.externals.close()
        self.externals = Externals(store=self.store, book=self.book, clock=SystemClock())
        await self.externals.restore()
        if resume:
            await self.externals.resume()

    async def send(self, text: str, **options: Any) -> Task:
        return await self.externals.send("far", SendRequest(message=Message.of(text), **options))

    async def task(self, task: Task) -> Task:
        found = await self.store.task(task.id)
        assert found is not None
        return found

    async def until(self, task: Task, holds: Callable[[Task], bool]) -> Task:
        """The task once it is so."""
        async with asyncio.timeout(PATIENCE_S):
            while not holds(now := await self.task(task)):
                await asyncio.sleep(0.01)
        return now

    async def over(self, task: Task) -> Task:
        return await self.until(task, lambda now: now.terminal)

    async def answered_by_two(self, task: Task, *words: str) -> str:
        """Answers the task's question with each of `words` at once: either is taken, as each looks for its way to the
        agent in a thread, and the other is refused. Returns the one that was taken."""
        given = await asyncio.gather(
            *(self.externals.answer(task, Message.of(one)) for one in words), return_exceptions=True
        )
        refused = [isinstance(one, NotWaiting) for one in given]
        assert sorted(refused) == [False, True], given
        assert not any(isinstance(one, BaseException) and not isinstance(one, NotWaiting) for one in given), given
        return words[refused.index(False)]

    async def there(self, task: Task) -> str:
        """The task's id over there, once it is known."""
        now = await self.until(task, lambda now: bool(now.metadata.get(KEY, {}).get("task_id")))
        return now.metadata[KEY]["task_id"]


@asynccontextmanager
async def on_this_side(folder: Path) -> AsyncGenerator[Here]:
    """`folder` is the address book's."""
    store, book = MemoryStore(), AddressBook(folder)
    here = Here(store, book, folder, Externals(store=store, book=book, clock=SystemClock()))
    yield here
    await here.externals.close()
