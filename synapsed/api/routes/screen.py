"""`GET …/screen?format=`: what the agent shows now."""

from typing import Any, Literal, cast

from aiohttp import web

from synapsed.api.body import json_response
from synapsed.api.context import CONTEXT, agent_id_of, rights_of
from synapsed.api.describe import Answer, describe
from synapsed.api.query import Choice
from synapsed.errors import NotReady

__all__ = ["routes"]

type Format = Literal["text", "ansi", "json"]
FORMAT = Choice("format", "how it is drawn", ("text", "ansi", "json"))


def routes(prefix: str) -> list[web.RouteDef]:
    return [web.get(f"{prefix}/screen", screen)]


@describe(
    "What the agent shows now",
    Answer("the screen; JSON for `format=json`", dict[str, Any], media=("text/plain", "application/json")),
    query=(FORMAT,),
    errors=(NotReady,),
)
async def screen(request: web.Request) -> web.Response:
    agent_id = agent_id_of(request)
    rights_of(request).require_sight_of(agent_id, "other agents' screens")
    shown = await request.app[CONTEXT].control.screen(agent_id, cast("Format", FORMAT.of(request)))
    if isinstance(shown, dict):
        return json_response(shown)
    body = shown.encode("utf-8", "replace") if isinstance(shown, str) else shown
    return web.Response(body=body, headers={"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store"})
