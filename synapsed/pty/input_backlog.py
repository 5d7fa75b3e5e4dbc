"""Whether the program reads what is typed.

The terminal keeps what is typed until the program reads it. One that is stopped, hangs or is swapped out shows nothing
of it then, and all of it whenever it goes on. So nothing is typed for a message while anything is unread, nor in the
moment in which what was read is not shown yet.
"""

import asyncio
from collections.abc import Callable

from synapsed import aio
from synapsed.errors import NotReady
from synapsed.keepers.client import KeeperClient

ASK_AGAIN_S = 0.25

AHEAD_S = 0.2
"""How old an answer may be that was asked for ahead: as old as a commit takes. What the daemon itself or a person typed
meanwhile is known without asking."""


class Unread:
    """`read` is called when the program has read what it had not."""

    def __init__(self, keeper: Callable[[], KeeperClient], read: Callable[[], None]) -> None:
        self._keeper = keeper
        self._read = read
        self.now = False
        """Something was unread when the keeper was last asked."""
        self.line_mode: bool | None = None
        """Whether the terminal gave the program whole lines then: it has no line editor up. None: unknown."""
        self.echo: bool | None = None
        """Whether it showed what was typed."""
        self.foreground: int | None = None
        """The process group that read the terminal then."""
        self._ahead: tuple[float, asyncio.Task[int]] | None = None

    def ahead(self) -> None:
        """Ask now for who is about to: the answer comes while something else is waited for."""
        asked = aio.at_once(self.amount(), name="asked ahead")
        asked.add_done_callback(lambda done: done.cancelled() or done.exception())  # perhaps nobody waits for it
        self._ahead = asyncio.get_running_loop().time(), asked

    async def asked_ahead(self) -> bool:
        """The same as `ask`, by what was asked `ahead` where that is not too old. Raises KeeperLost."""
        ahead, self._ahead = self._ahead, None
        if ahead is None or asyncio.get_running_loop().time() - ahead[0] > AHEAD_S:
            return await self.ask()
        return await ahead[1] > 0

    async def ask(self) -> bool:
        """Whether anything is unread. Raises KeeperLost."""
        return await self.amount() > 0

    async def amount(self) -> int:
        """Bytes that are unread, also those that the keeper could not write yet. Raises KeeperLost."""
        keeper = await self._keeper().ping()
        before, self.now = self.now, keeper.unread > 0
        self.line_mode, self.echo, self.foreground = keeper.line_mode, keeper.echo, keeper.foreground
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
