"""Teams: agents that are started and addressed by one name."""

from collections.abc import Iterable

from synapsectl.context import CommandContext
from synapsectl.errors import UsageError

ANYWHERE = "team:"
"""Beginning of the address of a team with its members on all hosts of the fleet."""


def members_of(ctx: CommandContext, name: str) -> list[str] | None:
    """Returns the members of the team of that name, None if there is no such team; for `team:NAME` those on other hosts
    of the fleet too. Raises ApiError, NoDaemon, UsageError."""
    anywhere = name.startswith(ANYWHERE)
    for team in ctx.client.get("/teams?hosts=1" if anywhere else "/teams"):
        if team["name"] == name.removeprefix("@").removeprefix(ANYWHERE):
            return list(team["members"])
    if anywhere:
        raise UsageError(f"no agent here or on another host of the fleet is in a team {name.removeprefix(ANYWHERE)!r}")
    return None


def with_members(ctx: CommandContext, addresses: Iterable[str]) -> list[str]:
    """Returns the addresses, with its members in the place of each team; never the agent in whose shell this is."""
    found: list[str] = []
    for address in addresses:
        found += members_of(ctx, address) or [address]
    return [name for name in dict.fromkeys(found) if name != ctx.environ.get("SYNAPSE_AGENT_NAME") or not ctx.own_agent]
