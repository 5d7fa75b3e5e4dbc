"""Teams: agents that are started and addressed by one name."""

from collections.abc import Iterable

from synapsectl.context import CommandContext


def members_of(ctx: CommandContext, name: str) -> list[str] | None:
    """The members of the team of that name, None if there is no such team. Raises ApiError, NoDaemon."""
    for team in ctx.client.get("/teams"):
        if team["name"] == name.removeprefix("@"):
            return list(team["members"])
    return None


def with_members(ctx: CommandContext, addresses: Iterable[str]) -> list[str]:
    """The addresses, with its members in the place of each team; never the agent in whose shell this is."""
    found: list[str] = []
    for address in addresses:
        found += members_of(ctx, address) or [address]
    return [name for name in dict.fromkeys(found) if name != ctx.environ.get("SYNAPSE_AGENT_NAME") or not ctx.own_agent]
