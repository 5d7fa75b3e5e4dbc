"""How a task that was waited for ended: said on stderr, and as an exit code."""

from collections.abc import Mapping
from typing import Any

from synapsectl.context import CommandContext
from synapsectl.errors import DONE, TASK_FAILED, WAITS
from synapsectl.output import short_id
from synapsectl.prompts import tell_waiting
from synapsectl.waiting import INTERRUPTED


def outcome(ctx: CommandContext, agent: str, task: dict[str, Any]) -> int:
    """0 completed, 1 failed, canceled or rejected, 7 waits for a person; what there is to say of it goes to stderr."""
    out = ctx.out
    if task["status"] in INTERRUPTED:
        tell_waiting(ctx, agent, short_id(task["id"]), task)
        return WAITS
    if task["status"] != "completed":
        error = task.get("error") or {}
        reason = f": {error.get('code')}: {error.get('message')}" if error else ""
        out.note(f"task {short_id(task['id'])} {task['status']}{reason}")
        return TASK_FAILED
    return DONE


def tell_inexact(ctx: CommandContext, tasks: Mapping[str, dict[str, Any]]) -> None:
    """Say whose answers (`tasks` by agent) no exact channel has told."""
    read = [agent for agent, task in tasks.items() if task["status"] == "completed" and task.get("exact") is False]
    if read:
        whose = "this answer was" if len(tasks) == 1 else f"the answers of {', '.join(read)} were"
        ctx.out.note(f"{whose} read off the screen and may not be exact")
    for agent, task in tasks.items():
        if task.get("truncated"):
            whose = "this answer" if len(tasks) == 1 else f"the answer of {agent}"
            ctx.out.note(f"{whose} is cut: its beginning had left the screen; 'synapsectl logs {agent}' has the output")
