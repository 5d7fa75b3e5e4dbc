"""`/inbox`: everything that waits for a person, over all agents. A person's."""

from aiohttp import web

from synapsed.api.answers import PutAway
from synapsed.api.context import ApiContext, origin_of, to_the_end
from synapsed.api.operation import operation, person
from synapsed.api.query import Flag, Query, flag
from synapsed.errors import NotInInbox, NotWaiting
from synapsed.model.attention import AttentionItem, InboxEverywhere


class InboxQuery(Query):
    hosts: Flag = flag("what waits on other hosts too, and what each of them said: an object")


def routes() -> list[web.RouteDef]:
    return [web.get("/inbox", inbox), web.post("/inbox/{item}/seen", seen)]


@operation("What waits for a person", "the oldest first", allowed=person("read what waits for a person"))
async def inbox(request: web.Request, query: InboxQuery, context: ApiContext) -> list[AttentionItem] | InboxEverywhere:
    """Over all agents; with `hosts` those of other hosts too, as `name@host`. `attention` events say when to look
    again at what waits here."""
    if not query.hosts:
        return context.attention.items()
    elsewhere, hosts = await context.hosts.inboxes()
    items = sorted([*context.attention.items(), *elsewhere], key=lambda item: item.since)
    return InboxEverywhere(items=items, hosts=hosts)


@operation(
    "Put away what asks nothing",
    "it is",
    allowed=person("put away what waits for a person"),
    errors=(NotInInbox, NotWaiting),
)
async def seen(request: web.Request, context: ApiContext) -> PutAway:
    """A limit, a failure, a crash loop, a finished task, an alert: a person knows of it."""
    item = request.match_info["item"]
    await to_the_end(context.attention.put_away(item, origin_of(request)))
    return PutAway(status="seen", id=item)
