"""What the kernel is asked on behalf of a turn: whether the program has read what was typed, and is at work on it."""

import asyncio
from collections.abc import Callable

from synapsed.model.agent import Activity
from synapsed.pty.foreground import Foreground
from synapsed.pty.linked_terminal import LinkedTerminal
from synapsed.pty.screen_looks import Looks

RESTS_LOOKS = 5
"""A program rests that is found resting so many times in a row."""

REST_AGAIN_S = 0.2


class KernelChecks:
    """All that ask may raise KeeperLost."""

    def __init__(self, terminal: LinkedTerminal, looks: Looks) -> None:
        self._clock = terminal.clock
        self._session = terminal.session
        self._looks = looks
        self._unread = looks.unread
        self._foreground = Foreground()

    @property
    def asks_again(self) -> bool:
        """Whether the kernel's last word may not be true any more."""
        return self._unread.now or self._session.half_typed or self._session.given_back is not None

    async def ask_again(self) -> None:
        """Ask the kernel where that is so. Raises KeeperLost."""
        if self._unread.now or self._session.half_typed:
            await self._unread.ask()
            if self._session.half_typed:
                self._session.asked_processor(await self._computes(), self._clock.monotonic())
        elif self._session.given_back is not None:
            await self.works()

    async def works(self) -> bool:
        """Whether the terminal is another's, or its line editor gone, since the message was typed: then the program
        works, and what looks like its prompt was printed. So it does while lines of the message are unread. Raises
        KeeperLost."""
        unread = await (self._looks.facts.ask() if self._looks.learns else self._unread.ask())
        self._session.asked_kernel(line_mode=self._unread.line_mode, reader=self._unread.foreground)
        self._looks.soon()
        return unread or (await self._looks.look()).verdict.activity is not Activity.READY

    async def rests_with_keys_read(self) -> bool:
        """Whether the program has nothing to do, with all that was typed read: one that gets little of a busy machine's
        time reads a key long before it acts on it, and would act on two at once. Raises KeeperLost."""
        if await self._unread.ask():
            return False
        return not await self._computes()

    async def comes_to_rest(self, within: float, *, unless: Callable[[], bool]) -> bool:
        """Whether the program comes to rest within so many seconds, and stays so while it is asked RESTS_LOOKS times
        (a single look may find it between two parts of its work); False too when something else is so meanwhile.
        Raises KeeperLost."""
        until, rests = self._clock.monotonic() + within, 0
        while not unless():
            rests = rests + 1 if await self.rests_with_keys_read() else 0
            if rests == RESTS_LOOKS or self._clock.monotonic() >= until:
                return rests == RESTS_LOOKS
            await asyncio.sleep(REST_AGAIN_S)
        return False

    async def _computes(self) -> bool:
        """As of `unread`, which was asked just now."""
        group = self._unread.foreground
        return group is not None and await asyncio.to_thread(self._foreground.computes, group)
