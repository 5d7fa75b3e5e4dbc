"""`/hosts`: other hosts of the person's own. Their agents are `name@host` everywhere a message goes."""

from aiohttp import web

from synapsed.api.answers import HostRemoved
from synapsed.api.context import ApiContext, to_the_end
from synapsed.api.operation import operation, person
from synapsed.api.schemas import HostBody
from synapsed.errors import NameTaken, QueueFull, UnknownAgent
from synapsed.model.host import HostView


def routes() -> list[web.RouteDef]:
    return [
        web.get("/hosts", list_hosts),
        web.post("/hosts", add),
        web.get("/hosts/{host}", get_host),
        web.delete("/hosts/{host}", remove),
    ]


@operation("The other hosts", "hosts", allowed=person("see how other hosts are reached"))
async def list_hosts(request: web.Request, context: ApiContext) -> list[HostView]:
    return [_view(context, name) for name in context.hosts.names()]


@operation("Add a host, reached by ssh", "the host", allowed=person("add hosts"), errors=(NameTaken, QueueFull))
async def add(request: web.Request, body: HostBody, context: ApiContext) -> HostView:
    """It is connected to at once, and from then on. For a known name it is connected to again."""
    host = await to_the_end(context.hosts.add(body.name, body.target, socket=body.socket, synapsectl=body.synapsectl))
    return _view(context, host.name)


@operation("A host", "the host", allowed=person("see how other hosts are reached"), errors=(UnknownAgent,))
async def get_host(request: web.Request, context: ApiContext) -> HostView:
    """With the path of its control socket here. For persons: whoever opens that has a person's rights there."""
    return _view(context, request.match_info["host"])


@operation("Forget a host", "it is forgotten", allowed=person("remove hosts"), errors=(UnknownAgent,))
async def remove(request: web.Request, context: ApiContext) -> HostRemoved:
    """What is under way to it ends `canceled` here, whatever becomes of it there."""
    host = await to_the_end(context.externals.remove_host(request.match_info["host"]))
    return HostRemoved(status="removed", name=host.name)


def _view(context: ApiContext, name: str) -> HostView:
    return context.hosts.view(name, waiting=len(context.externals.open_to_host(name)))
