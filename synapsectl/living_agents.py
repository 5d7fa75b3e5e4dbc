"""Lists the agents that live while no daemon runs: launches are noted beside the locks that their keepers hold."""

import json

from synapsectl.context import CommandContext
from synapsectl.errors import NoDaemon
from synapsed.config.sockets import state_directory
from synapsed.process.lock_record import programs


def living(ctx: CommandContext) -> list[dict[str, str]]:
    """Returns name and folder of each; its folder is empty if it is not known."""
    return [_noted(folder) for folder in programs(state_directory(ctx.environ))]


def without_daemon(error: NoDaemon, ctx: CommandContext) -> NoDaemon:
    """Returns `error` with the names of the agents that live all the same."""
    if ctx.inside_agent or not (names := sorted(agent["name"] for agent in living(ctx))):
        return error
    hint = f"{', '.join(names)} {'lives' if len(names) == 1 else 'live'} on without one: 'synapsectl up' brings it back"
    return NoDaemon(error.reason, hint)


def _noted(folder: str) -> dict[str, str]:
    try:
        with open(f"{folder}/launch.json", "rb") as file:
            agent = json.load(file)["agent"]
            return {"name": str(agent["name"]), "cwd": str(agent["cwd"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {"name": folder.rpartition("/")[2], "cwd": ""}
