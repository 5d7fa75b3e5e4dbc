"""Verbs that do one thing to several agents: `stop`, `restart`, `park`, `kill`."""

import argparse
from collections.abc import Callable, Iterator
from typing import Any

from synapsectl.client import SLOW_TIMEOUT, agent_path
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, ApiError, UsageError

__all__ = ["add_agents", "each_agent"]

AT_ONCE = 16
"""Agents asked to stop at the same time."""


def add_agents(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agents", nargs="*", metavar="agent", help="names, ids, type-ports or types")
    parser.add_argument("--all", action="store_true", help="every agent")
    parser.add_argument("--json", action="store_true", help="print a JSON array of the agents as they are afterwards")


def each_agent(
    args: argparse.Namespace,
    ctx: CommandContext,
    verb: str,
    *,
    body: dict[str, Any] | None = None,
    among: Callable[[dict[str, Any]], bool],
    done: str,
) -> int:
    """POST `verb` for the agents asked for; with `--all` for those that satisfy `among`. One that is refused does not
    keep the others from being served; the first refusal's exit code counts."""
    if bool(args.agents) == args.all:
        raise UsageError(f"name agents, or all of them with --all: synapsectl {verb} AGENT… | --all")
    if args.all:
        names = [agent["name"] for agent in ctx.client.get("/agents") if among(agent)]
    else:
        names = list(dict.fromkeys(args.agents))
    code, after = DONE, []
    for name, result in zip(names, _at_once(ctx, names, verb, body), strict=True):
        if isinstance(result, ApiError):
            ctx.out.note(f"{name}: {result}" if len(names) > 1 else str(result))
            code = code or result.exit_code
            continue
        after.append(result)
        if not args.json:
            ctx.out.line(f"{result['name']} {done}")
    if args.json:
        ctx.out.document(after)
    elif not names:
        ctx.out.note("no agent is known: there is nothing to do")
    return code


def _at_once(
    ctx: CommandContext, names: list[str], verb: str, body: dict[str, Any] | None
) -> Iterator[dict[str, Any] | ApiError]:
    """The results in the order of `names`; agents that take their time to stop do so side by side."""

    def ask(name: str) -> dict[str, Any] | ApiError:
        try:
            agent: dict[str, Any] = ctx.client.post(agent_path(name, verb, control=True), body, timeout=SLOW_TIMEOUT)
        except ApiError as error:
            return error
        return agent

    if len(names) < 2:
        yield from map(ask, names)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(ask, names)
