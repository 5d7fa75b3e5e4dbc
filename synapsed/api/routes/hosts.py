"""`/hosts`: other hosts of the person's own. Their agents are `name@host` everywhere a message goes."""

from aiohttp import web
from pydantic import TypeAdapter

from synapsed.api.answers import HostRemoved
from synapsed.api.body import json_response, model_response, read_model
from synapsed.api.context import CONTEXT, ApiContext, rights_of, to_the_end
from synapsed.api.describe import Response, describe
from synapsed.api.schemas import HostBody
from synapsed.errors import NameTaken, QueueFull, UnknownAgent
from synapsed.model.host import HostView

HOST = Response("the host", HostView)
_HOST = TypeAdapter(HostView)
_HOSTS = TypeAdapter(list[HostView])


def routes() -> list[web.RouteDef]:
    return [
        web.get("/hosts", list_hosts),
        web.post("/hosts", add),
        web.get("/hosts/{host}", get_host),
        web.delete("/hosts/{host}", remove),
    ]


@describe("The other hosts", Response("hosts", list[HostView]))
async def list_hosts(request: web.Request) -> web.Response:
    rights_of(request).require_person("see how other hosts are reached")
    context = request.app[CONTEXT]
    return model_response(_HOSTS, [_view(context, name) for name in context.hosts.names()])


@describe("Add a host, reached by ssh", HOST, body=HostBody, errors=(NameTaken, QueueFull))
async def add(request: web.Request) -> web.Response:
    """It is connected to at once, and from then on. For a known name it is connected to again."""
    rights_of(request).require_person("add hosts")
    body = await read_model(request, HostBody)
    context = request.app[CONTEXT]
    host = await to_the_end(context.hosts.add(body.name, body.target, socket=body.socket, synapsectl=body.synapsectl))
    return model_response(_HOST, _view(context, host.name))


@describe("A host", HOST, errors=(UnknownAgent,))
async def get_host(request: web.Request) -> web.Response:
    """With the path of its control socket here. For persons: whoever opens that has a person's rights there."""
    rights_of(request).require_person("see how other hosts are reached")
    return model_response(_HOST, _view(request.app[CONTEXT], request.match_info["host"]))


@describe("Forget a host", Response("it is forgotten", HostRemoved), errors=(UnknownAgent,))
async def remove(request: web.Request) -> web.Response:
    """What is under way to it ends `canceled` here, whatever becomes of it there."""
    rights_of(request).require_person("remove hosts")
    host = await to_the_end(request.app[CONTEXT].externals.remove_host(request.match_info["host"]))
    return json_response({"status": "removed", "name": host.name})


def _view(context: ApiContext, name: str) -> HostView:
    return context.hosts.view(name, waiting=len(context.externals.open_to_host(name)))
