"""Replaces a running daemon by one that reads the changed `[fleet]`, which a daemon reads only at its start."""

import time

from synapsectl.client import SLOW_TIMEOUT
from synapsectl.context import CommandContext
from synapsectl.daemon import ensure_daemon
from synapsectl.errors import CtlError, NoDaemon, TimedOut
from synapsectl.spawn import POLL, holds_lock


def take_up(ctx: CommandContext) -> None:
    """Makes sure that a daemon runs with the present configuration. The agents of an earlier one, and their turns, go
    on. Raises CtlError."""
    try:
        pid = ctx.client.get("/control/status").get("pid")
    except NoDaemon:
        ensure_daemon(ctx, spawn=True)
        return
    if _restarted_by_manager(ctx):
        return
    with ctx.busy("starting the daemon again, its agents go on"):
        ctx.client.post("/control/shutdown", {"keep_agents": True}, timeout=SLOW_TIMEOUT)
        deadline = time.monotonic() + SLOW_TIMEOUT
        while holds_lock(ctx):
            if time.monotonic() > deadline:
                raise TimedOut(
                    f"the daemon that runs (pid {pid}) does not end: 'synapsectl doctor' says why; then try again"
                )
            time.sleep(POLL)
    ensure_daemon(ctx, spawn=True)


def _restarted_by_manager(ctx: CommandContext) -> bool:
    """Returns True if the daemon of this home is a service, and restarts it then."""
    from synapsectl.service.available import this_machines
    from synapsectl.service.manager import NoServiceManager

    try:
        manager = this_machines(ctx.environ)
    except NoServiceManager:
        return False
    if not manager.is_ours() or manager.problem() is not None or not manager.state().running:
        return False
    with ctx.busy("starting the service again, its agents go on"):
        if manager.name == "launchd":
            manager.load()
        else:
            manager.restart()
    deadline = time.monotonic() + SLOW_TIMEOUT
    while True:
        try:
            ctx.client.get("/control/status")
        except CtlError:
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL)
        else:
            return True
