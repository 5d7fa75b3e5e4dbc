"""`synapsectl cancel TASK|AGENT`: cancels a task, or interrupts any turn of an agent, also one that a person began."""

import argparse

from synapsectl.client import task_path
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, ApiError
from synapsectl.interrupts import interrupt, stop_background
from synapsectl.output import short_id
from synapsectl.prompts import looks_like_task

EXAMPLES = (
    ("synapsectl cancel 1f0c9a2b", "this task"),
    ("synapsectl cancel claude", "whatever it does now, as Esc would"),
    ("synapsectl cancel claude --background", "the shells and subagents that it left running"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="TASK|AGENT", help="a task's id, or an agent whose turn is interrupted")
    parser.add_argument(
        "--background",
        action="store_true",
        help="what the agent's program runs in its background, instead of its turn",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON document")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    if args.background:
        return stop_background(ctx, args.target, as_json=args.json)
    if looks_like_task(args.target):
        try:
            task = ctx.client.post(task_path(args.target, "cancel"))["task"]
        except ApiError as error:
            if error.code != "TASK_NOT_FOUND":
                raise
            return _agent(args, ctx, error)
        ctx.out.either({"task": task}, as_json=args.json, line=f"{short_id(task['id'])} {task['status']}")
        return DONE
    return interrupt(ctx, args.target, as_json=args.json)


def _agent(args: argparse.Namespace, ctx: CommandContext, no_task: ApiError) -> int:
    try:
        return interrupt(ctx, args.target, as_json=args.json)
    except ApiError as error:
        # Neither is known: what looks like a task's id was meant as one.
        raise (no_task if error.code == "UNKNOWN_AGENT" else error) from None
