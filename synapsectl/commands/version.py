"""`synapsectl version`: prints the versions of the tool and of the daemon."""

import argparse
import json
import subprocess
from typing import Any

from synapsectl.context import CommandContext
from synapsectl.errors import DONE, ApiError, NoDaemon
from synapsed import __version__, own_python
from synapsed.process.installed import commit, with_commit

EXAMPLES = (("synapsectl version", "of the tool, and of the daemon that runs"),)

TIMEOUT_S = 20.0


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON document")


def _installed() -> dict[str, Any] | None:
    """Returns the versions of the daemon program beside this tool, from the program itself: the running daemon may be
    of another version."""
    command = own_python.command("synapsed.cli", "version", "--json")
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT_S)
        told: dict[str, Any] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return told


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    own = commit()
    daemon, other = _daemon(ctx)
    if args.json:
        commits = {"synapsectl": own or None, "synapsed": other or None}
        told = {"synapsectl": __version__, "synapsed": daemon, "socket": ctx.client.socket_path}
        ctx.out.document(told | {"commits": commits, "installed": _installed()})
        return DONE
    ctx.out.line(f"synapsectl {with_commit(__version__, own)}")
    ctx.out.line(f"synapsed {with_commit(daemon, other)}" if daemon else "synapsed does not run")
    if other and own and other != own:
        ctx.out.note("the daemon is not of this tool's commit: restart it, and its agents go on")
    return DONE


def _daemon(ctx: CommandContext) -> tuple[str | None, str]:
    """Returns version and commit of the running daemon; only a person gets the commit. Raises ApiError if the
    version is refused."""
    try:
        version = ctx.client.get("/healthz")["version"]
    except NoDaemon:
        return None, ""
    try:
        return version, str(ctx.client.get("/control/status").get("commit", ""))
    except (ApiError, NoDaemon):
        return version, ""
