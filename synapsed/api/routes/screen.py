"""`GET …/screen?format=`: what the agent shows now; `…/screen/live`: the same as rows of a page, from now on."""

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, cast

from aiohttp import web
from pydantic import Field

from synapsed.api.context import ApiContext, agent_id_of, rights_of
from synapsed.api.describe import Response, Streamed
from synapsed.api.operation import operation
from synapsed.api.query import Query, one_of
from synapsed.api.websocket import is_upgrade, push
from synapsed.errors import InvalidRequest, NotReady, QueueFull, TooLarge
from synapsed.interfaces import Control
from synapsed.model.picture import Picture, ScreenForm
from synapsed.terminal.html import html
from synapsed.terminal.svg import svg

_Format = Literal["text", "coloured", "ansi", "json", "html", "svg", "png"]


class ScreenQuery(Query):
    format: Annotated[_Format, one_of(_Format)] = Field("text", description="how it is drawn")


POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
"""Of what is drawn as a document: its colours, and nothing else."""


def _png(shown: Picture) -> bytes:
    """Raises NotReady, TooLarge."""
    try:
        from synapsed.api.png import png
    except ImportError:
        why = "a PNG takes Pillow, which is not installed: pip install 'synapsed[pictures]', or take it as SVG"
        raise NotReady(why, extra="pictures") from None
    return png(shown)


_DRAWN: Mapping[str, tuple[str, Callable[[Picture], str | bytes]]] = MappingProxyType(
    {
        "html": ("text/html; charset=utf-8", html),
        "svg": ("image/svg+xml; charset=utf-8", svg),
        "png": ("image/png", _png),
    }
)


def routes(prefix: str) -> list[web.RouteDef]:
    return [web.get(f"{prefix}/screen", screen), web.get(f"{prefix}/screen/live", live)]


def _sees(request: web.Request) -> None:
    rights_of(request).require_sight_of(agent_id_of(request), "other agents' screens")


@operation(
    "What the agent shows now",
    Response(
        "the screen; JSON for `format=json`",
        dict[str, Any],
        media=("text/plain", "application/json", "text/html", "image/svg+xml", "image/png"),
    ),
    allowed=_sees,
    errors=(NotReady, TooLarge),
)
async def screen(request: web.Request, query: ScreenQuery, control: Control) -> web.Response | dict[str, Any]:
    agent_id = agent_id_of(request)
    drawn = _DRAWN.get(query.format)
    shown = await control.terminals.screen(agent_id, "picture" if drawn else cast("ScreenForm", query.format))
    if isinstance(shown, dict):
        return shown
    headers = {"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store"}
    if isinstance(shown, Picture):
        assert drawn is not None
        headers |= {"Content-Type": drawn[0], "Content-Security-Policy": POLICY}
        shown = await asyncio.to_thread(drawn[1], shown)
    body = shown.encode("utf-8", "replace") if isinstance(shown, str) else shown
    return web.Response(body=body, headers=headers)


@operation(
    "What the agent shows, as it changes",
    Streamed(
        "rows of cells, whole at first, then those that changed; ten times a second at most", websocket=True, sse=False
    ),
    allowed=_sees,
    errors=(QueueFull,),
)
async def live(request: web.Request, context: ApiContext) -> web.StreamResponse:
    """Nobody is attached by that, and the program keeps its size."""
    if not is_upgrade(request):
        raise InvalidRequest("this path is a WebSocket: send an upgrade")
    return await push(request, context.live.follow(agent_id_of(request)))
