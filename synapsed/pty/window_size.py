"""The size of a program's window: that of the terminal that is attached; and of a program whose answers are read off
its screen, while nobody looks, one that is tall enough for them.

A full-screen program keeps nothing of what leaves its screen: an answer that is longer than the window is read without
its beginning. So while no terminal is attached, its window has the profile's `answer.rows`. Who attaches gets a window
of the own size, and it becomes tall again when the last one has left.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import structlog

from synapsed.errors import KeeperLost
from synapsed.keepers.client import KeeperClient, KeeperRefused
from synapsed.profiles import Profile
from synapsed.terminal.defaced import is_as_drawn, is_defaced
from synapsed.terminal.look import Look

NUDGE_S = 0.2
"""How long a window keeps the other size: two at once would be one that changed nothing."""

NUDGE_EVERY_S = 30.0
"""A program that does not redraw its screen is not asked over and over."""

SETTLED_S = 10.0
"""What is on the screen so long after it was asked is what it draws: a page that a person opened, or a dialog that is
not understood. It is asked again only when that changes."""

log = structlog.get_logger(__name__)


class Window:
    """`attached` is how many terminals are; `resized` is called when the window has another size; `told`: a channel of
    the program's tells its answers."""

    def __init__(
        self,
        agent_id: str,
        profile: Profile,
        *,
        resized: Callable[[int, int], None],
        keeper: Callable[[], KeeperClient],
        attached: Callable[[], int],
        told: bool,
    ) -> None:
        self._agent_id = agent_id
        self._profile = profile
        self._resized = resized
        self.size = (0, 0)
        """Columns and rows."""
        self._keeper = keeper
        self._attached = attached
        self._rows = profile.answer.rows if profile.answer.mode == "blocks" and not told else 0
        self._resizing = asyncio.Lock()
        self._nudged_at = 0.0

    async def resize(self, cols: int, rows: int) -> None:
        async with self._resizing:
            await self._resize(cols, rows)

    async def join(self, cols: int, rows: int) -> None:
        """Somebody who only looks comes: a tall window becomes theirs, where nobody else has one."""
        if 0 < self._rows <= self.size[1]:
            await self.resize(cols, rows)

    def wants_rows(self, look: Look) -> bool:
        """Whether the window is to become tall."""
        shown = look.screen
        return shown.alternate and shown.rows < self._rows and not self._attached() and not self._resizing.locked()

    async def stretch(self) -> None:
        """Make it tall, unless somebody has come."""
        async with self._resizing:
            cols, rows = self.size
            if self._attached() or rows >= self._rows:
                return
            with contextlib.suppress(KeeperLost, KeeperRefused):
                await self._resize(cols, self._rows)

    async def redraw_if_defaced(
        self, last: Look | None, look: Callable[[], Awaitable[Look]], now: float, *, hurry: bool
    ) -> None:
        """Let the program redraw its screen: the window gets another size, then its own again."""
        drawn = last is not None and is_as_drawn(last)
        if now - self._nudged_at < NUDGE_EVERY_S or (drawn and not hurry):
            return
        seen = await look()
        if seen.changed_at > self._nudged_at + SETTLED_S and is_defaced(self._profile, seen, now, hurry=hurry):
            await self.redraw(now)

    async def redraw(self, now: float) -> None:
        """Let the program redraw its screen, whatever it is at."""
        self._nudged_at = now
        async with self._resizing:
            cols, rows = self.size
            log.info("the program is asked to redraw its screen", agent_id=self._agent_id)
            with contextlib.suppress(KeeperLost, KeeperRefused):
                for wide in (cols - 1, cols):
                    await self._resize(wide, rows)
                    await asyncio.sleep(NUDGE_S)

    async def _resize(self, cols: int, rows: int) -> None:
        await self._keeper().resize(cols, rows)
        self.size = (cols, rows)
        self._resized(cols, rows)
