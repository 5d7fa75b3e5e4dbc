"""`synapsectl tasks [AGENT]`: lists messages and what became of them."""

import argparse
import re
from typing import Any, Final

from synapsectl.ages import age
from synapsectl.client import Client, document_of
from synapsectl.colours import BLUE, BOLD, DIM, GREEN, RED, YELLOW
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, UsageError
from synapsectl.messages import INSTRUCTIONS, is_instructions, part_text
from synapsectl.output import TableCell, one_line, short_id

EXAMPLES = (
    ("synapsectl tasks", "all messages, newest first"),
    ("synapsectl tasks claude --json", "one agent's, for a script"),
)

LIMIT: Final = 500
PAGE: Final = 500
"""Tasks per request, the most that the daemon gives."""
_NEXT: Final = re.compile(r'<([^>]*)>; rel="next"')

HEADINGS = ("TASK", "AGENT", "STATUS", "AGO", "WHAT")
TEXT_SHOWN = 200
"""Characters of a message in a table's cell."""

NEEDS = f"{BOLD};{YELLOW}"
STYLES = {
    "input_required": NEEDS,
    "auth_required": NEEDS,
    "working": BLUE,
    "failed": RED,
    "rejected": RED,
    "completed": GREEN,
}
"""Styles of statuses; all others are dim."""
OPEN = ("input_required", "auth_required", "working", "submitted")
"""Statuses of open tasks, in the order of the list."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", nargs="?", help="only this agent's")
    parser.add_argument("--limit", type=int, default=LIMIT, metavar="N", help="how many (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print a JSON array of the tasks")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    if args.limit < 1:
        raise UsageError("--limit: must be at least 1")
    tasks, more = newest(ctx.client, args.agent, args.limit)
    if more:
        ctx.out.note(f"these are the newest {len(tasks)}, and there are more: see --limit")
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


def newest(client: Client, agent: str | None, limit: int) -> tuple[list[dict[str, Any]], bool]:
    """Returns the newest `limit` tasks, page by page, and True if there are more."""
    found: list[dict[str, Any]] = []
    path, query = "/control/tasks", {"agent": agent} if agent else {}
    while True:
        reply = client.request("GET", path, {**query, "limit": min(PAGE, limit - len(found))})
        found += document_of(reply)
        if (link := _NEXT.search(reply.headers.get("link", ""))) is None or len(found) >= limit:
            return found, link is not None
        path, query = _split(link[1])


def _split(target: str) -> tuple[str, dict[str, str]]:
    from urllib.parse import parse_qsl, urlsplit

    parts = urlsplit(target)
    return parts.path, dict(parse_qsl(parts.query))


def by_need(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the tasks, those that need a person first, then running and waiting ones, then finished ones, then
    instructions that are done; tasks of one kind keep their order."""
    return sorted(tasks, key=_need)


def _need(task: dict[str, Any]) -> int:
    status = task["status"]
    return OPEN.index(status) if status in OPEN else len(OPEN) + (status == "completed" and is_instructions(task))


def row(task: dict[str, Any], names: dict[str, str], most: int) -> tuple[object, ...]:
    """Returns the row under `HEADINGS`."""
    status = task["status"]
    return (
        TableCell(short_id(task["id"]), DIM),
        TableCell(names.get(task["agent_id"], task["agent_id"]), BOLD if status in OPEN[:2] else "", most=most),
        TableCell(status.replace("_", " "), STYLES.get(status, DIM)),
        TableCell(age(task["updated_at"]), DIM),
        TableCell(what(task), DIM if is_instructions(task) else ""),
    )


def what(task: dict[str, Any]) -> str:
    """Returns the task's question, or the reason of its failure, and its message."""
    error, prompt = task.get("error"), task.get("prompt")
    told = str(prompt["prompt"]) if prompt else f"{error['code']}: {error['message']}" if error else ""
    message = INSTRUCTIONS if is_instructions(task) else _message(task)
    return " · ".join(part for part in (one_line(told[:TEXT_SHOWN]), message) if part)


def _plain_row(task: dict[str, Any], names: dict[str, str]) -> tuple[object, ...]:
    """Returns the row for a pipe; its columns stay the same, for scripts."""
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
