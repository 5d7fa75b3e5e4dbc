"""`synapsectl stop AGENT… | --all`."""

import argparse

from synapsectl.context import CommandContext
from synapsectl.targets import add_agents, each_agent

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    add_agents(parser)
    parser.add_argument("--remove", action="store_true", help="forget them too: name, port and conversation")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    return each_agent(
        args,
        ctx,
        "stop",
        body={"remove": args.remove},
        among=lambda agent: args.remove or agent["state"] != "stopped",
        done="stopped and removed" if args.remove else "stopped",
    )
