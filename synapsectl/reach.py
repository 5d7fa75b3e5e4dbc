"""Finds the daemon that has an agent: this host's, or for `name@host` the other host's, whose socket ssh has brought
here."""

from synapsectl.client import Client, host_path
from synapsectl.context import CommandContext
from synapsectl.errors import ApiError, NotInstalled
from synapsectl.prompts import asked, looks_like_task
from synapsectl.verbs import is_installed


def reach(ctx: CommandContext, address: str) -> tuple[CommandContext, str]:
    """Returns a context with the agent's own daemon, and the agent's address there. Raises ApiError: UNKNOWN_AGENT for
    an unknown host, NOT_READY for one that is away, FORBIDDEN for an agent; NotInstalled."""
    name, at, host = address.removeprefix("@").rpartition("@")
    if not at:
        return ctx, address
    if not is_installed("elsewhere"):
        raise NotInstalled(f"{address!r} is on another host: the part elsewhere reaches it, and is not installed")
    found = ctx.client.get(host_path(host))
    if found["state"] != "up":
        raise ApiError("NOT_READY", f"{host} is {found['state']}: {found['error'] or 'it is being connected to'}")
    there = CommandContext(ctx.environ, ctx.out, as_json=ctx.as_json)
    there.client = Client(found["local"])
    return there, name


def asks_at(ctx: CommandContext, address: str) -> tuple[CommandContext, str, str]:
    """Finds the daemon as `elsewhere` does, for an answer to a question. If the host is not one that ssh reaches (a
    host of a fleet), or the part that reaches hosts is missing, the question is answered here if the agent asks it in a
    task that was sent from this host. A host that ssh reaches and that is away is NOT_READY: an agent with that name in
    a task here may be on another machine."""
    try:
        return elsewhere(ctx, address)
    except (ApiError, NotInstalled) as error:
        name = address.removeprefix("@")
        if error.code not in ("UNKNOWN_AGENT", "NOT_INSTALLED") or looks_like_task(name.partition("@")[0]):
            raise
        try:
            asks = asked(ctx.client, name).prompt is not None
        except ApiError as none:
            if none.code == "AMBIGUOUS":
                raise
            asks = False
        if not asks:
            raise
        return ctx, name, ""


def elsewhere(ctx: CommandContext, address: str) -> tuple[CommandContext, str, str]:
    """Returns the same as `reach`, with `@HOST` to put after names of that host; empty for this host."""
    there, name = reach(ctx, address)
    return there, name, "" if there is ctx else "@" + address.rpartition("@")[2]
