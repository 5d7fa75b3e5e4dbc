"""What a program showed last, for those who tell how it ended."""

import asyncio

from synapsed.errors import KeeperLost
from synapsed.interfaces import AgentLink

LAST_SCREEN_S = 5.0
"""How long an exit waits for it: what draws the screens may stand still meanwhile."""


async def last_screen(link: AgentLink, limit: int | None = None) -> str:
    """Returns what the program showed last, at most `limit` characters of it with what scrolled away (None: the screen
    alone); the empty text if nobody tells within `LAST_SCREEN_S`, or the screen is closed."""
    try:
        async with asyncio.timeout(LAST_SCREEN_S):
            return await link.screen_text(limit)
    except (TimeoutError, KeeperLost):
        return ""
