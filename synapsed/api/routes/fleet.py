"""`/fleet`: this host in its fleet, the others, and what is under way to them."""

from typing import Annotated

from aiohttp import web
from pydantic import Field

from synapsed.api.answers import FleetRow
from synapsed.api.context import ApiContext, to_the_end
from synapsed.api.operation import operation, person
from synapsed.api.query import Query, text_like
from synapsed.errors import NotInFleet, TaskNotFound
from synapsed.interfaces.fleet import FleetControl
from synapsed.model.fleetviews import FleetHeld, FleetHost, FleetOut, FleetStatus

SEE = person("see how the fleet is reached")

HostToken = Annotated[str | None, text_like(r"^[a-z0-9][a-z0-9-]{0,30}$", "the name of a host")]


class FleetQuery(Query):
    host: HostToken = Field(default=None, description="only what is for that host")


def routes() -> list[web.RouteDef]:
    return [
        web.get("/fleet", status),
        web.get("/fleet/hosts", list_fleet_hosts),
        web.get("/fleet/outbox", outbox),
        web.post("/fleet/outbox/{row}/retry", retry),
        web.post("/fleet/outbox/{row}/cancel", give_up),
        web.get("/fleet/quarantine", quarantine),
    ]


@operation("This host in its fleet", "how it stands", allowed=SEE, errors=(NotInFleet,))
async def status(request: web.Request, context: ApiContext) -> FleetStatus:
    return await _fleet(context).status()


@operation("The hosts of the fleet", "the hosts, with this one", errors=(NotInFleet,))
async def list_fleet_hosts(request: web.Request, context: ApiContext) -> list[FleetHost]:
    return list(await _fleet(context).hosts())


@operation("What is under way to other hosts", "the oldest first", allowed=SEE, errors=(NotInFleet,))
async def outbox(request: web.Request, query: FleetQuery, context: ApiContext) -> list[FleetOut]:
    """What no host has said to have taken."""
    return list(await _fleet(context).outbox(query.host))


@operation("Send it again now", "it is", allowed=person("send for others"), errors=(NotInFleet, TaskNotFound))
async def retry(request: web.Request, context: ApiContext) -> FleetRow:
    row = request.match_info["row"]
    if not await to_the_end(_fleet(context).outbox_retry(row)):
        raise _no_such(row)
    return FleetRow(status="retried", id=row)


@operation("Give it up", "it is", allowed=person("cancel for others"), errors=(NotInFleet, TaskNotFound))
async def give_up(request: web.Request, context: ApiContext) -> FleetRow:
    """Its task fails, UNDELIVERED; whether the other host has taken it is not known then."""
    row = request.match_info["row"]
    if not await to_the_end(_fleet(context).outbox_cancel(row)):
        raise _no_such(row)
    return FleetRow(status="canceled", id=row)


@operation("What came and was refused", "the newest first", allowed=SEE, errors=(NotInFleet,))
async def quarantine(request: web.Request, context: ApiContext) -> list[FleetHeld]:
    """Unsigned, signed by somebody else than its subject says, or not to be read: nothing of it was believed."""
    return list(await _fleet(context).quarantine())


def _fleet(context: ApiContext) -> FleetControl:
    if context.fleet is None and context.fleet_problem is not None:
        raise NotInFleet(
            f"this host takes no part in its fleet: {context.fleet_problem}", problem=context.fleet_problem
        )
    if context.fleet is None:
        raise NotInFleet(
            "this host is in no fleet: 'synapsectl fleet create' begins one, 'synapsectl fleet join' enters one"
        )
    return context.fleet


def _no_such(row: str) -> TaskNotFound:
    return TaskNotFound(f"{row!r} is not under way: 'synapsectl fleet outbox' lists what is", id=row)
