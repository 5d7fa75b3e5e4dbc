"""Who waits for whom, and whether one more wait would never end. Pure.

An edge `(a, b)` says that agent a goes on only when b has answered. A wait that closes a circle never ends, nor does a
wait for oneself.
"""

from collections import deque
from collections.abc import Iterable

from synapsed.errors import WouldDeadlock


def circle(edges: Iterable[tuple[str, str]], waiter: str, waited: str) -> list[str] | None:
    """The agents in the circle that the wait of `waiter` for `waited` would close, beginning and ending with `waiter`;
    None where it closes none."""
    if waiter == waited:
        return [waiter, waiter]
    follows: dict[str, list[str]] = {}
    for one, other in edges:
        follows.setdefault(one, []).append(other)
    ways = deque([[waiter, waited]])
    seen = {waited}
    while ways:
        way = ways.popleft()
        for other in follows.get(way[-1], ()):
            if other == waiter:
                return [*way, waiter]
            if other not in seen:
                seen.add(other)
                ways.append([*way, other])
    return None


def check_wait(edges: Iterable[tuple[str, str]], waiter: str, waited: str) -> None:
    """Raise WouldDeadlock where the wait would close a circle."""
    way = circle(edges, waiter, waited)
    if way is None:
        return
    if len(way) == 2:
        raise WouldDeadlock(f"{waiter} would wait for itself", agents=way)
    raise WouldDeadlock(
        f"{waited} waits for {waiter} already ({' for '.join(way[1:])}), so {waiter} cannot wait for it: answer first, "
        "with the question in the answer, or send without waiting for a reply",
        agents=way,
    )
