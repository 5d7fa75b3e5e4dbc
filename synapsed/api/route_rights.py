"""The rights that a grant needs for each route of the kernel, in one table, which `tests/parts/web/test_doors.py`
checks with all routes.

A route that is not in the table is closed to all grants: the configuration, other grants. For some routes the body
decides further (`Rights.require_right`, `managing`).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from aiohttp import web

from synapsed.api.context import CONTEXT, agent_id_of
from synapsed.api.describe import route_of
from synapsed.api.rights import Rights
from synapsed.api.security import is_public
from synapsed.errors import AmbiguousAddress, Forbidden, UnknownAgent
from synapsed.model.grants import RIGHTS, SENDS, Grant, Right

AGENT: Final = "/agents/{agent}"
OF_AGENT_PORT: Final = web.AppKey("OF_AGENT_PORT", bool)
"""Set for the application behind agents' own ports, whose paths have no agent."""

_LOOK: Final[frozenset[Right]] = frozenset({"look"})
_SEND: Final = SENDS
_TASK: Final[frozenset[Right]] = frozenset({"look", "send", "answer"})
"""Rights for one task, by its id: the sender of a message may read its result."""
_ANSWER: Final[frozenset[Right]] = frozenset({"answer"})
_TYPE: Final[frozenset[Right]] = frozenset({"type"})
_MANAGE: Final[frozenset[Right]] = frozenset({"manage"})
_ANY: Final[frozenset[Right]] = frozenset(RIGHTS)


_OF_AGENTS: Final[Mapping[str, frozenset[Right]]] = MappingProxyType(
    {
        "POST /tasks/send": _SEND,
        "POST /tasks/send-priority": _SEND,
        "POST /tasks/sendSubscribe": _SEND,
        "GET /tasks/{task}": _TASK,
        "GET /tasks/{task}/subscribe": _TASK,
        "POST /tasks/{task}/cancel": _ANSWER,
        "POST /tasks/{task}/input": _ANSWER,
        "GET /tasks": _LOOK,
        "POST /message": _SEND,
        "GET /status": _LOOK,
        "GET /screen": _LOOK,
        "GET /terminal": _LOOK | _TYPE,  # keys need `type`, which the route asks for
        "GET /events": _LOOK,
    }
)
"""Routes below an agent, or at the root of its port."""

_OTHERS: Final[Mapping[str, frozenset[Right]]] = MappingProxyType(
    {
        "GET /agents": _LOOK,
        "GET /teams": _LOOK,
        "GET /whoami": _ANY,
        "GET /events": _LOOK,
        "GET /events/{event}": _LOOK,
        "GET /events/schema": _ANY,
        "GET /control/status": _LOOK,
        "GET /control/automation": _LOOK,
        "GET /control/profiles": _LOOK,
        "GET /control/tasks": _LOOK,
        "GET /control/tasks/{task}": _TASK,
        "GET /control/tasks/{task}/wait": _TASK,
        "POST /control/tasks/{task}/cancel": _ANSWER,
        "POST /control/tasks/{task}/input": _ANSWER,
        "POST /control/start": _MANAGE,
        f"POST /control{AGENT}/stop": _MANAGE,
        f"POST /control{AGENT}/restart": _MANAGE,
        f"POST /control{AGENT}/input": _ANSWER,
        f"POST /control{AGENT}/interrupt": _ANSWER,
        f"POST /control{AGENT}/keys": _TYPE,
        f"GET /control{AGENT}/history": _LOOK,
        f"GET /control{AGENT}/recording": _LOOK,
    }
)
_OF_THE_CALLER: Final = frozenset({"/whoami", "/events/schema"})
"""Routes that reveal nothing about agents."""


def needs_of(method: str, path: str, handler: object = None, *, agent_port: bool = False) -> frozenset[str] | None:
    """Returns the rights of which one is enough for the route; None if the route is closed to grants. `path` is the
    route's pattern; a part's `handler` has its own."""
    if (route := route_of(handler)) is not None:
        return route.needs
    method = "GET" if method == "HEAD" else method
    if agent_port:
        return _OF_AGENTS.get(f"{method} {path}")
    if path.startswith(f"{AGENT}/"):
        return _OF_AGENTS.get(f"{method} {path.removeprefix(AGENT)}")
    return _OTHERS.get(f"{method} {path}")


def check_needs(request: web.Request, rights: Rights) -> None:
    """Raises Forbidden if the caller's grant does not allow the request, or is for other agents."""
    grant, resource = rights.grant, request.match_info.route.resource
    if grant is None or is_public(request.match_info.handler) or resource is None:
        return
    path, agent_port = resource.canonical, request.app.get(OF_AGENT_PORT, False)
    needs = needs_of(request.method, path, request.match_info.handler, agent_port=agent_port)
    if needs is None:
        raise Forbidden(f"this is closed to every {grant.kind}: use synapsectl", needs=[])
    if not needs & grant.rights:
        words = " or ".join(repr(right) for right in sorted(needs))
        raise Forbidden(f"this {grant.kind} does not have the right {words}", needs=sorted(needs))
    route = route_of(request.match_info.handler)
    if grant.agents is None or path in _OF_THE_CALLER or (route is not None and route.of_caller):
        return
    if not (agent_port or AGENT in path):
        raise Forbidden(
            "this token is for some agents only, and this request is about all agents", agents=sorted(grant.agents)
        )
    if not _covers(grant, request):
        raise Forbidden("this token is not for that agent", agents=sorted(grant.agents))


def _covers(grant: Grant, request: web.Request) -> bool:
    """Returns True if the grant is for the agent of the request. Its answers do not reveal the existence, ids and types
    of other agents. Raises UnknownAgent for an agent of the grant that is gone."""
    try:
        return grant.covers(request.app[CONTEXT].control.directory.view(agent_id_of(request)).name)
    except AmbiguousAddress:
        return False
    except UnknownAgent:
        address = request.match_info.get("agent")
        if address is None or grant.covers(address.removeprefix("@")):  # by its port, or one of its own
            raise
        return False
