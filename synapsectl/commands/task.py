"""`synapsectl task ID`: shows one task with its answer, or waits for it."""

import argparse
from typing import Any

from synapsectl.ages import age
from synapsectl.attending import Attendant
from synapsectl.client import task_path
from synapsectl.colours import DIM
from synapsectl.commands.tasks import STYLES
from synapsectl.context import CommandContext
from synapsectl.errors import DONE
from synapsectl.given_paths import from_home
from synapsectl.handed_over import prepare, save, tell
from synapsectl.messages import INSTRUCTIONS, is_instructions, part_text
from synapsectl.parsing import seconds
from synapsectl.prompts import behind, show_prompt
from synapsectl.waiting import SENT_AGAIN, answer_of, outcome, sent_again, tell_inexact

EXAMPLES = (
    ("synapsectl task 1f0c9a2b", "one message and its answer"),
    ("synapsectl task 1f0c9a2b --wait", "wait for the answer, and print it"),
    ("synapsectl task 1f0c9a2b --save out", "its files, in the folder out"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="a task's id, or its first eight characters or more")
    parser.add_argument("--wait", action="store_true", help="wait for its end, and print the answer's text only")
    parser.add_argument(
        "--timeout", type=seconds, metavar="S", help="seconds after which the waiting ends (exit code 5)"
    )
    parser.add_argument(
        "--save", type=from_home, metavar="DIR", help="save the files and data that it handed over in this folder"
    )
    parser.add_argument("--json", action="store_true", help="print the task as a JSON document")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    if args.save is not None:
        prepare(args.save)
    task = ctx.client.get(task_path(args.task))["task"]
    code = DONE
    if args.wait:
        deadline = ctx.client.limit(args.timeout)
        name = _name(task, ctx)
        attendant = Attendant(ctx, name, deadline=deadline, follow=False, asks=not args.json)
        task = attendant.wait(task, None, sent=task["id"])
        code = outcome(ctx, name, task)
        tell_inexact(ctx, {name: task})
        if code == DONE and not args.json:
            ctx.out.text(answer_of(task) or "")
    elif not args.json and args.save is None:
        _show(task, ctx)
    saved = {} if args.save is None else {"saved": save(ctx.out, task, args.save)}
    if args.json:
        ctx.out.document({"task": task} | saved)
    elif args.save is None:
        tell(ctx.out, task)
    elif not saved["saved"]:
        ctx.out.note("there is nothing to save")
    return code


def _name(task: dict[str, Any], ctx: CommandContext) -> str:
    """Returns the name of the task's agent; the agent's id if it is gone, or not visible to us."""
    known = ctx.client.get("/agents")
    return next((str(agent["name"]) for agent in known if agent["id"] == task["agent_id"]), str(task["agent_id"]))


def _show(task: dict[str, Any], ctx: CommandContext) -> None:
    out, name = ctx.out, _name(task, ctx)
    status = out.styled(task["status"], STYLES.get(task["status"], DIM))
    out.styled_line(f"{task['id']}  {status}  {age(task['updated_at'])} ago")
    out.line(f"  agent     {name}")
    out.line(f"  priority  {task['priority']}")
    if error := task.get("error"):
        out.sentence(f"  error     {error['code']}: {error['message']}")
    if sent_again(task):
        out.sentence(f"  twice     {SENT_AGAIN}")
    waits = task.get("waits_behind") or {}
    if waits.get("held"):
        out.line(f"  held      {waits['held']}")
    elif waits:
        ahead = f", after {waits['ahead']} more" if waits["ahead"] else ""
        told = behind(name, waits.get("task"), waits.get("prompt"))
        out.line(f"  queue     {told}{ahead}")
    lines = [line for part in task["message"]["parts"] for line in part_text(part).splitlines()]
    if out.on_terminal and is_instructions(task):
        out.styled_line(
            out.styled(f"  > {INSTRUCTIONS}, {len(lines)} lines: all of them with '| cat' behind the command", DIM)
        )
        lines = []
    for line in lines:
        out.line(f"  > {line}")
    if task.get("prompt"):
        out.remark("it waits for a person:")
        show_prompt(out, task["prompt"])
    answer = answer_of(task)
    if answer is not None:
        out.line()
        out.text(answer)
