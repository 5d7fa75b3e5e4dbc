"""`synapsectl screen AGENT`."""

import argparse

from synapsectl.client import agent_path
from synapsectl.context import Context
from synapsectl.errors import DONE, UsageError
from synapsectl.reach import reach

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", help="a name, id, type-port or type; NAME@HOST on another host")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--ansi", action="store_true", help="with its colours")
    form.add_argument("--json", action="store_true", help="cells, cursor and modes as a JSON document")


def run(args: argparse.Namespace, ctx: Context) -> int:
    if args.ansi and ctx.dumb:
        raise UsageError("--ansi: TERM says that this terminal obeys no escape sequences; without it comes the text")
    ctx, agent = reach(ctx, args.agent)
    path = agent_path(agent, "screen")
    if args.json:
        ctx.out.document(ctx.client.get(path, {"format": "json"}))
    elif args.ansi:
        ctx.out.raw(ctx.client.get_bytes(path, {"format": "ansi"}).rstrip(b"\n") + b"\x1b[0m\n")
    else:
        ctx.out.text(ctx.client.get_bytes(path, {"format": "text"}).decode("utf-8", "replace").rstrip("\n"))
    return DONE
