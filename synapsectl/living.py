"""Which agents live where no daemon runs: their keepers hold locks, and what was launched is noted beside them."""

import json
from pathlib import Path

from synapsectl.context import CommandContext
from synapsectl.errors import NoDaemon
from synapsed.lockrecord import KEEPER_LOCK
from synapsed.locks import is_locked


def living(state: Path) -> list[str]:
    """Their names, in order."""
    locks = [lock for lock in state.glob(f"agents/*/{KEEPER_LOCK}") if is_locked(str(lock))]
    return sorted(_name(lock.parent) for lock in locks)


def without_daemon(error: NoDaemon, ctx: CommandContext) -> NoDaemon:
    """`error`, and which agents live all the same."""
    if ctx.inside_agent or not (names := living(ctx.paths.state)):
        return error
    hint = f"{', '.join(names)} {'lives' if len(names) == 1 else 'live'} on without one: 'synapsectl up' brings it back"
    return NoDaemon(error.reason, hint)


def _name(folder: Path) -> str:
    try:
        return str(json.loads((folder / "launch.json").read_bytes())["agent"]["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return folder.name
