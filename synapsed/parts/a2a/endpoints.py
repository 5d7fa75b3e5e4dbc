"""Both bindings on one table of operations."""

from synapsed.interfaces import EventLog, Tasks
from synapsed.parts.a2a.jsonrpc import JsonRpc
from synapsed.parts.a2a.methods import table
from synapsed.parts.a2a.operations import Operations
from synapsed.parts.a2a.push.sender import PushSender
from synapsed.parts.a2a.rest import RestBinding


class Endpoints:
    """The endpoints of all agents, `rpc` and `rest`; `repeats` as in `Operations`."""

    def __init__(
        self, tasks: Tasks, events: EventLog, pushes: PushSender | None = None, *, repeats: bool = True
    ) -> None:
        methods = table(Operations(tasks, events, pushes, repeats=repeats))
        self.rpc = JsonRpc(methods, table(Operations(tasks, events, pushes, repeats=repeats, dialect="0.3")))
        self.rest = RestBinding(methods)
