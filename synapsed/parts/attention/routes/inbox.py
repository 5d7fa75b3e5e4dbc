"""`/inbox`: everything that waits for a person, over all agents. Only for persons."""

from collections.abc import Sequence

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from synapsed.api import ApiContext, Flag, Query, flag, origin_of, to_the_end
from synapsed.api.operation import operation, person
from synapsed.errors import NotInInbox, NotWaiting
from synapsed.interfaces import HostSaid, PutAway, WaitingSource
from synapsed.model.events import AttentionItem
from synapsed.parts.attention.inbox import PersonInbox


class InboxQuery(Query):
    hosts: Flag = flag("what waits on other hosts too, and what each of them said: an object")


class InboxEverywhere(BaseModel):
    """Items that wait for a person here and on other hosts."""

    model_config = ConfigDict(extra="forbid")

    items: list[AttentionItem]
    hosts: list[HostSaid] = Field(description="Every other host, by name")


@operation("What waits for a person", "the oldest first", allowed=person("read what waits for a person"))
async def inbox(
    request: web.Request, query: InboxQuery, context: ApiContext, here: PersonInbox
) -> list[AttentionItem] | InboxEverywhere:
    """Returns the inbox over all agents; with `hosts` also that of other hosts, as `name@host`. After an `attention`
    event the local part has changed."""
    if not query.hosts:
        return here.items()
    items, hosts = await elsewhere(context.parts.all(WaitingSource))
    return InboxEverywhere(items=sorted([*here.items(), *items], key=lambda item: item.since), hosts=hosts)


async def elsewhere(sources: Sequence[WaitingSource]) -> tuple[list[AttentionItem], list[HostSaid]]:
    """Returns the items of other hosts, and the state of each. If several sources know a host, the first one that has
    reached it counts: sources that know more, and where a person can answer, come first."""
    told = [await source.inboxes() for source in sources]
    said: dict[str, tuple[int, HostSaid]] = {}
    for number, (_, hosts) in reversed([*enumerate(told)]):
        said |= {one.name: (number, one) for one in hosts if one.name not in said or one.error is None}
    counts = {name: number for name, (number, _) in said.items()}
    items = [item for number, (of, _) in enumerate(told) for item in of if counts.get(item.host or "") == number]
    return items, [one for _, one in said.values()]


@operation(
    "Put away what asks nothing",
    "it is",
    allowed=person("put away what waits for a person"),
    errors=(NotInInbox, NotWaiting),
)
async def seen(request: web.Request, here: PersonInbox) -> PutAway:
    """Marks a limit, a failure, a crash loop, a finished task, or an alert as seen by a person."""
    item = request.match_info["item"]
    await to_the_end(here.put_away(item, origin_of(request)))
    return PutAway(status="seen", id=item)
