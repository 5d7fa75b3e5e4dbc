"""Finds the agent that a process belongs to, by three kinds of evidence, each of which is enough.

- Ancestry: the process, or an ancestor, is the agent's program or keeper. The keeper counts because orphaned
  descendants of its program become its children. A pid alone proves nothing: it is compared together with the start
  time.
- Control group: the process is in the systemd unit of the agent's keeper, even if its parent is another process now.
- Environment: the process, or an ancestor, was started with the agent's token. This works before the daemon has
  recorded a launch, and for a process that has left the process tree and the unit.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from synapsed.keeper.processes import parent_of, start_mark
from synapsed.model.records import LaunchRecord
from synapsed.shared.regex import regex

ANCESTORS_MAX = 256
"""Number of generations that are searched."""

TOKEN_VARIABLE = b"SYNAPSE_AGENT_TOKEN="

_READ = 64 * 1024

_UNIT = regex(r"/(synapse-agent-[^/\n]+\.service)(?:/|$)", re.MULTILINE)


class Root(NamedTuple):
    """A launch, and the id of the agent that it belongs to."""

    agent_id: str
    launch: LaunchRecord


def owner_of(
    pid: int, roots: Iterable[Root], tokens: Mapping[str, str] | None = None, *, proc: Path = Path("/proc")
) -> str | None:
    """Returns the id of the agent to which process `pid` belongs; None if it belongs to none. `tokens` has the agents'
    ids by their tokens. Does a few reads of /proc, some microseconds each. On a system without /proc it runs `ps`: call
    it in a thread then."""
    known = list(roots)
    family = list(_ancestors(pid))
    return (
        _by_ancestry(family, known)
        or _by_unit(pid, known, proc)
        or next((owner for owner in (_by_token(one, tokens or {}, proc) for one in family) if owner is not None), None)
    )


def _ancestors(pid: int) -> Iterator[int]:
    """Yields `pid`, its parent, and so on."""
    ancestor: int | None = pid
    for _ in range(ANCESTORS_MAX):
        if ancestor is None:
            return
        yield ancestor
        ancestor = parent_of(ancestor)


def _by_ancestry(family: Iterable[int], roots: Iterable[Root]) -> str | None:
    """Returns the closest agent, if one agent runs inside another."""
    generations = {pid: generation for generation, pid in enumerate(family)}
    found: list[tuple[int, str]] = []
    for agent_id, launch in roots:
        for pid, start in ((launch.pid, launch.pid_start), (launch.keeper_pid, launch.keeper_start)):
            if pid in generations and start_mark(pid) == start:
                found.append((generations[pid], agent_id))
    return min(found)[1] if found else None


def _by_unit(pid: int, roots: Iterable[Root], proc: Path) -> str | None:
    """Returns the agent whose living keeper is in the same unit as `pid`. The unit's name alone is not enough: agents
    of other daemons have units with names of the same form."""
    if (unit := _unit_of(pid, proc)) is None:
        return None
    for root in roots:
        keeper = root.launch.keeper_pid
        if _unit_of(keeper, proc) == unit and start_mark(keeper) == root.launch.keeper_start:
            return root.agent_id
    return None


def _unit_of(pid: int, proc: Path) -> str | None:
    found = _UNIT.search(_read(f"{proc}/{pid}/cgroup").decode("utf-8", "replace"))
    return found[1] if found else None


def _by_token(pid: int, tokens: Mapping[str, str], proc: Path) -> str | None:
    if not tokens:
        return None
    _, named, rest = (b"\0" + _read(f"{proc}/{pid}/environ")).partition(b"\0" + TOKEN_VARIABLE)
    return tokens.get(rest.partition(b"\0")[0].decode("ascii", "replace")) if named else None


def _read(path: str) -> bytes:
    """Returns the file's content; empty if there is no such file, or it cannot be read. Uses plain system calls, since
    it runs for every ancestor of each connection's process, and pathlib took half of the time."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    pieces: list[bytes] = []
    try:
        while piece := os.read(file, _READ):
            pieces.append(piece)
    except OSError:
        return b""
    finally:
        os.close(file)
    return b"".join(pieces)
