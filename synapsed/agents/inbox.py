"""The inbox of an agent's actor: facts of its link and calls from outside, worked off one after the other.

Bounded, with a policy for each kind: a call that does not fit is refused with QueueFull; of observations that nobody
has looked at yet only the last counts; progress and pieces of text that do not fit are dropped (the answer holds the
last message whole, what comes before it is a courtesy); every other fact is taken, because a link has at most one turn
and waits for it to be recorded before it goes on, so that there are few.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from synapsed.errors import QueueFull
from synapsed.interfaces import AgentLink
from synapsed.model.link import LinkEvent, LinkObserved, LinkTurnProgress, LinkTurnSaid

__all__ = ["CAPACITY", "Call", "Fact", "Inbox"]

CAPACITY = 256
"""Items at most; one agent's actor takes thousands a second."""


@dataclass(frozen=True, slots=True)
class Fact:
    """What a link told; facts of a link that is no longer the agent's are passed over."""

    link: AgentLink
    event: LinkEvent


@dataclass(frozen=True, slots=True)
class Call:
    """Work to be done in the actor; its outcome goes to `future`."""

    work: Callable[[], Awaitable[Any]]
    future: asyncio.Future[Any]


class Inbox:
    def __init__(self, *, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._items: deque[Fact | Call] = deque()
        self._arrived = asyncio.Event()

    def __len__(self) -> int:
        return len(self._items)

    def put_call(self, call: Call, *, internal: bool = False) -> None:
        """Append a call; raises QueueFull, except for the agent's own calls (`internal`), of which there are few."""
        if not internal and len(self._items) >= self._capacity:
            raise QueueFull("the agent has too much to do; try again later")
        self._append(call)

    def put_fact(self, fact: Fact) -> None:
        if isinstance(fact.event, LinkObserved) and self._replace_last(fact):
            return
        if not isinstance(fact.event, LinkTurnProgress | LinkTurnSaid) or len(self._items) < self._capacity:
            self._append(fact)

    async def get(self) -> Fact | Call:
        while not self._items:
            self._arrived.clear()
            await self._arrived.wait()
        return self._items.popleft()

    def _append(self, item: Fact | Call) -> None:
        self._items.append(item)
        self._arrived.set()

    def _replace_last(self, fact: Fact) -> bool:
        last = self._items[-1] if self._items else None
        if isinstance(last, Fact) and last.link is fact.link and isinstance(last.event, LinkObserved):
            self._items[-1] = fact
            return True
        return False
