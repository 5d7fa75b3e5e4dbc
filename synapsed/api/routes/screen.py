"""`GET …/screen?format=`: what the agent shows now."""

from typing import Literal, get_args

from aiohttp import web

from synapsed.api.body import INPUT_SHOWN, json_response
from synapsed.api.context import CONTEXT, agent_id_of, rights_of
from synapsed.errors import InvalidRequest

__all__ = ["routes"]

type Format = Literal["text", "ansi", "json"]
_FORMATS: tuple[Format, ...] = get_args(Format.__value__)


def routes(prefix: str) -> list[web.RouteDef]:
    return [web.get(f"{prefix}/screen", screen)]


async def screen(request: web.Request) -> web.Response:
    agent_id = agent_id_of(request)
    rights_of(request).require_sight_of(agent_id, "other agents' screens")
    shown = request.app[CONTEXT].control.screen(agent_id, _format(request.query.get("format", "text")))
    if isinstance(shown, dict):
        return json_response(shown)
    body = shown.encode("utf-8", "replace") if isinstance(shown, str) else shown
    return web.Response(body=body, headers={"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store"})


def _format(text: str) -> Format:
    for known in _FORMATS:
        if text == known:
            return known
    offered = ", ".join(_FORMATS)
    raise InvalidRequest(f"format: {text[:INPUT_SHOWN]!r} is not offered; there are {offered}", offered=list(_FORMATS))
