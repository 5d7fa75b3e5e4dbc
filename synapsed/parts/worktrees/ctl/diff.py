"""`synapsectl diff AGENT`: the changes in the folder of an agent."""

import argparse
from pathlib import Path

from synapsectl.client import agent_path
from synapsectl.context import CommandContext
from synapsectl.errors import UsageError
from synapsed.parts.worktrees.ctl.checkout import Repository
from synapsed.parts.worktrees.ctl.showing import show_changes

EXAMPLES = (
    ("synapsectl diff claude", "what it has changed, new files too"),
    ("synapsectl diff claude --stat", "which files, and how much in each"),
    ("synapsectl diff claude | git apply", "the same changes here"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", metavar="AGENT", help="whose folder, which is in a checkout of git")
    parser.add_argument("--stat", action="store_true", help="only which files, and how much in each")
    parser.add_argument("--json", action="store_true", help="print a JSON document of it")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    if "@" in args.agent.removeprefix("@"):
        raise UsageError("the folder of an agent on another host is there: run 'synapsectl diff' on that host")
    folder = Path(ctx.client.get(agent_path(args.agent, "status"), {"detail": 1})["cwd"])
    if not folder.is_dir():
        raise UsageError(f"{args.agent} is in {folder}, which is no folder any more")
    repository = Repository(folder)
    return show_changes(
        ctx, repository.here, repository.around(folder.resolve()), stat_only=args.stat, as_json=args.json
    )
