"""`synapsectl tasks [AGENT]`."""

import argparse
from typing import Any

from synapsectl.ages import age
from synapsectl.colours import BLUE, BOLD, DIM, GREEN, RED, YELLOW
from synapsectl.context import CommandContext
from synapsectl.errors import DONE
from synapsectl.messages import part_text
from synapsectl.output import TableCell, one_line, short_id

EXAMPLES = (
    ("synapsectl tasks", "all messages, newest first"),
    ("synapsectl tasks claude --json", "one agent's, for a script"),
)

HEADINGS = ("TASK", "AGENT", "STATUS", "AGO", "WHAT")
TEXT_SHOWN = 200
"""Characters of a message that are worth a table's cell."""

NEEDS = f"{BOLD};{YELLOW}"
STYLES = {
    "input_required": NEEDS,
    "auth_required": NEEDS,
    "working": BLUE,
    "failed": RED,
    "rejected": RED,
    "completed": GREEN,
}
"""Of a status; another one is dim."""
OPEN = ("input_required", "auth_required", "working", "submitted")
"""What is not over, in this order, stands before what is."""


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
        return DONE
    names = {agent["id"]: agent["name"] for agent in ctx.client.get("/agents")}
    if ctx.out.columns is None:
        ctx.out.table((), [_plain_row(task, names) for task in tasks])
    else:
        most = max(12, ctx.out.columns // 4)
        ctx.out.table(HEADINGS, [row(task, names, most) for task in by_need(tasks)], grows="WHAT")
    return DONE


def by_need(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tasks, who needs a person first, then what runs and what waits, then what is over; each as they came."""
    return sorted(tasks, key=lambda task: OPEN.index(task["status"]) if task["status"] in OPEN else len(OPEN))


def row(task: dict[str, Any], names: dict[str, str], most: int) -> tuple[object, ...]:
    """The row of `HEADINGS`."""
    status = task["status"]
    return (
        TableCell(short_id(task["id"]), DIM),
        TableCell(names.get(task["agent_id"], task["agent_id"]), BOLD if status in OPEN[:2] else "", most=most),
        TableCell(status.replace("_", " "), STYLES.get(status, DIM)),
        TableCell(age(task["updated_at"]), DIM),
        what(task),
    )


def what(task: dict[str, Any]) -> str:
    """What it asks, or why it failed, and what was said."""
    error, prompt = task.get("error"), task.get("prompt")
    told = str(prompt["prompt"]) if prompt else f"{error['code']}: {error['message']}" if error else ""
    return " · ".join(part for part in (one_line(told[:TEXT_SHOWN]), _message(task)) if part)


def _plain_row(task: dict[str, Any], names: dict[str, str]) -> tuple[object, ...]:
    """For a pipe: the columns that it always had."""
    return (
        task["id"],
        names.get(task["agent_id"], task["agent_id"]),
        TableCell(task["status"], STYLES.get(task["status"], DIM)),
        age(task["updated_at"]),
        task["priority"],
        _message(task),
    )


def _message(task: dict[str, Any]) -> str:
    return one_line("\n".join(part_text(part) for part in task["message"]["parts"])[:TEXT_SHOWN])
