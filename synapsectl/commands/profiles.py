"""`synapsectl profiles list|show|check|new`.

`show` and `check` need no daemon: they are the daemon program's own reading of the files.
"""

import argparse
import json
import os
import subprocess
import sys

from synapsectl.client import agent_path
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, UsageError
from synapsectl.parsing import SubVerb
from synapsectl.reach import reach

TAKES_REST = True

HEADINGS = ("PROFILE", "COMMAND", "PORTS", "SOURCE", "DESCRIPTION")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what", nargs="?", choices=["list", "show", "check", "new"], default="list", help="the default is list"
    )
    parser.add_argument("name", nargs="?", help="show, new: a profile's name; check: a profile's file")
    parser.add_argument(
        "--from-screen",
        metavar="AGENT",
        help="new: write a profile to begin with from what is on its screen now; what starts the program follows '--'",
    )
    parser.add_argument(
        "--version", dest="release", metavar="X", help="show, check: as it counts for that version of the program"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON document")


def _configure_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON array")


def _configure_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="a profile's name")
    _add_version(parser)
    parser.add_argument("--json", action="store_true", help="print it as a JSON document, not as TOML")


def _configure_check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="FILE", help="a profile's file")
    _add_version(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON document of the advice")


def _configure_new(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} NAME --from-screen AGENT [--json] [-- COMMAND…]"
    parser.add_argument("name", nargs="?", metavar="NAME", help="the new profile's name")
    parser.add_argument("--from-screen", metavar="AGENT", help="write it from what is on this agent's screen now")
    parser.add_argument("--json", action="store_true", help="print a JSON document of where it is")


def _add_version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--version", dest="release", metavar="X", help="as it counts for that version of the program")


SUBVERBS = {
    "list": SubVerb("the kinds of agents that can be started", _configure_list),
    "show": SubVerb("a profile as it counts", _configure_show),
    "check": SubVerb("what is wrong in a profile's file, or will not work well", _configure_check),
    "new": SubVerb("write a profile to begin with from an agent's screen", _configure_new, takes_rest=True),
}


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    if args.what == "new":
        return _new(args, ctx)
    if args.rest or getattr(args, "from_screen", None):
        raise UsageError(f"profiles {args.what} takes no command and no --from-screen: profiles new does")
    if args.what != "list":
        if args.name is None:
            raise UsageError(f"profiles {args.what}: name {'a profile' if args.what == 'show' else 'a file'}")
        command = [sys.executable, "-m", "synapsed", "profile", args.what, args.name]
        command += ["--version", args.release] if args.release is not None else []
        command += ["--json"] if args.json else []
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


def _new(args: argparse.Namespace, ctx: CommandContext) -> int:
    if args.name is None or args.from_screen is None:
        raise UsageError("profiles new NAME --from-screen AGENT: name both")
    ctx, agent = reach(ctx, args.from_screen)
    path = agent_path(agent, "screen")
    size = ctx.client.get(path, {"format": "json"})
    drawn = ctx.client.get_bytes(path, {"format": "ansi"})
    command = [sys.executable, "-m", "synapsed", "profile", "new", args.name, "--agent", args.from_screen]
    command += ["--size", str(size["cols"]), str(size["rows"]), "--command", json.dumps(args.rest or [])]
    command += ["--json"] if args.json else []
    return subprocess.run(command, env=dict(os.environ), input=drawn, check=False).returncode
