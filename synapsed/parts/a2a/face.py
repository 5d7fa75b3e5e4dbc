"""A2A, 1.0 and 0.3, over JSON-RPC and HTTP+JSON: agents' cards, their endpoints, and push notifications.

`running` is the running part, `routes` have the requests; `a2a_http` is the HTTP side of both bindings.

- `card`: an agent's card, and the host's documents about all agents, as data.
- `operations`: the work of the methods, on `Tasks`; `methods` is the one table of them, `params` reads their requests.
- `jsonrpc`, `rest`: the bindings, which dispatch by that table; `endpoint_types` are their replies.
- `v03`: 0.3's methods, with `convert03`; `version`: the version of a request; `continuing`: the task that a message
  answers.
- `push`: notifications about a task to receivers elsewhere.
- `endpoints`: all of it, wired.

Only the types of the A2A SDK are used (docs/adr/0004), which take longer to import than all other modules:
`a2a_loading` loads the modules that need them at the first request.
"""

from synapsed.config.config import PostingConfig
from synapsed.kernel import Face, Route, WantedBy
from synapsed.outgoing import PushPolicy

CARD_PATH = "/.well-known/agent-card.json"
CARD_PATH_03 = "/.well-known/agent.json"


class PushConfig(PushPolicy):
    """`[a2a.push]`: notifications to clients' webhooks."""

    enabled: bool = True


class A2aConfig(PostingConfig):
    """`[a2a]`."""

    repeats: bool = True
    """True if a repeated message, known by its `messageId`, is the same task; false is for clients that use an id more
    than once."""
    push: PushConfig = PushConfig()


_SEND = frozenset({"send", "answer"})
_TASK = frozenset({"look", "send", "answer"})
_ANSWER = frozenset({"answer"})


def _at_agent(method: str, path: str, handler: str, needs: frozenset[str] | None) -> Route:
    """Returns a route that A2A's specification describes, below an agent."""
    return Route(method=method, path=path, handler=f"a2a.{handler}", needs=needs, at="agent", described=False)


FACE = Face(
    name="a2a",
    opens="synapsed.parts.a2a.running",
    wanted=WantedBy(rows=("SELECT 1 FROM pushes",)),
    extends={"a2a": A2aConfig},
    routes=(
        Route(method="GET", path=CARD_PATH, handler="a2a.card", at="agent", public=True),
        Route(method="GET", path=CARD_PATH_03, handler="a2a.card", at="agent", public=True),
        Route(method="GET", path="/a2a", handler="a2a.card", at="agent", public=True, described=False),
        # The caller's rights decide which methods of JSON-RPC it may call.
        _at_agent("POST", "/a2a", "rpc", _TASK),
        _at_agent("POST", "/a2a/", "rpc", _TASK),
        _at_agent("*", "/a2a/rest/{path:.*}", "rest", _TASK),
        # Clients of synapse-a2a append their paths to the card's `url`, whatever its protocol is.
        _at_agent("POST", "/a2a/tasks/send", "send_task", _SEND),
        _at_agent("POST", "/a2a/tasks/send-priority", "send_priority", _SEND),
        _at_agent("POST", "/a2a/tasks/sendSubscribe", "send_subscribe", _SEND),
        _at_agent("GET", "/a2a/tasks/{task}", "get_task", _TASK),
        _at_agent("GET", "/a2a/tasks/{task}/subscribe", "subscribe", _TASK),
        _at_agent("POST", "/a2a/tasks/{task}/cancel", "cancel", _ANSWER),
        _at_agent("POST", "/a2a/tasks/{task}/input", "provide_input", _ANSWER),
        Route(method="GET", path=CARD_PATH, handler="host.card", public=True),
        Route(method="GET", path=CARD_PATH_03, handler="host.card", public=True),
        Route(method="GET", path="/.well-known/ai-catalog.json", handler="host.agents_catalog"),
        Route(method="GET", path="/.well-known/api-catalog", handler="host.apis_catalog"),
        Route(method="POST", path="/a2a", handler="host.rpc", described=False),
        Route(method="POST", path="/a2a/", handler="host.rpc", described=False),
        Route(method="*", path="/a2a/rest/{path:.*}", handler="host.rest", described=False),
    ),
    routes_in="synapsed.parts.a2a.routes",
)
"""Description of this part for the daemon, which reads it without loading the part's code."""
