"""Stops the work of an agent, whoever has sent it."""

from synapsectl.client import SLOW_TIMEOUT, agent_path
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, REFUSED


def interrupt(ctx: CommandContext, agent: str, *, as_json: bool) -> int:
    """Interrupts the turn that runs at `agent`, if one does; returns the exit code. Raises ApiError."""
    done = bool(ctx.client.post(agent_path(agent, "interrupt", control=True))["interrupted"])
    code = DONE
    if not done:
        after = ctx.client.get(agent_path(agent, "status"), {"detail": 1})
        if after["activity"] == "busy":
            code = REFUSED
            ctx.out.note(f"{agent} did not confirm the interrupt and is still busy ({after['evidence']})")
        else:
            ctx.out.note(f"{agent}: there was nothing to interrupt")
    if as_json:
        ctx.out.document({"agent": agent, "interrupted": done})
    elif done:
        ctx.out.line(f"{agent} interrupted")
    return code


def stop_background(ctx: CommandContext, agent: str, *, as_json: bool) -> int:
    """Stops the background tasks of `agent`'s program; returns the exit code. Raises ApiError."""
    path = agent_path(agent, "interrupt", control=True)
    done = bool(ctx.client.post(path, {"background": True}, timeout=SLOW_TIMEOUT)["interrupted"])
    if as_json:
        ctx.out.document({"agent": agent, "interrupted": done})
    elif done:
        ctx.out.line(f"nothing runs in the background of {agent}")
    else:
        ctx.out.note(f"{agent} did not stop all that runs in its background: see 'synapsectl status {agent}'")
    return DONE if done else REFUSED
