"""An agent's card (specification 4.4.1, 8; S18), as the JSON that is served. Pure, and without the SDK.

It is a visiting card: who this is and how to talk to it, never its instructions.
"""

from typing import Any

from synapsed.model.agent import AgentView

__all__ = ["CARD_PATH", "TEXT", "agent_card", "capabilities"]

CARD_PATH = "/.well-known/agent-card.json"
TEXT = "text/plain"


def agent_card(view: AgentView, *, base: str, version: str, serve_v03: bool = False) -> dict[str, Any]:
    """The card of `view`, whose routes the client reaches below `base`.

    With `serve_v03` the entries are added by which 0.3 clients find that the same URL speaks 0.3 (A2A.md): nothing
    that is not served is declared.
    """
    rpc_url = f"{base}/a2a"
    interfaces = [
        {"url": rpc_url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        {"url": f"{base}/a2a/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
    ]
    legacy: dict[str, Any] = {}
    if serve_v03:
        interfaces.append({"url": rpc_url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"})
        legacy = {
            "protocolVersion": "0.3.0",
            "preferredTransport": "JSONRPC",
            "additionalInterfaces": [{"url": rpc_url, "transport": "JSONRPC"}],
        }
    return {
        "name": view.name,
        "description": f"{view.type} in a terminal, kept running and made reachable by synapsed",
        "url": rpc_url,
        "version": version,
        "supportedInterfaces": interfaces,
        **legacy,
        "capabilities": capabilities(),
        "defaultInputModes": [TEXT],
        "defaultOutputModes": [TEXT],
        "skills": [
            {
                "id": "chat",
                "name": "Chat",
                "description": f"Types a message into {view.type} and gives its answer back",
                "tags": ["chat", "terminal", view.type],
            },
            {
                "id": "interrupt",
                "name": "Interrupt",
                "description": "A message of priority 5 interrupts the running turn and goes first",
                "tags": ["interrupt", "priority"],
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


def capabilities() -> dict[str, Any]:
    """What all agents can; `multiTurn` is the seeds'."""
    return {"streaming": True, "pushNotifications": False, "extendedAgentCard": False, "multiTurn": True}
