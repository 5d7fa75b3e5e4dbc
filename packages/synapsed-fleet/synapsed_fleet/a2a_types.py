"""A2A's types, which messages between hosts are written in: loaded with the first one that is written or read, beside
the loop. A member that says and hears nothing does without them, and their 6 MB."""

import asyncio
import importlib


class Shapes:
    """After `ready`, `synapsed_fleet.messages` is imported at once."""

    def __init__(self) -> None:
        self._there = False

    async def ready(self) -> None:
        if not self._there:
            await asyncio.to_thread(importlib.import_module, "synapsed_fleet.messages")
            self._there = True
