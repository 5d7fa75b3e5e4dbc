"""`synapsectl restart [--when-idle] AGENT… | --all`."""

import argparse

from synapsectl.context import CommandContext
from synapsectl.targets import add_agents, each_agent

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    add_agents(parser)
    parser.add_argument("--when-idle", action="store_true", help="not now: when no turn runs and nobody types")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    later: bool = args.when_idle
    done = "is restarted when it is idle" if later else "restarted"
    return each_agent(args, ctx, "restart", body={"when_idle": later}, among=lambda _: True, done=done)
