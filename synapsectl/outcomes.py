"""How a task that was waited for ended: said on stderr, and as an exit code."""

from typing import Any

from synapsectl.context import Context
from synapsectl.errors import DONE, TASK_FAILED, WAITS
from synapsectl.output import short_id
from synapsectl.prompts import tell_waiting
from synapsectl.waiting import INTERRUPTED

__all__ = ["outcome"]


def outcome(ctx: Context, agent: str, task: dict[str, Any]) -> int:
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
    if task.get("exact") is False:
        out.note("this answer was read off the screen and may not be exact")
    return DONE
