"""`synapsectl approve TASK|AGENT`: the option of the prompt that says yes."""

import argparse

from synapsectl.context import Context
from synapsectl.prompts import decide

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="TASK|AGENT", help="who asks")


def run(args: argparse.Namespace, ctx: Context) -> int:
    return decide(ctx, args.target, accept=True)
