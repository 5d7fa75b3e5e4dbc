"""`/inbox`: everything that waits for a person, over all agents. A person's."""

from aiohttp import web
from pydantic import TypeAdapter

from synapsed.api.answers import PutAway
from synapsed.api.body import json_response, model_response
from synapsed.api.context import CONTEXT, rights_of, to_the_end
from synapsed.api.describe import Response, describe
from synapsed.api.origin import origin_of
from synapsed.errors import NotInInbox, NotWaiting
from synapsed.model.attention import AttentionItem

_ITEMS = TypeAdapter(list[AttentionItem])


def routes() -> list[web.RouteDef]:
    return [web.get("/inbox", inbox), web.post("/inbox/{item}/seen", seen)]


@describe("What waits for a person", Response("the oldest first", list[AttentionItem]))
async def inbox(request: web.Request) -> web.Response:
    """Over all agents. `attention` events say when to look again."""
    rights_of(request).require_person("read what waits for a person")
    return model_response(_ITEMS, request.app[CONTEXT].attention.items())


@describe("Put away what asks nothing", Response("it is", PutAway), errors=(NotInInbox, NotWaiting))
async def seen(request: web.Request) -> web.Response:
    """A limit, a failure, a crash loop, a finished task, an alert: a person knows of it."""
    rights_of(request).require_person("put away what waits for a person")
    item = request.match_info["item"]
    await to_the_end(request.app[CONTEXT].attention.put_away(item, origin_of(request)))
    return json_response({"status": "seen", "id": item})
