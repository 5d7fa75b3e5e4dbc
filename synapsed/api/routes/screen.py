"""`GET …/screen?format=`: the present screen."""

import asyncio
from typing import Annotated, Any, Final, Literal, cast, get_args

from aiohttp import web
from pydantic import Field

from synapsed.api.context import ApiContext, agent_id_of, rights_of
from synapsed.api.describe import Response
from synapsed.api.operation import operation
from synapsed.api.query import Query, one_of
from synapsed.errors import NotReady, TooLarge
from synapsed.interfaces.provided import DrawnForm, ScreenDrawing
from synapsed.model.picture import Picture, ScreenForm

_Format = Literal["text", "coloured", "ansi", "json", "html", "svg", "png"]
_NOT_DRAWN: Final = "format={} is drawn by a part that is not there: take text, coloured, ansi or json"


class ScreenQuery(Query):
    format: Annotated[_Format, one_of(_Format)] = Field("text", description="how it is drawn")


POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
"""Policy for a screen that is drawn as a document: its colours, and nothing else."""


def routes(prefix: str) -> list[web.RouteDef]:
    return [web.get(f"{prefix}/screen", screen)]


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
async def screen(request: web.Request, query: ScreenQuery, context: ApiContext) -> web.Response | dict[str, Any]:
    agent_id = agent_id_of(request)
    if query.format in get_args(DrawnForm.__value__):
        return await _drawn(context, agent_id, cast("DrawnForm", query.format))
    shown = await context.control.terminals.screen(agent_id, cast("ScreenForm", query.format))
    if isinstance(shown, dict):
        return shown
    headers = {"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store"}
    return web.Response(body=_encoded(shown), headers=headers)


async def _drawn(context: ApiContext, agent_id: str, form: DrawnForm) -> web.Response:
    drawing: ScreenDrawing = context.parts.provided(ScreenDrawing, _NOT_DRAWN.format(form))
    shown = await context.control.terminals.screen(agent_id, "picture")
    assert isinstance(shown, Picture)
    media, body = await asyncio.to_thread(drawing.draw, shown, form)
    headers = {"Content-Type": media, "Cache-Control": "no-store", "Content-Security-Policy": POLICY}
    return web.Response(body=_encoded(body), headers=headers)


def _encoded(document: Any) -> Any:
    return document.encode("utf-8", "replace") if isinstance(document, str) else document
