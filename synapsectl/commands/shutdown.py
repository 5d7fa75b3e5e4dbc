"""`synapsectl shutdown`."""

import argparse
import time

from synapsectl.client import SLOW_TIMEOUT
from synapsectl.context import Context
from synapsectl.errors import DONE, NoDaemon, TimedOut

__all__ = ["configure", "run"]

POLL = 0.05
"""Seconds between two looks whether it is still there."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep-agents", action="store_true", help="leave the agents running, for the next daemon")


def run(args: argparse.Namespace, ctx: Context) -> int:
    ctx.client.post("/control/shutdown", {"keep_agents": args.keep_agents}, timeout=SLOW_TIMEOUT)
    deadline = time.monotonic() + SLOW_TIMEOUT
    while True:
        try:
            ctx.client.connect().close()
        except NoDaemon:
            ctx.out.note("the daemon is down" + ("; its agents go on" if args.keep_agents else ""))
            return DONE
        if time.monotonic() > deadline:
            raise TimedOut(f"the daemon is still there after {SLOW_TIMEOUT:g} s")
        time.sleep(POLL)
