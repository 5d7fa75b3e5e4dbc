"""`synapsectl start PROFILE`."""

import argparse

from synapsectl.context import Context
from synapsectl.errors import DONE
from synapsectl.launching import add_start_options, start_agent

__all__ = ["TAKES_REST", "configure", "run"]

TAKES_REST = True


def configure(parser: argparse.ArgumentParser) -> None:
    add_start_options(parser)
    parser.add_argument("--json", action="store_true", help="print the agent as a JSON document")


def run(args: argparse.Namespace, ctx: Context) -> int:
    agent = start_agent(args, ctx)
    if args.json:
        ctx.out.document(agent)
    elif ctx.out.on_terminal:
        ctx.out.line(f"{agent['name']}  {agent['id']}  {agent['endpoint']}  pid {agent['pid']}")
        ctx.out.note(f"'synapsectl attach {agent['name']}' puts this terminal on it")
    else:
        ctx.out.table((), [[agent["name"], agent["id"], agent["endpoint"], agent["pid"]]])
    return DONE
