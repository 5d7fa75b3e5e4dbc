"""`/hosts`: the user's other hosts. Their agents are `name@host` everywhere a message goes."""

from typing import Annotated, Literal

from aiohttp import web
from pydantic import BaseModel, ConfigDict, StringConstraints

from synapsed.api import InputProvided, key_of, to_the_end
from synapsed.api.operation import operation, person
from synapsed.errors import (
    InvalidChoice,
    InvalidRequest,
    NameTaken,
    NotInInbox,
    NotReady,
    NotTaken,
    NotWaiting,
    OutcomeUnknown,
    PromptChanged,
    QueueFull,
    TaskNotFound,
    UnknownAgent,
)
from synapsed.interfaces import PutAway
from synapsed.parts.elsewhere.externals import Externals
from synapsed.parts.elsewhere.hosts import answers
from synapsed.parts.elsewhere.hosts.host import HostView
from synapsed.parts.elsewhere.hosts.hosts import Hosts

_Id = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class HostBody(BaseModel):
    """Body of `hosts`: `target` is ssh's destination; `socket` the control socket over there, null to ask there."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: _Id
    target: Annotated[str, StringConstraints(min_length=1, max_length=300)]
    socket: Annotated[str, StringConstraints(min_length=1, max_length=251)] | None = None
    synapsectl: Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f]{1,1024}$")] | None = None


class HostInputBody(BaseModel):
    """Body of an answer to a prompt of `agent` over there, or of its `task`, by the names that they have there."""

    model_config = ConfigDict(extra="forbid", strict=True)

    agent: _Id
    task: _Id | None = None
    input: str
    prompt_id: _Id


class HostRemoved(BaseModel):
    model_config = ConfigDict(extra="forbid")

    status: Literal["removed"]
    name: str


@operation("The other hosts", "hosts", allowed=person("see how other hosts are reached"))
async def list_hosts(request: web.Request, hosts: Hosts, externals: Externals) -> list[HostView]:
    return [_view(hosts, externals, name) for name in hosts.names()]


@operation("Add a host, reached by ssh", "the host", allowed=person("add hosts"), errors=(NameTaken, QueueFull))
async def add(request: web.Request, body: HostBody, hosts: Hosts, externals: Externals) -> HostView:
    """Adds a host, connects at once, and keeps the connection up. A known name is connected again."""
    host = await to_the_end(hosts.add(body.name, body.target, socket=body.socket, synapsectl=body.synapsectl))
    return _view(hosts, externals, host.name)


@operation("A host", "the host", allowed=person("see how other hosts are reached"), errors=(UnknownAgent,))
async def get_host(request: web.Request, hosts: Hosts, externals: Externals) -> HostView:
    """Returns a host with the path of its control socket here. Only for persons: a program that opens the socket has a
    person's rights there."""
    return _view(hosts, externals, request.match_info["host"])


@operation("Forget a host", "it is forgotten", allowed=person("remove hosts"), errors=(UnknownAgent,))
async def remove(request: web.Request, externals: Externals) -> HostRemoved:
    """Removes a host. Tasks under way to it end `canceled` here, and may continue there."""
    host = await to_the_end(externals.remove_host(request.match_info["host"]))
    return HostRemoved(status="removed", name=host.name)


@operation(
    "Answer a prompt over there",
    "the program took it",
    allowed=person("answer what other hosts ask a person"),
    errors=(
        UnknownAgent, TaskNotFound, NotWaiting, InvalidChoice, PromptChanged, NotTaken, NotReady, OutcomeUnknown,
    ),
)  # fmt: skip
async def provide_input(request: web.Request, body: HostInputBody, hosts: Hosts) -> InputProvided:
    """Gives an answer over the host's control socket, once for each `Idempotency-Key`. NOT_READY if it is not known
    whether it arrived: send it again under that key."""
    tunnel = hosts.tunnel(request.match_info["host"])
    given = answers.give(
        tunnel, agent=body.agent, task=body.task, text=body.input, prompt_id=body.prompt_id, key=key_of(request)
    )
    await to_the_end(given)
    return InputProvided(status="input_provided")


@operation(
    "Put away what asks nothing over there",
    "it is",
    allowed=person("put away what waits for a person"),
    errors=(InvalidRequest, UnknownAgent, NotInInbox, NotWaiting, NotReady),
)
async def seen(request: web.Request, hosts: Hosts) -> PutAway:
    """Marks as seen a limit, a failure, a crash loop, a finished task, or an alert, by the id that it has there."""
    item = request.match_info["item"]
    await to_the_end(answers.put_away(hosts.tunnel(request.match_info["host"]), item))
    return PutAway(status="seen", id=item)


def _view(hosts: Hosts, externals: Externals, name: str) -> HostView:
    return hosts.view(name, waiting=len(externals.open_to_host(name)))
