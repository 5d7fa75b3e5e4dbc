"""Ctrl-Z at a program that nobody could continue.

It suspends some programs until a shell's `fg` sends them SIGCONT. There is no shell here, so they are sent it once they
have read the key. Others pass over it, and the jobs of a shell are not meant: they have groups of their own.
"""

import asyncio
import contextlib
import re
import signal
from collections.abc import Awaitable, Callable
from typing import Any

from synapsed.errors import KeeperLost
from synapsed.keepers.client import KeeperRefused

KEY = re.compile(rb"\x1a|\x1b\[122;5(?::1)?u|\x1b\[27;5;122~")
"""Ctrl-Z, in each way in which terminals write it."""

CONTINUE_AFTER_S = (0.3, 1.0, 3.0)
"""The distances of the signals: how long a program takes to suspend itself is not known."""


class Suspension:
    """`until_read` returns when the program has read what was typed; both may raise KeeperLost, KeeperRefused."""

    def __init__(
        self,
        until_read: Callable[[], Awaitable[None]],
        send_signal: Callable[[int], Awaitable[None]],
        spawn: Callable[[Any], None],
    ) -> None:
        self._until_read = until_read
        self._send_signal = send_signal
        self._spawn = spawn
        self._waiting = False

    def typed(self, data: bytes) -> None:
        """A person has typed that."""
        if KEY.search(data) and not self._waiting:
            self._waiting = True
            self._spawn(self._continue())

    async def _continue(self) -> None:
        with contextlib.suppress(KeeperLost, KeeperRefused):
            try:
                await self._until_read()
            finally:
                self._waiting = False
            for pause in CONTINUE_AFTER_S:
                await asyncio.sleep(pause)
                await self._send_signal(signal.SIGCONT)
