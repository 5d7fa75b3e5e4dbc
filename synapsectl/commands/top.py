"""`synapsectl top`: shows everything at once, with Textual (`synapsectl.top`)."""

import argparse
import sys

from synapsectl.client import agent_path
from synapsectl.commands.inbox import HOLD_S
from synapsectl.context import CommandContext
from synapsectl.errors import NotInstalled, UsageError
from synapsectl.parsing import seconds
from synapsectl.reach import elsewhere
from synapsectl.upgrading.extras import TUI_INSTALL, TUI_MISSING, has_tui

EXAMPLES = (
    ("synapsectl top", "the agents, the screen of one, what it asks; ? tells the keys"),
    ("synapsectl top claude", "the same, beginning with claude"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", nargs="?", help="the agent to show first; else who needs you first")
    parser.add_argument(
        "--hold",
        type=seconds,
        default=HOLD_S,
        metavar="S",
        help="seconds in which an answer can be taken back, before it is typed (default: %(default)g)",
    )


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    if not has_tui():
        raise NotInstalled(f"{TUI_MISSING}: {TUI_INSTALL}")
    if not (ctx.out.on_terminal and sys.stdin.isatty()) or ctx.dumb:
        raise UsageError("top needs a terminal that obeys escape sequences; a script reads 'synapsectl list --json'")
    from synapsectl.top.app import show  # importing Textual takes half a second: for this verb only

    return show(ctx, hold=args.hold, first=named(ctx, args.agent) if args.agent else None)


def named(ctx: CommandContext, address: str) -> str:
    """Returns the name that the list has for the agent at `address`. Raises ApiError."""
    there, name, host = elsewhere(ctx, address)
    return str(there.client.get(agent_path(name, "status"), {"detail": 1})["name"]) + host
