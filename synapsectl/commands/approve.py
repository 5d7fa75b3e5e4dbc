"""`synapsectl approve TASK|AGENT…`: the option of each prompt that says yes."""

import argparse

from synapsectl.context import CommandContext
from synapsectl.prompts import decide_all

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("targets", nargs="+", metavar="TASK|AGENT", help="who asks")
    parser.add_argument(
        "--json", action="store_true", help="print a JSON array: for each, what was answered, or why not"
    )


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    return decide_all(ctx, args.targets, accept=True, as_json=args.json)
