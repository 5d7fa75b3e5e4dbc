"""Whose process is that? A process belongs to an agent if it, or an ancestor of it, is the agent's program or keeper.

The keeper counts because it adopts what its program's children leave behind. A pid alone is never believed: it is
compared together with the process's start time.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from synapsed.keeper.processes import parent_of, start_mark
from synapsed.model.records import LaunchRecord

__all__ = ["Root", "owner_of"]


ANCESTORS_MAX = 256
"""Generations that are looked at."""


@dataclass(frozen=True, slots=True)
class Root:
    """A launch and the agent it belongs to."""

    agent_id: str
    launch: LaunchRecord


def owner_of(pid: int, roots: Iterable[Root]) -> str | None:
    """The agent to which process `pid` belongs, None for none of them. A few reads of /proc, some
    microseconds each; where there is none it runs `ps`: call it in a thread there."""
    by_pid: dict[int, list[tuple[int, str]]] = {}
    for root in roots:
        launch = root.launch
        by_pid.setdefault(launch.pid, []).append((launch.pid_start, root.agent_id))
        by_pid.setdefault(launch.keeper_pid, []).append((launch.keeper_start, root.agent_id))
    ancestor: int | None = pid
    for _ in range(ANCESTORS_MAX):
        if ancestor is None:
            break
        for start, agent_id in by_pid.get(ancestor, ()):
            if start_mark(ancestor) == start:
                return agent_id
        ancestor = parent_of(ancestor)
    return None
