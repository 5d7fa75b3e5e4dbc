"""`synapsectl version`."""

import argparse
import json
import subprocess
from typing import Any

from synapsectl.context import CommandContext
from synapsectl.errors import DONE, NoDaemon
from synapsed import __version__, own_python

EXAMPLES = (("synapsectl version", "of the tool, and of the daemon that runs"),)

TIMEOUT_S = 20.0


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON document")


def _installed() -> dict[str, Any] | None:
    """The versions of the daemon program beside this tool, as it tells them itself: whatever runs may be another."""
    command = own_python.command("synapsed.cli", "version", "--json")
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT_S)
        told: dict[str, Any] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return told


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    try:
        daemon = ctx.client.get("/healthz")["version"]
    except NoDaemon:
        daemon = None
    if args.json:
        told = {"synapsectl": __version__, "synapsed": daemon, "socket": ctx.client.socket_path}
        ctx.out.document(told | {"installed": _installed()})
        return DONE
    ctx.out.line(f"synapsectl {__version__}")
    ctx.out.line(f"synapsed {daemon}" if daemon else "synapsed does not run")
    return DONE
