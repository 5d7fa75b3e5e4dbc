"""What a program's screen shows when it has come to rest, or showed last, for those who must not wait for it longer
than they say.
"""

import asyncio
from hashlib import blake2b

from synapsed.errors import KeeperLost
from synapsed.interfaces import AgentLink
from synapsed.model.agent import Activity
from synapsed.model.events import ScreenRested

LAST_SCREEN_S = 3.0
"""How long an exit waits for it: what draws the screens may stand still meanwhile."""

REST_SCREEN_S = 1.0
"""How long an observation waits for it: until then its agent takes nothing else."""


async def last_screen(link: AgentLink, limit: int | None = None) -> str:
    """Returns what the program showed last, at most `limit` characters of it with what scrolled away (None: the screen
    alone); the empty text if nobody tells within `LAST_SCREEN_S`, or the screen is closed."""
    return await _screen_within(link, LAST_SCREEN_S, limit) or ""


async def rest_screen(link: AgentLink) -> str | None:
    """Returns the screen, None if nobody tells it within `REST_SCREEN_S`, or it is closed."""
    return await _screen_within(link, REST_SCREEN_S)


async def _screen_within(link: AgentLink, seconds: float, limit: int | None = None) -> str | None:
    try:
        async with asyncio.timeout(seconds):
            return await link.terminal.screen_text(limit)
    except (TimeoutError, KeeperLost):
        return None


RESTS = frozenset({Activity.READY, Activity.WAITING, Activity.UNKNOWN})
DIGEST_SIZE = 8


class Resting:
    def __init__(self) -> None:
        self._told = ""

    def screen(self, text: str) -> list[ScreenRested]:
        """What is to be told of the screen, now that its program is in one of `RESTS`."""
        digest = blake2b(text.encode("utf-8", "replace"), digest_size=DIGEST_SIZE).hexdigest()
        before, self._told = self._told, digest
        return [ScreenRested(digest=digest)] if digest != before else []
