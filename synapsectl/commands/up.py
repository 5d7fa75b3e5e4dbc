"""`synapsectl up`: brings the daemon back, and says which agents live."""

import argparse
import time
from typing import Any

from synapsectl.agentrows import state_of
from synapsectl.context import CommandContext
from synapsectl.daemon import ensure_daemon
from synapsectl.errors import DONE, NoDaemon, UsageError

EXAMPLES = (
    ("synapsectl up", "the daemon, and with it the agents that ran"),
    ("synapsectl up --take-over", "also if they ran last on a host that will not come back"),
)

SETTLED_S = 10.0
"""Seconds for the agents to be found, or started; slower ones are shown in their present state."""
LOOK_S = 0.1
COMES_UP = "comes up by itself"
"""Evidence of an agent that the daemon has not started yet."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--take-over",
        action="store_true",
        help="take the state over although a daemon on another host, or in another container, used it last; programs "
        "that ran there count as ended",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON array of the agents that live")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    if args.take_over:
        _take_over(ctx)
    ensure_daemon(ctx, spawn=True)
    with ctx.busy("looking for the agents"):
        agents = _settled(ctx)
    alive = [agent for agent in agents if agent["pid"] is not None]
    if args.json:
        ctx.out.document(alive)
        return DONE
    for agent in alive:
        ctx.out.line(f"{agent['name']}\t{state_of(agent)}\t{agent['cwd']}")
    if not alive:
        ctx.out.note("the daemon is up; no agent lives")
    return DONE


def _take_over(ctx: CommandContext) -> None:
    from synapsectl.spawn import take_over

    if ctx.inside_agent:
        raise UsageError("--take-over is for a person: type it in a shell that is no agent's")
    try:
        ctx.client.get("/healthz")
    except NoDaemon:
        take_over(ctx)


def _settled(ctx: CommandContext) -> list[dict[str, Any]]:
    """Returns the agents, once their activity is known."""
    until = time.monotonic() + SETTLED_S
    while True:
        agents: list[dict[str, Any]] = ctx.client.get("/agents")
        unsettled = any(_is_unsettled(agent) for agent in agents)
        if not unsettled or time.monotonic() >= until:
            return agents
        time.sleep(LOOK_S)


def _is_unsettled(agent: dict[str, Any]) -> bool:
    """Returns True while the agent is being found, started or ended, or is about to be."""
    moves = agent["state"] in ("starting", "stopping") or agent["evidence"] == COMES_UP
    return moves or (agent["state"] == "running" and agent["activity"] in ("starting", "unknown"))
