"""Decides who the sender of a message is, from the machine's evidence about the caller and the claim in the message.
Pure.

============================  ==========================  =============================
the caller is                 the message claims          the verdict
============================  ==========================  =============================
an agent                      nothing, or that agent      that agent, verified
an agent                      another name                refused
an agent, not known which     nothing                     `unknown`, claimed
a person                      nothing                     a person: no sender
a person, or an agent, not    a name                      that name, claimed
known which
another machine               a name                      that name, external
a person, or an agent, not    a name with an `@`          that name, external
known which
a device, or a token for a    a name                      `name@token-ID`, external
script
any                           to be synapsed itself       refused
============================  ==========================  =============================
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from synapsed.errors import AmbiguousAddress, Forbidden, InvalidRequest, UnknownAgent
from synapsed.model.agent import AgentView
from synapsed.model.sender import SENDER_MAX, SYSTEM, UNKNOWN, Sender, Tier, is_system


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Evidence about the caller of a request."""

    person: bool
    """False for an agent."""
    agent_id: str | None = None
    """The agent, if it is known."""
    remote: bool = False
    """True if the caller is on another machine."""
    visitor: str | None = None
    """`token-ID` or `device-ID` of a person's token or device."""


def settle_sender(caller: Caller, claim: Any, find: Callable[[str], AgentView]) -> Sender | None:
    """Returns the sender of a message; None if a person sent it. `claim` is the value of `metadata.sender`: an id or
    address, or `{sender_id, …}`; `find` returns the agent of an address or id. Raises Forbidden for a claim against the
    evidence, AmbiguousAddress for a claim that fits several agents, InvalidRequest for a malformed one."""
    name = _claimed(claim)
    if name is not None and is_system(name):
        raise Forbidden(f"{SYSTEM} is synapsed itself", sender=name)
    if caller.agent_id is not None:
        if name is not None:
            _check_is(caller.agent_id, name, find)
        return _verified(caller.agent_id, find)
    if name is None:
        return None if caller.person else Sender(id=UNKNOWN, tier=Tier.CLAIMED)
    if caller.visitor is not None:
        return _of_visitor(name, caller.visitor)
    if caller.remote or "@" in name.removeprefix("@"):
        return Sender(id=name, tier=Tier.EXTERNAL)
    try:
        view = find(name)
    except UnknownAgent:
        return Sender(id=name, tier=Tier.CLAIMED)
    return Sender(id=view.id, tier=Tier.CLAIMED, type=view.type, endpoint=view.endpoint)


def _of_visitor(name: str, visitor: str) -> Sender:
    """Returns the sender for a visitor: the claimed name with the visitor's id after it. No agent here or elsewhere has
    such a name, so the names of agents make no difference. Raises Forbidden, InvalidRequest."""
    name, field = name.removeprefix("@"), "metadata.sender.sender_id"
    if "@" in name:
        raise Forbidden(f"{field}: {name[:100]!r} is of another host, for which {visitor} does not speak", sender=name)
    if len(name) + len(visitor) >= SENDER_MAX:
        raise InvalidRequest(f"{field}: at most {SENDER_MAX - len(visitor) - 1} characters", field=field)
    return Sender(id=f"{name}@{visitor}", tier=Tier.EXTERNAL)


def _claimed(claim: Any) -> str | None:
    """Returns the name in a claim; None if it has no name."""
    name = claim.get("sender_id") if isinstance(claim, dict) else claim
    if claim is None or name in (None, ""):
        return None
    read = Sender.of({"sender": name}) if isinstance(name, str) and len(name) <= SENDER_MAX else None
    if read is None:
        field = "metadata.sender.sender_id"
        raise InvalidRequest(
            f"{field}: must be an agent's address or a name, at most {SENDER_MAX} characters", field=field
        )
    return read.id  # in the form in which it is read later


def _verified(agent_id: str, find: Callable[[str], AgentView]) -> Sender:
    try:
        view = find(agent_id)
    except UnknownAgent:  # the agent was removed while its last message was on the way
        return Sender(id=agent_id, tier=Tier.AGENT)
    return Sender(id=view.id, tier=Tier.AGENT, type=view.type, endpoint=view.endpoint)


def _check_is(agent_id: str, name: str, find: Callable[[str], AgentView]) -> None:
    """Raises Forbidden unless `name` means the agent that speaks."""
    try:
        claimed = find(name).id
    except UnknownAgent:
        claimed = name.removeprefix("@")
    except AmbiguousAddress:  # the name of a type, which may be the agent's
        claimed = agent_id if find(agent_id).type == name.removeprefix("@") else ""
    if claimed != agent_id:
        raise Forbidden(
            f"this message comes from {agent_id}, not from {name}: an agent speaks in its own name",
            sender=agent_id,
            claimed=name,
        )
