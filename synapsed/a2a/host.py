"""What the host says of all its agents: its own card, and the catalogs by which they are found. Pure, without the SDK.

The card is of A2A's form, so that any client can read it: one interface for each agent, all at one URL, told apart by
`tenant`, which the SDK's clients send along; and one skill for each. docs/adr/0009 says why these catalogs.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from synapsed.a2a.card import CARD_PATH, TEXT, capabilities
from synapsed.model.agent import AgentView

AI_CATALOG_TYPE = "application/ai-catalog+json"
AGENT_CARD_TYPE = "application/a2a-agent-card+json"
LINKSET_TYPE = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
OPENAPI_TYPE = "application/vnd.oai.openapi+json;version=3.1"


def host_card(agents: Sequence[AgentView], *, base: str, version: str, pushes: bool = False) -> dict[str, Any]:
    """The card of the host at `base` (`http://host:port`). Without agents it is still whole: one interface, which then
    refuses what comes."""
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
    """`/.well-known/ai-catalog.json` (AI Catalog 1.0): an entry for each agent, which points at its card."""
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
    """`/.well-known/api-catalog` (RFC 9727), a linkset: what describes the HTTP API, and each agent's endpoint."""
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
