"""`synapsectl run PROFILE`: starts an agent and attaches to it; ends with the exit code of its program."""

import argparse

from synapsectl.commands.attach import add_attach_options, attach, require_terminal
from synapsectl.context import CommandContext
from synapsectl.errors import DONE
from synapsectl.launching import (
    add_profile,
    add_start_options,
    add_worktree_options,
    start_by_choice,
    withheld_from,
)
from synapsectl.terminal_keys import parse_keys

EXAMPLES = (
    ("synapsectl run claude", "start it and look at it; ctrl-] leaves it running"),
    ("synapsectl run generic -- python3 -i", "any program with a prompt"),
)

TAKES_REST = True


def configure(parser: argparse.ArgumentParser) -> None:
    add_profile(parser)
    add_start_options(parser)
    add_worktree_options(parser)
    add_attach_options(parser)


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    detach = parse_keys(args.detach_keys)
    require_terminal("run", ctx)
    agent = start_by_choice(args, ctx)
    ctx.out.remark(f"[{agent['name']} ({agent['id']}) at {agent['endpoint']}; {args.detach_keys or 'no key'} detaches]")
    if withheld := withheld_from(agent):
        ctx.out.remark(f"[{withheld}]")
    for note in (*([agent["drift"]] if agent.get("drift") else []), *agent.get("settings", ())):
        ctx.out.remark(f"[{note}]")
    code = attach(ctx, agent["id"], detach, read_only=False, ends_as_program=True)
    return DONE if code is None else code
