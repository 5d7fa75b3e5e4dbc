"""`synapsectl version`."""

import argparse

from synapsectl.context import Context
from synapsectl.errors import DONE, NoDaemon
from synapsed import __version__

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON document")


def run(args: argparse.Namespace, ctx: Context) -> int:
    try:
        daemon = ctx.client.get("/healthz")["version"]
    except NoDaemon:
        daemon = None
    if args.json:
        ctx.out.document({"synapsectl": __version__, "synapsed": daemon, "socket": ctx.client.socket_path})
        return DONE
    ctx.out.line(f"synapsectl {__version__}")
    ctx.out.line(f"synapsed {daemon}" if daemon else "synapsed does not run")
    return DONE
