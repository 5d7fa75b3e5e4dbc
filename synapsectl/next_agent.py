"""Finds the next agent to go to: one that needs a person, the longest waiting first; else the next one of `list`."""

from collections.abc import Sequence

from synapsectl.client import Client
from synapsectl.verbs import NEEDS, is_installed

_LIVE = ("starting", "running")


def neighbour(order: Sequence[str], here: str, step: int) -> str | None:
    """Returns the agent `step` places after `here`, around the end; None if there is no other."""
    others = [agent for agent in order if agent != here]
    if not others:
        return None
    if here not in order:
        return others[0] if step > 0 else others[-1]
    return order[(order.index(here) + step) % len(order)]


def next_agent(client: Client, here: str, step: int) -> str | None:
    """Returns the id of the agent to go to from `here` (an id). Raises ApiError, NoDaemon, TimedOut."""
    items = client.get("/inbox") if is_installed(NEEDS["next"]) else []
    waiting = list(dict.fromkeys(item["agent_id"] for item in items if not item.get("host")))
    if any(agent != here for agent in waiting):
        return neighbour(waiting, here, step)
    live = [agent["id"] for agent in client.get("/agents") if agent["state"] in _LIVE]
    return neighbour(live, here, step)
