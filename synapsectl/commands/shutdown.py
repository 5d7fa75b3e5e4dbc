"""`synapsectl shutdown`: stops the daemon, and returns when it has ended."""

import argparse
import time
from contextlib import ExitStack, suppress

from synapsectl.client import SLOW_TIMEOUT
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, NoDaemon, TimedOut
from synapsectl.spawn import guarded, holds_lock, note_shutdown

EXAMPLES = (
    ("synapsectl shutdown --keep-agents", "the next daemon finds them running"),
    ("synapsectl shutdown", "the next daemon starts them again in their conversations"),
)

POLL = 0.05
"""Seconds between two checks that it has ended."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep-agents", action="store_true", help="leave the agents running, for the next daemon")
    parser.add_argument("--json", action="store_true", help="print a JSON document once it is down")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    with ExitStack() as held:
        if not ctx.inside_agent:
            with suppress(OSError):  # without the folder no daemon can be started either
                held.enter_context(guarded(ctx))
        with ctx.busy("stopping the daemon" + ("" if args.keep_agents else " and its agents")):
            _shut_down(args, ctx)
    if args.json:
        ctx.out.document({"down": True, "keep_agents": args.keep_agents})
    ctx.out.note("the daemon is down" + ("; its agents go on" if args.keep_agents else ""))
    return DONE


def _shut_down(args: argparse.Namespace, ctx: CommandContext) -> None:
    ctx.client.post("/control/shutdown", {"keep_agents": args.keep_agents}, timeout=SLOW_TIMEOUT)
    deadline = time.monotonic() + SLOW_TIMEOUT
    while _is_there(ctx):
        if time.monotonic() > deadline:
            raise TimedOut(f"the daemon is still there after {SLOW_TIMEOUT:g} s: see 'synapsectl doctor'")
        time.sleep(POLL)
    if not ctx.inside_agent:
        note_shutdown(ctx)


def _is_there(ctx: CommandContext) -> bool:
    try:
        ctx.client.connect().close()
    except NoDaemon:
        # The lock goes with the process: after the socket, and after the last write to the database. An agent that may
        # do this knows the socket of its daemon, not its home.
        return not ctx.inside_agent and holds_lock(ctx)
    return True
