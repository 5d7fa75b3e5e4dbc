"""Makes one task of a message that may come more than once with the same key of its sender.

The task's id is made from the key, so that the task itself is the record of the key: both become durable at the same
moment, and a key is forgotten with its task. A key stands for one agent and one text: another agent or text under the
same key is refused. If a sender gives its message an id but no key, the key is made of the sender, the agent, the
context, the id and the text. So a client that numbers its messages from 1 at each start gets a new task for each new
text. Keys of a removed agent do not count for a later agent with the same id.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID, uuid5
from weakref import WeakValueDictionary

from synapsed.documents.writing import Texts, has_large, sliced
from synapsed.errors import InvalidRequest
from synapsed.interfaces import SendRequest, Store
from synapsed.model.sender import Sender
from synapsed.model.task import Message, Task, new_id

_KEYS: Final = UUID("5b0c2a52-7d0e-4d57-9d0b-6d6f9c1f3a11")
"""Namespace of the ids that are made of keys."""


_MESSAGES: Final = UUID("0f6b7f3e-58a1-4c8b-9f0d-2d7f3f0b6c45")
"""Namespace of the ids that are made of messages."""


def task_id_of(
    request: SendRequest, to: str, said: str | None = None, *, born: Callable[[str], int] = lambda _: 0
) -> str:
    """Returns the id of the task that the message becomes: a new one, one from its sender's key, or one from the
    message's id. `said` is the digest of the message; it is computed if it is not given. `born` is `EventLog.born`."""

    def known_as(agent_id: str) -> str:
        return f"{agent_id}\0{since}" if (since := born(agent_id)) else agent_id

    sender = Sender.of(request.metadata)
    whose = known_as(sender.id) if sender is not None else ""
    if request.key is not None:
        return str(uuid5(_KEYS, f"{whose}\0{request.key}"))
    if not request.named:
        return new_id()
    said = said or hashlib.sha256(request.message.model_dump_json(include={"parts"}).encode()).hexdigest()
    named = (whose, known_as(to), request.context_id or "", request.message.message_id, said)
    return str(uuid5(_MESSAGES, "\0".join(named)))


async def _said(message: Message) -> str | None:
    """Returns the digest of a large message, made piece by piece so that the loop goes on; None for a small one."""
    if not has_large(message):
        return None
    said = hashlib.sha256()
    for piece in sliced(Texts().encode(message.model_dump(mode="json", include={"parts"}))):
        said.update(piece)
        await asyncio.sleep(0)
    return said.hexdigest()


class Idempotency:
    """Finds the tasks of messages that came before."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sending: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def sent(self, request: SendRequest, addresses: Collection[str]) -> Task | None:
        """Returns the task that the message with this key became, if it was for one of the agents `addresses` (ids);
        else None. Raises InvalidRequest if the key stands for another message to that agent."""
        if request.key is None:
            return None
        known = await self._store.task(task_id_of(request, "", "", born=self._store.events.born))
        if known is None or known.agent_id not in addresses:
            return None
        if (refusal := _refusal(known, request, known.agent_id)) is not None:
            raise refusal
        return known

    @asynccontextmanager
    async def once(self, request: SendRequest, to: str) -> AsyncGenerator[tuple[str, Task | None]]:
        """Yields the task id of the message for the agent `to`, and its task if there is one already; else the caller
        makes the task within the block, while others with the same key wait. Raises InvalidRequest if the key stands
        for another message."""
        said = await _said(request.message) if request.named and request.key is None else None
        task_id = task_id_of(request, to, said, born=self._store.events.born)
        if request.key is None and not request.named:
            yield task_id, None
            return
        lock = self._sending.setdefault(task_id, asyncio.Lock())
        async with lock:
            known = await self._store.task(task_id)
            if known is not None and request.key is not None:
                refusal = _refusal(known, request, to)
                del known  # it may be large: neither the next read nor the error should keep it
                if refusal is None and await self._store.is_former(task_id, to):
                    refusal = _stands_for(task_id, f"another agent, the {to} that was removed", to)
                if refusal is not None:
                    raise refusal
                known = await self._store.task(task_id)
            yield task_id, known


def _refusal(known: Task, request: SendRequest, to: str) -> InvalidRequest | None:
    """Returns the reason to refuse the key, if its caller would otherwise get the answer to another message."""
    if known.agent_id != to:
        return _stands_for(known.id, f"another agent, {known.agent_id}", known.agent_id)
    if known.message.parts != request.message.parts:
        return _stands_for(known.id, "another message", to)
    return None


def _stands_for(task_id: str, differs: str, agent_id: str) -> InvalidRequest:
    return InvalidRequest(
        f"Idempotency-Key: it stands for task {task_id}, which has {differs}: nothing was sent; take another key",
        field="Idempotency-Key",
        task=task_id,
        agent=agent_id,
    )
