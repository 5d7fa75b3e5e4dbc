"""`synapsectl start PROFILE`."""

import argparse

from synapsectl.context import Context
from synapsectl.errors import DONE
from synapsectl.launching import add_profile, add_start_options, show_started, start_agent

__all__ = ["TAKES_REST", "configure", "run"]

TAKES_REST = True


def configure(parser: argparse.ArgumentParser) -> None:
    add_profile(parser)
    add_start_options(parser)
    parser.add_argument("--json", action="store_true", help="print the agent as a JSON document")


def run(args: argparse.Namespace, ctx: Context) -> int:
    show_started(start_agent(args, ctx), ctx, as_json=args.json)
    return DONE
