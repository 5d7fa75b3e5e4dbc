"""Loads A2A's types, in which messages between hosts are written. They are imported in a thread when the first message
is written or read: a member that sends and receives nothing saves their 6 MB."""

import asyncio
import importlib


class Shapes:
    """Loader of `synapsed_fleet.messages`: after `ready`, its import is immediate."""

    def __init__(self) -> None:
        self._there = False

    async def ready(self) -> None:
        if not self._there:
            await asyncio.to_thread(importlib.import_module, "synapsed_fleet.messages")
            self._there = True
