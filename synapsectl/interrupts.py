"""Stops the work of an agent, whoever has sent it."""

from collections.abc import Sequence
from typing import Any

from synapsectl.client import SLOW_TIMEOUT, agent_path
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, REFUSED, ApiError, CtlError


def interrupt(ctx: CommandContext, agent: str, *, as_json: bool) -> int:
    """Interrupts the turn that runs at `agent`, if one does; returns the exit code. Raises ApiError."""
    done, code = _interrupted(ctx, agent)
    if as_json:
        ctx.out.document({"agent": agent, "interrupted": done})
    elif done:
        ctx.out.line(f"{agent} interrupted")
    return code


def interrupt_all(ctx: CommandContext, agents: Sequence[str], *, as_json: bool) -> int:
    """Does the same for each of the agents, with one document for several: of these one that cannot be interrupted does
    not keep the others from it. Returns the exit code. Raises ApiError for a single one."""
    if len(agents) == 1:
        return interrupt(ctx, agents[0], as_json=as_json)
    code, results = DONE, list[dict[str, Any]]()
    for agent in agents:
        try:
            done, told = _interrupted(ctx, agent)
        except CtlError as error:
            if not results and not isinstance(error, ApiError):
                raise
            ctx.out.note(f"{agent}: {error}")
            results.append({"agent": agent} | error.document())
            code = code or error.exit_code
            continue
        results.append({"agent": agent, "interrupted": done})
        code = code or told
        if done and not as_json:
            ctx.out.line(f"{agent} interrupted")
    if as_json:
        ctx.out.document({"agents": results})
    return code


def _interrupted(ctx: CommandContext, agent: str) -> tuple[bool, int]:
    """Interrupts the agent; returns True if it had a turn, and the exit code."""
    done = bool(ctx.client.post(agent_path(agent, "interrupt", control=True))["interrupted"])
    code = DONE
    if not done:
        after = ctx.client.get(agent_path(agent, "status"), {"detail": 1})
        if after["activity"] == "busy":
            code = REFUSED
            ctx.out.note(f"{agent} did not confirm the interrupt and is still busy ({after['evidence']})")
        else:
            ctx.out.note(f"{agent}: there was nothing to interrupt")
    return done, code


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
