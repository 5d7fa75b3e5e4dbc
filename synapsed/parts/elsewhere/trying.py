"""Tries an agent elsewhere when it is added: sends a request that changes nothing, to see if the agent accepts this
daemon, and reads its extended card, if it has one."""

import asyncio
from typing import Any
from uuid import uuid4

from a2a.client.card_resolver import parse_agent_card
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict

from synapsed.errors import CardInvalid, ExternalError, RemoteRefused, Unreachable
from synapsed.parts.elsewhere.discovery import output_modes, skills_of
from synapsed.parts.elsewhere.external_agent import ExternalAgent
from synapsed.parts.elsewhere.needs import CREDENTIALS
from synapsed.parts.elsewhere.remote import Remote
from synapsed.parts.elsewhere.remote_protocol import AgentConnection
from synapsed.parts.elsewhere.signatures import keys_of, signed


async def tried(agent: ExternalAgent, remote: AgentConnection) -> ExternalAgent:
    """Returns the agent with the facts of its extended card, and with further needs. Raises CardInvalid if it refuses
    these credentials."""
    needs = [*agent.needs, *await _refusals(agent, remote)]
    agent = agent.model_copy(update={"needs": needs})
    if not agent.extended or not isinstance(remote, Remote):
        return agent.model_copy(update={"extended": False})
    try:
        return agent.model_copy(update=await _extended(agent, remote))
    except (ExternalError, ValueError) as error:
        why = f": {error}" if agent.authenticated else ""
        need = f"credentials for its extended card{why}"
        return agent.model_copy(update={"extended": False, "needs": [*agent.needs, need]})


async def _refusals(agent: ExternalAgent, remote: AgentConnection) -> list[str]:
    """Asks for a task that does not exist."""
    try:
        await remote.get(str(uuid4()))
    except Unreachable as error:
        return [f"a way to it: {error.message}"]
    except RemoteRefused as error:
        if error.details.get("status") == 401:
            raise _shut(agent) from error
        if error.details.get("status") == 403:
            return [f"more rights, perhaps: {agent.endpoint} shows no task (HTTP 403)"]
        if error.details.get("remote") == "ExtensionSupportRequiredError":
            return [f"an extension: {error.message}"]
    return []


def _shut(agent: ExternalAgent) -> CardInvalid:
    wanted = next((need for need in agent.needs if need.startswith(CREDENTIALS)), None)
    if wanted is not None:
        why = f"it needs {wanted}"
    elif agent.authenticated:
        why = "its credentials are wrong"
    else:
        why = "it needs credentials, and its card does not say which"
    return CardInvalid(f"{agent.endpoint} refuses requests (HTTP 401): {why}", url=agent.card_url, status=401)


async def _extended(agent: ExternalAgent, remote: Remote) -> dict[str, Any]:
    """Returns the facts that its extended card adds to its card. Raises ExternalError; ValueError if the card must be
    signed and that one is not."""
    return await asyncio.to_thread(_facts, await remote.extended_card(), agent.key)


def _facts(card: pb.AgentCard, key: str) -> dict[str, Any]:
    """Returns the facts of an extended card that are used here. Runs in a thread, because a card may be large. Raises
    ValueError if it must be signed with `key` and is not."""
    if key:
        card = parse_agent_card(signed(MessageToDict(card), keys_of(key))[0])
    return {
        "description": card.description[:1000],
        "skills": skills_of(card),
        "output_modes": output_modes(card),
    }
