"""Makes an agent's A2A card (specification 4.4.1 and 8, S18), the JSON document that says what it is and how to talk to
it. Pure, and without the SDK.

A card works like a visiting card: it never has the agent's instructions.

The module also makes the host's documents about all its agents: the host's card, and the catalogs in which clients find
the agents.

The host's card has A2A's form, so that any client can read it. It has a skill and interfaces for each agent, all at the
same URLs: they differ by `tenant`, which the SDK's clients send along. docs/adr/0009 explains the catalogs.
"""

from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from synapsed.a2a_types.extensions import declared
from synapsed.interfaces import AgentView, ProfileAnswer
from synapsed.parts.a2a.face import CARD_PATH

TEXT = "text/plain"
INPUT = [TEXT, "application/json", "application/octet-stream"]
"""Accepted media types: text is typed, data is typed as JSON, a file is given to the program by its path."""
_MODES = {"inputModes": INPUT, "outputModes": [TEXT]}
"""Media types of a skill: those of the agent, repeated for clients that look only there."""
type Authentication = Literal["none", "optional", "required"]
"""Proof that a caller has to give: none if the connection identifies the caller."""


def agent_card(
    view: AgentView, *, base: str, version: str, pushes: bool = False, authentication: Authentication = "none"
) -> dict[str, Any]:
    """The card of `view`, whose routes the client reaches below `base`.

    It is valid in 1.0 and in 0.3: clients of one version ignore the members of the other. `extensions` at the top level
    and `capabilities.multiTurn` belong to neither version: clients of synapse-a2a, and of programs modelled on it, read
    them.
    """
    rpc_url = f"{base}/a2a"
    return {
        "name": view.name,
        "description": f"{view.type} in a terminal, kept running and made reachable by synapsed",
        "version": version,
        "supportedInterfaces": [
            {"url": rpc_url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": f"{base}/a2a/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
            {"url": rpc_url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
        ],
        **_legacy(rpc_url),
        "capabilities": capabilities(pushes=pushes),
        **_security(authentication),
        "defaultInputModes": INPUT,
        "defaultOutputModes": [TEXT],
        "skills": [
            {
                "id": "chat",
                "name": "Chat",
                "description": f"Types a message into {view.type} and gives its answer back",
                "tags": ["chat", "terminal", view.type],
                **_MODES,
            },
            {
                "id": "interrupt",
                "name": "Interrupt",
                "description": "A message of priority 5 interrupts the running turn and goes first",
                "tags": ["interrupt", "priority"],
                **_MODES,
            },
        ],
        "extensions": {
            "synapse": {
                "agent_id": view.id,
                "pty_wrapped": True,
                "priority_interrupt": True,
                "at_agent_syntax": True,
            }
        },
    }


def _legacy(rpc_url: str) -> dict[str, Any]:
    """Returns the fields by which a client of 0.3 finds the endpoint (its section 5.5); HTTP+JSON of 0.3 is not
    served."""
    return {
        "protocolVersion": "0.3.0",
        "url": rpc_url,
        "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": rpc_url, "transport": "JSONRPC"}],
        "supportsAuthenticatedExtendedCard": True,
    }


def _security(authentication: Authentication) -> dict[str, Any]:
    """Returns the security schemes in the forms of both versions. A proof that is not demanded is not declared: 0.3
    demands that declared schemes are enforced."""
    if authentication == "none":
        return {}
    free = authentication == "optional"
    return {
        "securitySchemes": {
            "bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}, "type": "http", "scheme": "bearer"}
        },
        "securityRequirements": [*([{"schemes": {}}] if free else []), {"schemes": {"bearer": {"list": []}}}],
        "security": [*([{}] if free else []), {"bearer": []}],
    }


def capabilities(*, pushes: bool) -> dict[str, Any]:
    """Returns the capabilities of all agents; `multiTurn` is for clients of synapse-a2a and of programs modelled on
    it."""
    return {
        "streaming": True,
        "pushNotifications": pushes,
        "extendedAgentCard": True,
        "multiTurn": True,
        "extensions": declared(),
    }


