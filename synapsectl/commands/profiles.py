"""`synapsectl profiles list`."""

import argparse
from typing import Any

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
    rows = [[_cell(profile.get(heading.lower(), profile.get("name"))) for heading in HEADINGS] for profile in profiles]
    ctx.out.table(HEADINGS, rows, grows="DESCRIPTION")
    return DONE


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(_cell(item) for item in value)
    return "-" if value in (None, "") else str(value)
