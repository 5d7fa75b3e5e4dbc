"""Tells a person which background tasks of agents' programs a verb ends, and asks whether it may."""

from collections.abc import Iterable
from typing import Any

from synapsectl.context import CommandContext


def with_background(ctx: CommandContext, addresses: Iterable[str]) -> list[dict[str, Any]]:
    """Returns the agents of this host among `addresses` whose programs have background tasks."""
    meant = frozenset(addresses)
    return [agent for agent in ctx.client.get("/agents") if agent.get("background") and goes_by(agent, meant)]


def goes_by(agent: dict[str, Any], addresses: Iterable[str]) -> bool:
    """Returns True if one of the addresses is the agent's."""
    return not {agent["name"], agent["id"], agent["type"], f"{agent['type']}-{agent['port']}"}.isdisjoint(addresses)


def may_end(ctx: CommandContext, agent: dict[str, Any], question: str) -> bool:
    """Tells which background tasks of the agent end; a person is asked, and may refuse that."""
    told = f"{_beside(agent)} end with it"
    if ctx.may_ask:
        return ctx.asks(f"{told}: {question}")
    ctx.out.note(told)
    return True


def note_waiting(ctx: CommandContext, agent: dict[str, Any]) -> None:
    """Tells for which background tasks of the agent its restart waits."""
    name = agent["name"]
    ctx.out.note(f"{_beside(agent)} go on: it waits for that, and 'synapsectl cancel {name} --background' ends it")


def _beside(agent: dict[str, Any]) -> str:
    tasks = f" ({'; '.join(agent['background_tasks'])})" if agent.get("background_tasks") else ""
    return f"{agent['name']}: {agent['background']} in its background{tasks}"
