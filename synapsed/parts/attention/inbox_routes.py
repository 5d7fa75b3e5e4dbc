"""`/inbox`: everything that waits for a person, over all agents. A person's."""

from aiohttp import web

from synapsed.api.context import ApiContext, origin_of, to_the_end
from synapsed.api.operation import operation, person
from synapsed.api.query import Flag, Query, flag
from synapsed.api.response_models import PutAway
from synapsed.errors import NotInInbox, NotWaiting
from synapsed.model.attention import AttentionItem, HostSaid, InboxEverywhere


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
    items, hosts = await _elsewhere(context)
    return InboxEverywhere(items=sorted([*context.attention.items(), *items], key=lambda item: item.since), hosts=hosts)


async def _elsewhere(context: ApiContext) -> tuple[list[AttentionItem], list[HostSaid]]:
    """Of hosts that are reached by ssh, and of the fleet's. One that is both is asked over ssh, where more is told and
    a person can answer, unless it says nothing there."""
    by_ssh, told_by_ssh = await context.hosts.inboxes()
    by_fleet, told_by_fleet = await context.fleet.inboxes() if context.fleet is not None else ([], [])
    first = {one.name: one for one in told_by_fleet} | {one.name: one for one in told_by_ssh if one.error is None}
    hosts = {one.name: first.get(one.name, one) for one in [*told_by_fleet, *told_by_ssh]}
    said = {name: one in told_by_ssh for name, one in hosts.items()}
    items = [item for item in by_ssh if said.get(item.host or "")]
    return items + [item for item in by_fleet if not said.get(item.host or "")], list(hosts.values())


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
