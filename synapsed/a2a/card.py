"""An agent's card (specification 4.4.1, 8; S18), as the JSON that is served. Pure, and without the SDK.

It is a visiting card: who this is and how to talk to it, never its instructions.
"""

from collections.abc import Mapping
from typing import Any, Literal

from synapsed.a2a.extensions import declared
from synapsed.model.agent import AgentView

CARD_PATH = "/.well-known/agent-card.json"
TEXT = "text/plain"
INPUT = [TEXT, "application/json", "application/octet-stream"]
"""Text is typed, data as JSON, a file given to the program by its path."""
_MODES = {"inputModes": INPUT, "outputModes": [TEXT]}
"""Of a skill: those of the agent, said again for clients that do not look there."""
type Authentication = Literal["none", "optional", "required"]
"""Whether a caller need prove who it is: not where the connection tells that already."""


def agent_card(
    view: AgentView, *, base: str, version: str, pushes: bool = False, authentication: Authentication = "none"
) -> dict[str, Any]:
    """The card of `view`, whose routes the client reaches below `base`.

    It is one of 1.0 and one of 0.3 at once: each version ignores what it does not know of the other's. `extensions` at
    its top and `capabilities.multiTurn` are of neither: the seeds' clients look there.
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
    """What a client of 0.3 finds the endpoint by (its section 5.5); HTTP+JSON of 0.3 is not served."""
    return {
        "protocolVersion": "0.3.0",
        "url": rpc_url,
        "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": rpc_url, "transport": "JSONRPC"}],
        "supportsAuthenticatedExtendedCard": True,
    }


def _security(authentication: Authentication) -> dict[str, Any]:
    """In the forms of both versions. What is not asked for is not declared: 0.3 has declared schemes enforced."""
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
    """What all agents can; `multiTurn` is the seeds'."""
    return {
        "streaming": True,
        "pushNotifications": pushes,
        "extendedAgentCard": True,
        "multiTurn": True,
        "extensions": declared(),
    }


def extended_card(
    view: AgentView,
    profile: Mapping[str, Any],
    *,
    base: str,
    version: str,
    pushes: bool,
    rights: str,
    authentication: Authentication = "none",
) -> dict[str, Any]:
    """The card for those who authenticate: with the skills of the program's profile, and who and where it is now.
    `profile` is a row of `Control.profiles`, `rights` what the caller has."""
    card = agent_card(view, base=base, version=version, pushes=pushes, authentication=authentication)
    known = {key: profile[key] for key in ("name", "description", "command", "verified") if key in profile}
    card["skills"] = [*card["skills"], *({**_MODES, **skill} for skill in profile.get("skills", ()))]
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
