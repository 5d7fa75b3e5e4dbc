"""Lists the agents that live while no daemon runs: launches are noted beside the locks that their keepers hold."""

import json

from synapsectl.context import CommandContext
from synapsectl.errors import NoDaemon
from synapsed.config.sockets import state_directory
from synapsed.process.lock_record import programs


def without_daemon(error: NoDaemon, ctx: CommandContext) -> NoDaemon:
    """Returns `error` with the names of the agents that live all the same."""
    if ctx.inside_agent or not (names := sorted(map(_name, programs(state_directory(ctx.environ))))):
        return error
    hint = f"{', '.join(names)} {'lives' if len(names) == 1 else 'live'} on without one: 'synapsectl up' brings it back"
    return NoDaemon(error.reason, hint)


def _name(folder: str) -> str:
    try:
        with open(f"{folder}/launch.json", "rb") as file:
            return str(json.load(file)["agent"]["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return folder.rpartition("/")[2]
