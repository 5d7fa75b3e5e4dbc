"""Reads the screen of a program that has come to rest or has ended, with a limit on the wait."""

import asyncio
from hashlib import blake2b

from synapsed.errors import KeeperLost
from synapsed.interfaces import AgentLink
from synapsed.model.agent import Activity
from synapsed.model.events import ScreenRested

LAST_SCREEN_S = 3.0
"""Seconds that an exit waits for the last screen: the process that draws screens may stand still meanwhile."""

REST_SCREEN_S = 1.0
"""Seconds that an observation waits for the screen: meanwhile the agent's actor does nothing else."""


async def last_screen(link: AgentLink, limit: int | None = None) -> str:
    """Returns the last screen, at most `limit` characters of it with the text that scrolled away (None: the screen
    alone); the empty text if it is not available within `LAST_SCREEN_S`, or its keeper is lost."""
    return await _screen_within(link, LAST_SCREEN_S, limit) or ""


async def rest_screen(link: AgentLink) -> str | None:
    """Returns the screen; None if it is not available within `REST_SCREEN_S`, or its keeper is lost."""
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
    """Reports the screen of a program at rest, if it differs from the one reported before."""

    def __init__(self) -> None:
        self._told = ""

    def screen(self, text: str) -> list[ScreenRested]:
        """Returns the events for the screen of a program that is now in one of `RESTS`."""
        digest = blake2b(text.encode("utf-8", "replace"), digest_size=DIGEST_SIZE).hexdigest()
        before, self._told = self._told, digest
        return [ScreenRested(digest=digest)] if digest != before else []
