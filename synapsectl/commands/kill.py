"""`synapsectl kill AGENT… | --all`."""

import argparse

from synapsectl.context import CommandContext
from synapsectl.targets import add_agents, each_agent

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    add_agents(parser)


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    return each_agent(args, ctx, "kill", among=lambda agent: agent["pid"] is not None, done="killed")
