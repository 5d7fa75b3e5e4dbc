"""`synapsectl profiles list`."""

import argparse

from synapsectl.context import Context
from synapsectl.errors import DONE

__all__ = ["configure", "run"]

HEADINGS = ("PROFILE", "COMMAND", "PORTS", "SOURCE", "DESCRIPTION")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", choices=["list"], default="list", help="what to do; the default is list")
    parser.add_argument("--json", action="store_true", help="print a JSON array")


def run(args: argparse.Namespace, ctx: Context) -> int:
    profiles = ctx.client.get("/control/profiles")
    if args.json:
        ctx.out.document(profiles)
        return DONE
    rows = [
        (
            profile["name"],
            profile["command"],
            "-".join(map(str, profile["ports"])),
            profile["source"],
            profile["description"],
        )
        for profile in profiles
    ]
    ctx.out.table(HEADINGS, rows, grows="DESCRIPTION")
    return DONE
