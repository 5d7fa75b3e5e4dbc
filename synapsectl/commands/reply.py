"""`synapsectl reply TEXT`: sends an agent's reply to the agent or person that asked it."""

import argparse
import sys
from typing import Any

from synapsectl.client import agent_path
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, UsageError
from synapsectl.given_paths import from_home
from synapsectl.messages import build_parts, divided, give, read_text
from synapsectl.output import one_line

EXAMPLES = (
    ("synapsectl reply 'the tests pass'", "in an agent's shell: to whoever asked it"),
    ("synapsectl reply --from codex --to 1f0c9a2b 'done'", "for an agent, from another shell"),
)

TAKES_REST = True


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} [options] [--] [TEXT | -]"
    parser.add_argument("words", nargs="*", metavar="TEXT", help="the reply; - reads it from stdin")
    parser.add_argument("--to", metavar="TASK", help="the task to reply to, otherwise what was asked last")
    parser.add_argument("--from", dest="sender", metavar="AGENT", help="who replies, otherwise the agent of this shell")
    parser.add_argument(
        "--file", action="append", type=from_home, default=[], metavar="FILE", help="a file to go with it; repeatable"
    )
    parser.add_argument("--json", action="store_true", help="print the task that is replied to as a JSON document")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    given = " ".join([*args.words, *(args.rest or [])])
    sender = args.sender or ctx.own_agent
    if not given and not args.file:
        raise UsageError("there is no text: synapsectl reply TEXT")
    if sender is None:
        raise UsageError("this is no agent's shell: say with --from which agent replies")
    small, large = divided(args.file)
    parts = build_parts(read_text(given, sys.stdin.buffer) if given else "", small, large)
    parts += [give(ctx.client, path) for path in large]
    body: dict[str, Any] = {"message": {"role": "agent", "parts": parts}}
    if args.to:
        body["metadata"] = {"in_reply_to": args.to}
    task = ctx.client.post(agent_path(sender, "tasks/reply"), body)["task"]
    ctx.out.either({"task": task}, as_json=args.json, line=one_line(task["id"]))
    return DONE
