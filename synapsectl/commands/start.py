"""`synapsectl start PROFILE|TEAM`: starts an agent, or the members of a team."""

import argparse
from typing import Any

from synapsectl.client import SLOW_TIMEOUT, agent_path
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, ApiError, CtlError, UsageError
from synapsectl.launching import (
    add_profile,
    add_start_options,
    add_worktree_options,
    show_started,
    start_agent,
    start_by_choice,
)
from synapsectl.shell import bring
from synapsectl.teams import members_of

EXAMPLES = (
    ("synapsectl start claude", "an agent named claude, in this folder"),
    ("synapsectl start claude --name api --cwd ~/src/api", "another one, elsewhere"),
    ("synapsectl start codex -- --model o4", "what stands behind -- is the program's"),
    ("synapsectl start claude --worktree login", "on a branch of its own, in a folder beside the repository"),
    ("synapsectl start claude --save", "and again with every daemon, until 'stop --remove'"),
)

TAKES_REST = True


def configure(parser: argparse.ArgumentParser) -> None:
    add_profile(parser)
    parser.usage = f"{parser.prog} (PROFILE | TEAM) [options] [-- ARGUMENT…]"
    add_start_options(parser)
    add_worktree_options(parser)
    parser.add_argument("--json", action="store_true", help="print the agent as a JSON document")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    try:
        show_started(start_by_choice(args, ctx), ctx, as_json=args.json, watched=bool(args.rest))
    except ApiError as error:
        if error.code != "UNKNOWN_PROFILE" or (members := members_of(ctx, args.profile)) is None:
            raise
        return _start_team(members, args, ctx)
    return DONE


def _start_team(members: list[str], args: argparse.Namespace, ctx: CommandContext) -> int:
    """Starts the members that do not run; one that cannot be started does not stop the others."""
    if args.name or args.port or args.no_port or args.rest or args.worktree:
        raise UsageError("a name, a port, a worktree and arguments are one agent's: start the members by themselves")
    known = {agent["name"]: agent for agent in ctx.client.get("/agents")}
    code, started = DONE, list[dict[str, Any]]()
    for name in members:
        try:
            if name not in known:
                agent = start_agent(argparse.Namespace(**{**vars(args), "profile": name, "name": name}), ctx)
            elif known[name]["pid"] is None:
                bring(ctx, [name])
                body = {"without_approval": True} if args.without_approval else None
                agent = ctx.client.post(agent_path(name, "restart", control=True), body, timeout=SLOW_TIMEOUT)
            else:
                agent = known[name]
        except CtlError as error:
            if not started and not isinstance(error, ApiError):
                raise
            ctx.out.note(f"{name}: {error}")
            code = code or error.exit_code
            continue
        started.append(agent)
        if not args.json:
            show_started(agent, ctx, as_json=False)
    if args.json:
        ctx.out.document(started)
    return code
