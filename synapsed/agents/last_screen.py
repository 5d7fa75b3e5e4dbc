"""What a program shows, or showed last, for those who must not wait for it longer than they say."""

import asyncio

from synapsed.errors import KeeperLost
from synapsed.interfaces import AgentLink

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
