"""`synapsectl profiles list`: lists the kinds of agents; the part profile_tools adds sub-verbs that show, check, make
and pass on profiles."""

import argparse

from synapsectl.context import CommandContext
from synapsectl.errors import DONE
from synapsectl.parsing import SubVerb

HEADINGS = ("PROFILE", "COMMAND", "PORTS", "SOURCE", "DESCRIPTION")
DEFAULT = "list"

EXAMPLES = (
    ("synapsectl profiles", "what 'synapsectl start' can start here"),
    ("synapsectl profiles show claude", "one of them as it counts, your keys over the built-in ones"),
)


def _configure_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON array")


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
            profile["description"] + (f" (not verified: {told})" if (told := profile.get("unverified")) else ""),
        )
        for profile in profiles
    ]
    ctx.out.table(HEADINGS, rows, grows="SOURCE")
    return DONE


SUBVERBS = {
    "list": SubVerb(
        "list the kinds of agents that can be started",
        _configure_list,
        _list,
        (("synapsectl profiles list --json", "as a script reads them"),),
    ),
}
