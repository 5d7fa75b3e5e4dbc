"""`synapsectl tasks [AGENT]`."""

import argparse

from synapsectl.ages import age
from synapsectl.context import CommandContext
from synapsectl.errors import DONE
from synapsectl.messages import part_text
from synapsectl.output import one_line, short_id

EXAMPLES = (
    ("synapsectl tasks", "all messages, newest first"),
    ("synapsectl tasks claude --json", "one agent's, for a script"),
)

HEADINGS = ("TASK", "AGENT", "STATUS", "UPDATED", "PRIORITY", "MESSAGE")
TEXT_SHOWN = 200
"""Characters of a message that are worth a table's cell."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", nargs="?", help="only this agent's")
    parser.add_argument("--json", action="store_true", help="print a JSON array of the tasks")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    tasks = ctx.client.get("/control/tasks", {"agent": args.agent} if args.agent else None)
    if args.json:
        ctx.out.document(tasks)
        return DONE
    if not tasks:
        ctx.out.note("there are no tasks")
    names = {agent["id"]: agent["name"] for agent in ctx.client.get("/agents")} if tasks else {}
    rows = [
        (
            short_id(task["id"]) if ctx.out.on_terminal else task["id"],
            names.get(task["agent_id"], task["agent_id"]),
            task["status"],
            age(task["updated_at"]),
            task["priority"],
            one_line("\n".join(part_text(part) for part in task["message"]["parts"])[:TEXT_SHOWN]),
        )
        for task in tasks
    ]
    if rows:
        ctx.out.table(HEADINGS, rows, grows="MESSAGE")
    return DONE
