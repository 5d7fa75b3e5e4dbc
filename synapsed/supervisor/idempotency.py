"""Messages that may come more than once under a key of their sender's, and are one task all the same.

The key becomes the task's id, so that the task is the record of it: there is no moment in which the one is durable and
the other is not. A key is forgotten with its task.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID, uuid5
from weakref import WeakValueDictionary

from synapsed.interfaces import SendRequest, Store
from synapsed.model.sender import Sender
from synapsed.model.task import Task, new_id

__all__ = ["Idempotency", "task_id_of"]

_KEYS: Final = UUID("5b0c2a52-7d0e-4d57-9d0b-6d6f9c1f3a11")
"""Namespace of the ids that are made of keys."""


def task_id_of(request: SendRequest) -> str:
    """The id of the task that the message becomes: of its own, or that of its sender's key."""
    if request.key is None:
        return new_id()
    sender = Sender.of(request.metadata)
    return str(uuid5(_KEYS, f"{sender.id if sender is not None else ''}\0{request.key}"))


class Idempotency:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._sending: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def once(self, request: SendRequest) -> AsyncGenerator[tuple[str, Task | None]]:
        """The message's task id, and the task where there is one already; else it is to be made within, while others
        with the same key wait."""
        task_id = task_id_of(request)
        if request.key is None:
            yield task_id, None
            return
        lock = self._sending.setdefault(task_id, asyncio.Lock())
        async with lock:
            yield task_id, await self._store.task(task_id)
