"""Inboxes of the other hosts: all are asked at the same time, and a slow one does not delay the others.

The answer of a host is bounded in time, bytes and items; a host that does not answer, or exceeds a bound, is named with
the reason.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from synapsed.errors import NotReady
from synapsed.interfaces import AttentionItem, HostSaid
from synapsed.parts.elsewhere.hosts.listing import known
from synapsed.parts.elsewhere.hosts.tunnel import Tunnel

WITHIN_S: Final = 3.0
"""Seconds for a host to answer."""
ALL_BYTES: Final = 16 * 1024 * 1024
"""Most bytes of the answers of all hosts together."""
HOST_BYTES: Final = 1024 * 1024
HOST_ITEMS: Final = 200
"""Most items of one host that are shown: the oldest."""


async def everywhere(tunnels: Sequence[Tunnel]) -> tuple[list[AttentionItem], list[HostSaid]]:
    """Returns the items of all hosts, by the names that their agents have here, and each host's state."""
    share = min(HOST_BYTES, ALL_BYTES // max(1, len(tunnels)))
    told = await asyncio.gather(*(_of(tunnel, share) for tunnel in tunnels))
    return [item for items, _ in told for item in items], [said for _, said in told]


async def _of(tunnel: Tunnel, at_most: int) -> tuple[list[AttentionItem], HostSaid]:
    name = tunnel.host.name
    try:
        answer = await tunnel.ask("/inbox", within=WITHIN_S, at_most=at_most)
        items, left_out = await asyncio.to_thread(read, answer, name)
    except NotReady as refused:
        return [], HostSaid(name=name, state=tunnel.state, error=refused.message)
    except ValueError:
        return [], HostSaid(name=name, state=tunnel.state, error=f"what {name} answers is no inbox: is it as new?")
    return items, HostSaid(name=name, state=tunnel.state, items=len(items), left_out=left_out)


def read(answer: bytes, host: str) -> tuple[list[AttentionItem], int]:
    """Returns the items in the inbox of `host`, as `listing.known` does. Runs in a thread."""
    return known(AttentionItem, answer, host, ("id", "agent", "agent_id"), most=HOST_ITEMS)
