"""`synapsectl notify test`: sends a test to the places where a person is notified (the sinks)."""

import argparse
from typing import Any

from synapsectl.context import CommandContext
from synapsectl.errors import DONE, TASK_FAILED
from synapsectl.parsing import SubVerb

EXAMPLES = (
    ("synapsectl notify test", "send a test to every place of [notify] (its sinks)"),
    ("synapsectl notify test phone", "only to the one of that name"),
)

DESKTOP = "'[notify.sinks.desktop]' and below it 'type = \"desktop\"'"


def _configure_test(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sink", metavar="SINK", nargs="?", help="only this one")
    parser.add_argument("--json", action="store_true", help="print the daemon's answer as a JSON document")


def _test(args: argparse.Namespace, ctx: CommandContext) -> int:
    with ctx.busy("sending tests"):
        found = ctx.client.post("/control/notify/test", {"sink": args.sink} if args.sink else {})
    if ctx.out.on_terminal and not args.json:
        for one in (one for one in found if not one["ok"]):
            ctx.out.note(f"{one['sink']}: {one['detail']}")  # whole: the table has one line for it
    code = DONE if all(one["ok"] for one in found) else TASK_FAILED
    place = f"{DESKTOP} in {ctx.paths.config_file} and 'synapsectl reload' make one"
    none = f"there is no place yet where you are told (a sink): {place}"
    ctx.out.rows_of(found, ("SINK", "TYPE", "STATE", "DETAIL"), _row, as_json=args.json, none=none, grows="DETAIL")
    return code


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    return one["sink"], one["type"], "ok" if one["ok"] else "FAILED", one["detail"]


SUBVERBS = {
    "test": SubVerb(
        "send a test to the places where you are notified: the sinks of [notify]", _configure_test, _test, EXAMPLES
    ),
}
