"""`synapsectl profiles show|check|new|try`: shows profiles as they count, and makes new ones.

`show` and `check` need no daemon: the daemon's program reads the files itself. The verbs for bundles of profiles are in
`bundles`.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from functools import partial

from synapsectl.client import SLOW_TIMEOUT, agent_path
from synapsectl.context import CommandContext
from synapsectl.daemon_program import daemon_command
from synapsectl.errors import DONE, UsageError
from synapsectl.parsing import SubVerb
from synapsectl.reach import reach
from synapsed.parts.profile_tools.ctl import bundles
from synapsed.parts.profile_tools.ctl.trying import ANSWER_S, MESSAGE, show, try_profile

MOVES_S = 1.0
"""Seconds within which a working program moves something on its screen."""
SIGNALED = 128
"""Number that a shell adds to a signal's number."""


def _configure_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a profile's name")
    _add_version(parser)
    parser.add_argument("--json", action="store_true", help="print it as a JSON document, not as TOML")


def _configure_check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="FILE", help="a profile's file")
    _add_version(parser)
    parser.add_argument(
        "--against",
        metavar="RECORDING",
        help="say how it reads a recording, or a folder of them; 1 where that is wrong",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON document of the advice")


def _configure_new(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} NAME --from-screen AGENT [--no-try] [--json] [-- COMMAND…]"
    parser.add_argument("name", metavar="NAME", help="the new profile's name")
    parser.add_argument(
        "--from-screen", metavar="AGENT", required=True, help="write it from what is on this agent's screen now"
    )
    parser.add_argument("--no-try", action="store_true", help="do not start it and give it one message")
    parser.add_argument("--json", action="store_true", help="print a JSON document of where it is")


def _configure_try(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} NAME [--message TEXT] [--timeout S] [--json] [-- ARGUMENT…]"
    parser.add_argument("name", metavar="NAME", help="a profile's name")
    parser.add_argument("--message", metavar="TEXT", default=MESSAGE, help=f"what it is sent; otherwise {MESSAGE!r}")
    parser.add_argument("--timeout", metavar="S", type=float, default=ANSWER_S, help="seconds for its answer")
    parser.add_argument("--json", action="store_true", help="print a JSON document of what was seen")


def _add_version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--version", dest="release", metavar="X", help="as it counts for that version of the program")


def _read(what: str, args: argparse.Namespace, _: CommandContext) -> int:
    command = daemon_command("profile", what, args.name)
    command += ["--version", args.release] if args.release is not None else []
    command += ["--against", args.against] if getattr(args, "against", None) is not None else []
    command += ["--json"] if args.json else []
    return _code(subprocess.run(command, env=dict(os.environ), check=False).returncode)


def _code(code: int) -> int:
    """Returns the exit code as a shell has it."""
    return code if code >= 0 else SIGNALED - code


def _new(args: argparse.Namespace, ctx: CommandContext) -> int:
    here = ctx
    ctx, agent = reach(ctx, args.from_screen)
    path = agent_path(agent, "screen")
    size = ctx.client.get(path, {"format": "json"})
    drawn = ctx.client.get_bytes(path, {"format": "ansi"})
    time.sleep(MOVES_S)
    _stands_still(size["lines"], ctx.client.get(path, {"format": "json"})["lines"])
    command = daemon_command("profile", "new", args.name, "--agent", args.from_screen)
    command += ["--size", str(size["cols"]), str(size["rows"]), "--command", json.dumps(args.rest or [])]
    command += ["--json"] if args.json else []
    done = subprocess.run(command, env=dict(os.environ), input=drawn, check=False, stdout=subprocess.PIPE)
    code = _code(done.returncode)
    if code == DONE and args.rest and not args.no_try:
        here.client.post("/control/reload", {"dry_run": False}, timeout=SLOW_TIMEOUT)
        code, seen = try_profile(args.name, [], MESSAGE, ANSWER_S, here)
        show(seen, here)
    elif code == DONE:
        here.out.note(f"it was not tried: 'synapsectl reload', then 'synapsectl profiles try {args.name}'")
    sys.stdout.write(done.stdout.decode("utf-8", "replace"))
    return code


def _stands_still(before: list[str], after: list[str]) -> None:
    """Raises UsageError if the screen moves."""
    moved = [row for row, (old, new) in enumerate(zip(before, after, strict=False), 1) if old != new]
    if moved:
        raise UsageError(
            f"its screen moves (row {moved[-1]}): it works, or waits for something. "
            "A profile is written from the screen of a program that rests"
        )


def _try(args: argparse.Namespace, ctx: CommandContext) -> int:
    code, seen = try_profile(args.name, args.rest or [], args.message, args.timeout, ctx)
    if args.json:
        ctx.out.document(seen)
    else:
        show(seen, ctx)
        if seen["answer"]:
            ctx.out.sentence(seen["answer"])
    return code


SUBVERBS = {
    "show": SubVerb(
        "show a profile as it counts",
        _configure_show,
        partial(_read, "show"),
        (("synapsectl profiles show claude > my-claude.toml", "a profile of your own to begin with"),),
    ),
    "check": SubVerb(
        "check a profile's file: what is wrong, or will not work well",
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
    "try": SubVerb(
        "start an agent of a profile, give it one message, and say what does not fit",
        _configure_try,
        _try,
        (("synapsectl profiles try chatty", "before others write to it"),),
        takes_rest=True,
    ),
    **bundles.SUBVERBS,
}
