"""Loading of the A2A modules at the first request, in a thread: their SDK takes longer to import than all other
modules."""

import asyncio
import importlib
from typing import TYPE_CHECKING, Self

from aiohttp import web

from synapsed.api import CONTEXT
from synapsed.interfaces import EventLog, Tasks
from synapsed.parts.a2a.push.sender import PushSender

if TYPE_CHECKING:
    from synapsed.parts.a2a.endpoints import Endpoints


class A2aSdk:
    """Loads the endpoints at their first use."""

    def __init__(
        self, tasks: Tasks, events: EventLog, pushes: PushSender | None = None, *, repeats: bool = True
    ) -> None:
        self._tasks = tasks
        self._events = events
        self._repeats = repeats
        self._pushes = pushes
        self._endpoints: Endpoints | None = None
        self._lock = asyncio.Lock()

    @classmethod
    def of(cls, request: web.Request) -> Self:
        """Returns the daemon's own. Raises NotReady."""
        found: Self = request.app[CONTEXT].parts.provided(cls)
        return found

    async def endpoints(self) -> "Endpoints":
        if self._endpoints is None:
            async with self._lock:
                if self._endpoints is None:
                    module = await asyncio.to_thread(importlib.import_module, "synapsed.parts.a2a.endpoints")
                    self._endpoints = module.Endpoints(self._tasks, self._events, self._pushes, repeats=self._repeats)
        return self._endpoints

    @property
    def pushes(self) -> bool:
        """True if push notifications are offered."""
        return self._pushes is not None
