"""Whether the program reads what is typed.

The terminal keeps what is typed until the program reads it. One that is stopped, hangs or is swapped out shows nothing
of it then, and all of it whenever it goes on. So nothing is typed for a message while anything is unread, nor in the
moment in which what was read is not shown yet.
"""

import asyncio
from collections.abc import Callable

from synapsed.errors import NotReady
from synapsed.supervisor.keeper_client import KeeperClient

__all__ = ["Unread"]

ASK_AGAIN_S = 0.25


class Unread:
    """`read` is called when the program has read what it had not."""

    def __init__(self, keeper: Callable[[], KeeperClient], read: Callable[[], None]) -> None:
        self._keeper = keeper
        self._read = read
        self.now = False
        """Something was unread when the keeper was last asked."""
        self.line_mode: bool | None = None
        """Whether the terminal gave the program whole lines then: it has no line editor up. None: unknown."""
        self.foreground: int | None = None
        """The process group that read the terminal then."""

    async def ask(self) -> bool:
        """Whether anything is unread. Raises KeeperLost."""
        return await self.amount() > 0

    async def amount(self) -> int:
        """Bytes that are unread, also those that the keeper could not write yet. Raises KeeperLost."""
        keeper = await self._keeper().ping()
        before, self.now = self.now, keeper.unread > 0
        self.line_mode, self.foreground = keeper.line_mode, keeper.foreground
        if before and not self.now:
            self._read()
        return keeper.unread

    async def until_read(self) -> None:
        """Raises KeeperLost."""
        while await self.ask():  # noqa: ASYNC110 - the kernel tells nobody: it is asked
            await asyncio.sleep(ASK_AGAIN_S)

    async def read_within(self, seconds: float) -> None:
        """Raises NotReady where it is not, KeeperLost."""
        try:
            await asyncio.wait_for(self.until_read(), seconds)
        except TimeoutError:
            raise NotReady("the program does not read what is typed now: try again when it goes on") from None
