"""The A2A room is loaded when it is first asked for, in a thread: its SDK takes longer to import than all the rest."""

import asyncio
import importlib
from typing import TYPE_CHECKING

from synapsed.interfaces import Control

if TYPE_CHECKING:
    from synapsed.a2a.jsonrpc import JsonRpc

__all__ = ["A2aSdk"]


class A2aSdk:
    """Gives the JSON-RPC endpoint, once its modules are there."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._rpc: JsonRpc | None = None
        self._lock = asyncio.Lock()

    async def rpc(self) -> "JsonRpc":
        if self._rpc is None:
            async with self._lock:
                if self._rpc is None:
                    module = await asyncio.to_thread(importlib.import_module, "synapsed.a2a.jsonrpc")
                    self._rpc = module.JsonRpc(self._control)
        return self._rpc
