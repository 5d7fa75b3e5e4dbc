"""Agents elsewhere: those that a person added under an alias (S11), and those on their other hosts (`name@host`)."""

from synapsed.errors import UnknownAgent
from synapsed.model.agent import NAME_PATTERN
from synapsed.model.released_names import ADDRESSES, ALIASED, CARRIER
from synapsed.model.task import Task

__all__ = [
    "ANSWERS",
    "ANY",
    "KEY",
    "NAME_PATTERN",
    "alias_of",
    "external_id",
    "host_of",
    "is_aliased",
    "is_any",
    "part_of",
    "part_of_task",
    "unknown",
]

KEY = "external"
"""Key of a task's metadata: `alias`, `sending` once the message may be there, its `task_id` and `context_id` there."""
ANSWERS = "answers"
"""Key within that value: types of prompts that may be answered from this host; the others are for a person there."""
ANY = "any:"


def external_id(alias: str) -> str:
    """Returns the `agent_id` in tasks for the agent of that alias; for an agent on another host its address."""
    return alias if host_of(alias) or is_any(alias) else f"{ALIASED}{alias}"


def alias_of(agent: str | Task) -> str | None:
    """Returns the alias in the id of an agent or a task's agent, `name@host` on another host; None on this host."""
    agent_id = agent if isinstance(agent, str) else agent.agent_id
    if host_of(agent_id) or is_any(agent_id):
        return agent_id
    return agent_id.removeprefix(ALIASED) if agent_id.startswith(ALIASED) else None


def unknown(agent_id: str) -> UnknownAgent:
    """Returns the error for a request that only agents of this host can serve; `details["alias"]` names the agent."""
    if (alias := alias_of(agent_id)) is not None:
        return UnknownAgent(f"{alias} is an agent elsewhere: messages can be sent to it, no more", alias=alias)
    return UnknownAgent(f"no agent {agent_id[:128]!r}", agent=agent_id[:128])


def is_aliased(agent_id: str) -> bool:
    """Returns True for the id of an agent elsewhere under an alias; False for one on the person's hosts."""
    return agent_id.startswith(ALIASED)


def is_any(address: str) -> bool:
    """Returns True if `address` means any agent of a class, on any host (`any:CLASS`)."""
    return address.startswith(ANY)


def part_of(address: str) -> str | None:
    """Returns the part that is needed to reach `address`; None for a plain name, which any part may know."""
    address = address.removeprefix("@")
    if is_any(address):
        return ADDRESSES[ANY]
    return CARRIER if alias_of(address) is not None else None


def part_of_task(task: Task) -> str:
    """Returns the part that carries the task of an agent elsewhere."""
    told = task.metadata.get(KEY)
    return str(told.get("via", CARRIER)) if isinstance(told, dict) else CARRIER


def host_of(address: str) -> tuple[str, str] | None:
    """Returns the agent and the host of `name@host`; None for any other address."""
    name, _, host = address.partition("@")
    return (name, host) if name and NAME_PATTERN.fullmatch(host) else None
