"""`…/screen/live`: the present screen as rows of a page, and its changes from now on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from synapsed.api import agent_id_of, is_upgrade, push, rights_of
from synapsed.api.operation import Streamed, operation
from synapsed.errors import InvalidRequest, QueueFull
from synapsed.kernel import Kernel, Running
from synapsed.parts.live_screens.frames import LiveScreens


def _sees(request: web.Request) -> None:
    rights_of(request).require_sight_of(agent_id_of(request), "other agents' screens")


@operation(
    "What the agent shows, as it changes",
    Streamed(
        "rows of cells, whole at first, then those that changed; ten times a second at most", websocket=True, sse=False
    ),
    allowed=_sees,
    errors=(QueueFull,),
)
async def live(request: web.Request, screens: LiveScreens) -> web.StreamResponse:
    """Sends the screen and its changes. It attaches nothing, and the program keeps its size."""
    if not is_upgrade(request):
        raise InvalidRequest("this path is a WebSocket: send an upgrade")
    return await push(request, screens.follow(agent_id_of(request)))


class ShowingScreens(Running):
    def __init__(self, screens: LiveScreens) -> None:
        self.provides = {LiveScreens: screens}


@asynccontextmanager
async def opened(kernel: Kernel) -> AsyncIterator[Running]:
    screens = LiveScreens(kernel.control, kernel.clock)
    try:
        yield ShowingScreens(screens)
    finally:
        await screens.close()
