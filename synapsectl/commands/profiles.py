"""`synapsectl profiles list|show|check`.

`show` and `check` need no daemon: they are the daemon program's own reading of the files.
"""

import argparse
import os
import subprocess
import sys

from synapsectl.context import Context
from synapsectl.errors import DONE, UsageError

__all__ = ["configure", "run"]

HEADINGS = ("PROFILE", "COMMAND", "PORTS", "SOURCE", "DESCRIPTION")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what", nargs="?", choices=["list", "show", "check"], default="list", help="what to do; the default is list"
    )
    parser.add_argument("name", nargs="?", help="show: a profile's name; check: a profile's file")
    parser.add_argument(
        "--version", dest="release", metavar="X", help="show, check: as it counts for that version of the program"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON array")


def run(args: argparse.Namespace, ctx: Context) -> int:
    if args.what != "list":
        if args.name is None:
            raise UsageError(f"profiles {args.what}: name {'a profile' if args.what == 'show' else 'a file'}")
        command = [sys.executable, "-m", "synapsed", "profile", args.what, args.name]
        command += ["--version", args.release] if args.release is not None else []
        return subprocess.run(command, env=dict(os.environ), check=False).returncode
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
    ctx.out.table(HEADINGS, rows, grows="SOURCE")
    return DONE
