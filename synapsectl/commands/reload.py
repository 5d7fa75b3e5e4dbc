"""`synapsectl reload [--dry-run]`: has the daemon read its configuration again."""

import argparse

from synapsectl.client import SLOW_TIMEOUT
from synapsectl.context import CommandContext
from synapsectl.errors import DONE

EXAMPLES = (
    ("synapsectl reload --dry-run", "what has changed in the configuration"),
    ("synapsectl reload", "and do it"),
)

WORDS = {
    "add": "is listed",
    "start": "is started",
    "restart": "is restarted when it is idle",
    "stop": "is stopped",
    "update": "is brought up to date",
    "refused": "stays as it is",
    "daemon": "needs a new daemon",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only say what would change")
    parser.add_argument("--json", action="store_true", help="print a JSON document")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    with ctx.busy("reading the configuration"):
        told = ctx.client.post("/control/reload", {"dry_run": args.dry_run}, timeout=SLOW_TIMEOUT)
    if args.json:
        ctx.out.document(told)
        return DONE
    for change in told["changes"]:
        name = change["agent"] or "synapsed"
        ctx.out.sentence(f"{name} {WORDS.get(change['action'], change['action'])}: {change['reason']}")
    if not told["changes"]:
        ctx.out.note("nothing has changed")
    return DONE
