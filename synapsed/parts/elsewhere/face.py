"""Agents elsewhere: A2A agents under an alias, and the agents of the user's other hosts, which ssh reaches.

`running` puts the part together. `externals` shows both kinds to the API and the supervisor, with a `courier` for each
task that is under way; `questions` reports what they ask a person; `addressbook` and `discovery` keep and find the
agents. `remote`, `first_a2a` and `synapse_a2a` speak to them, by `remote_protocol`; `loop_thread` is where A2A's SDK
runs. `hosts` brings the control sockets of other hosts here.
"""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from synapsed.config.config import ConfigKey, Section
from synapsed.kernel import Face, Route


def _host_name(value: str) -> str:
    if re.fullmatch(r"([A-Za-z0-9][A-Za-z0-9_.-]{0,63})?", value) is None:
        raise ValueError("must be a name of letters, digits, '_', '.' and '-'")
    return value


class HostsConfig(Section):
    """`[hosts]`: the way to the daemons of other hosts."""

    ssh: list[str] = Field(default=["ssh"], min_length=1)
    """The program that takes ssh's options, with the user's own arguments."""
    name: Annotated[str, AfterValidator(_host_name)] = ""
    """Name of this host in the names of senders; empty: its host name up to the first dot."""


_ALIAS = {"alias": "the name that an agent elsewhere was given"}
_LOOK = frozenset({"look"})
_ANSWER = frozenset({"answer"})


def _external(method: str, path: str, handler: str) -> Route:
    """Returns a route that exists on agents' own ports, too, where clients of synapse-a2a, and of programs modelled on
    it, look for it."""
    return Route(
        method=method, path=f"/external{path}", handler=f"external.{handler}", parameters=_ALIAS, on_ports=True
    )


FACE = Face(
    name="elsewhere",
    opens="synapsed.parts.elsewhere.running",
    sections={"hosts": ConfigKey(HostsConfig, HostsConfig(), restart=True)},
    routes=(
        _external("POST", "/discover", "discover"),
        _external("GET", "/agents", "list_agents"),
        _external("GET", "/agents/{alias}", "get_agent"),
        _external("DELETE", "/agents/{alias}", "remove"),
        _external("POST", "/agents/{alias}/send", "send_task"),
        _external("GET", "/agents/{alias}/tasks/{task}", "get_task"),
        _external("GET", "/agents/{alias}/tasks/{task}/subscribe", "subscribe"),
        _external("POST", "/agents/{alias}/tasks/{task}/cancel", "cancel"),
        Route(method="GET", path="/hosts", handler="hosts.list_hosts", needs=_LOOK),
        Route(method="POST", path="/hosts", handler="hosts.add"),
        Route(method="GET", path="/hosts/{host}", handler="hosts.get_host"),
        Route(method="DELETE", path="/hosts/{host}", handler="hosts.remove"),
        Route(method="POST", path="/hosts/{host}/input", handler="hosts.provide_input", needs=_ANSWER),
        Route(method="POST", path="/hosts/{host}/inbox/{item}/seen", handler="hosts.seen", needs=_ANSWER),
    ),
    routes_in="synapsed.parts.elsewhere.routes",
)
"""Description of this part for the daemon, which reads it without loading the part's code."""