def extended_card(
    view: AgentView,
    profile: ProfileAnswer | None,
    *,
    base: str,
    version: str,
    pushes: bool,
    rights: str,
    authentication: Authentication = "none",
) -> dict[str, Any]:
    """Returns the card for authenticated callers: with the skills of the program's profile, and the agent's present
    state and place. `rights` are the caller's."""
    card = agent_card(view, base=base, version=version, pushes=pushes, authentication=authentication)
    known = profile.model_dump(include={"name", "description", "command", "verified"}) if profile is not None else {}
    card["skills"] = [
        *card["skills"],
        *({**_MODES, **skill} for skill in (profile.skills if profile is not None else ())),
    ]
    card["extensions"]["synapse"] |= {
        "profile": known,
        "cwd": view.cwd,
        "endpoint": view.endpoint,
        "state": view.state.value,
        "activity": view.activity.value,
        "queue": view.queue,
        "rights": rights,
    }
    return card


AI_CATALOG_TYPE = "application/ai-catalog+json"
AGENT_CARD_TYPE = "application/a2a-agent-card+json"
LINKSET_TYPE = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
OPENAPI_TYPE = "application/vnd.oai.openapi+json;version=3.1"


def host_card(agents: Sequence[AgentView], *, base: str, version: str, pushes: bool = False) -> dict[str, Any]:
    """Returns the card of the host at `base` (`http://host:port`). Without agents it is still complete: one interface,
    which then refuses all requests."""
    rpc = {"url": f"{base}/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    rest = {"url": f"{base}/a2a/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}
    listed = {
        "id": "list-agents",
        "name": "Agents of this host",
        "description": f"GET {base}/agents lists them; a message names its agent as `tenant`",
        "tags": ["agents", "catalog"],
    }
    return {
        "name": "synapsed",
        "description": "Command-line agents in terminals, kept running and made reachable by synapsed",
        "version": version,
        "url": rpc["url"],
        "supportedInterfaces": [{**each, "tenant": agent.name} for agent in agents for each in (rpc, rest)] or [rpc],
        "capabilities": capabilities(pushes=pushes),
        "defaultInputModes": [TEXT],
        "defaultOutputModes": [TEXT],
        "skills": [listed, *map(_skill, agents)],
        "extensions": {
            "synapse": {
                "agents": [
                    {"name": agent.name, "agent_id": agent.id, "type": agent.type, "card": card_url(base, agent)}
                    for agent in agents
                ]
            }
        },
    }


def _skill(agent: AgentView) -> dict[str, Any]:
    return {
        "id": agent.id,
        "name": agent.name,
        "description": f"{agent.type} in a terminal; send with tenant {agent.name!r}",
        "tags": ["agent", agent.type],
    }


def card_url(base: str, agent: AgentView) -> str:
    return f"{base}/agents/{quote(agent.name)}{CARD_PATH}"


def ai_catalog(agents: Sequence[AgentView], *, base: str) -> dict[str, Any]:
    """Returns `/.well-known/ai-catalog.json` (AI Catalog 1.0): an entry for each agent, which points at its card."""
    host = urlsplit(base).hostname or "localhost"
    return {
        "specVersion": "1.0",
        "host": {"displayName": "synapsed", "identifier": host},
        "entries": [
            {
                "identifier": f"urn:air:{host}:agent:{agent.id}",
                "type": AGENT_CARD_TYPE,
                "url": card_url(base, agent),
                "tags": [agent.type],
            }
            for agent in agents
        ],
    }


def api_catalog(agents: Sequence[AgentView], *, base: str) -> dict[str, Any]:
    """Returns `/.well-known/api-catalog` (RFC 9727), a linkset: the description of the HTTP API, and each agent's
    endpoint."""
    own = {
        "anchor": f"{base}/",
        "service-desc": [{"href": f"{base}/openapi.json", "type": OPENAPI_TYPE}],
        "status": [{"href": f"{base}/healthz", "type": "application/json"}],
    }
    described = [
        {
            "anchor": f"{base}/agents/{quote(agent.name)}/a2a",
            "service-desc": [{"href": card_url(base, agent), "type": AGENT_CARD_TYPE}],
        }
        for agent in agents
    ]
    items = [{"href": entry["anchor"]} for entry in described]
    listing = {"anchor": f"{base}/.well-known/api-catalog", "item": [{"href": own["anchor"]}, *items]}
    return {"linkset": [listing, own, *described]}
