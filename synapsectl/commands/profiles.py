"""`synapsectl profiles list|show|check|new`.

`show` and `check` need no daemon: they are the daemon program's own reading of the files.
"""

import argparse
import json
import os
import subprocess
from functools import partial

from synapsectl.client import agent_path
from synapsectl.context import CommandContext
from synapsectl.errors import DONE
from synapsectl.parsing import SubVerb
from synapsectl.reach import reach
from synapsed import own_python

HEADINGS = ("PROFILE", "COMMAND", "PORTS", "SOURCE", "DESCRIPTION")
DEFAULT = "list"
SIGNALED = 128
"""Added to a signal's number."""

EXAMPLES = (
    ("synapsectl profiles", "what 'synapsectl start' can start here"),
    ("synapsectl profiles show claude", "one of them as it counts, your keys over the built-in ones"),
)


def _configure_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON array")


def _configure_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a profile's name")
    _add_version(parser)
    parser.add_argument("--json", action="store_true", help="print it as a JSON document, not as TOML")


def _configure_check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="FILE", help="a profile's file")
    _add_version(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON document of the advice")


def _configure_new(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} NAME --from-screen AGENT [--json] [-- COMMAND…]"
    parser.add_argument("name", metavar="NAME", help="the new profile's name")
    parser.add_argument(
        "--from-screen", metavar="AGENT", required=True, help="write it from what is on this agent's screen now"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON document of where it is")


def _add_version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--version", dest="release", metavar="X", help="as it counts for that version of the program")


def _list(args: argparse.Namespace, ctx: CommandContext) -> int:
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


def _read(what: str, args: argparse.Namespace, _: CommandContext) -> int:
    command = own_python.command("synapsed.cli", "profile", what, args.name)
    command += ["--version", args.release] if args.release is not None else []
    command += ["--json"] if args.json else []
    return _code(subprocess.run(command, env=dict(os.environ), check=False).returncode)


def _code(code: int) -> int:
    """The exit code as a shell has it."""
    return code if code >= 0 else SIGNALED - code


def _new(args: argparse.Namespace, ctx: CommandContext) -> int:
    ctx, agent = reach(ctx, args.from_screen)
    path = agent_path(agent, "screen")
    size = ctx.client.get(path, {"format": "json"})
    drawn = ctx.client.get_bytes(path, {"format": "ansi"})
    command = own_python.command("synapsed.cli", "profile", "new", args.name, "--agent", args.from_screen)
    command += ["--size", str(size["cols"]), str(size["rows"]), "--command", json.dumps(args.rest or [])]
    command += ["--json"] if args.json else []
    return _code(subprocess.run(command, env=dict(os.environ), input=drawn, check=False).returncode)


SUBVERBS = {
    "list": SubVerb(
        "the kinds of agents that can be started",
        _configure_list,
        _list,
        (("synapsectl profiles list --json", "as a script reads them"),),
    ),
    "show": SubVerb(
        "a profile as it counts",
        _configure_show,
        partial(_read, "show"),
        (("synapsectl profiles show claude > my-claude.toml", "a profile of your own to begin with"),),
    ),
    "check": SubVerb(
        "what is wrong in a profile's file, or will not work well",
        _configure_check,
        partial(_read, "check"),
        (("synapsectl profiles check my-claude.toml", "before it is put beside the others"),),
    ),
    "new": SubVerb(
        "write a profile to begin with from an agent's screen",
        _configure_new,
        _new,
        (("synapsectl profiles new chatty --from-screen generic -- chatty --tui", "from one that runs as 'generic'"),),
        takes_rest=True,
    ),
}
