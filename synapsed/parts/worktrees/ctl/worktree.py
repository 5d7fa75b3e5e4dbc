"""`synapsectl worktree list|diff|merge|remove`: handles the worktrees of `start --worktree NAME`."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from synapsectl.context import CommandContext
from synapsectl.errors import DONE, REFUSED, CtlError, NoDaemon
from synapsectl.living_agents import living
from synapsectl.parsing import SubVerb, of_all, of_one
from synapsed.parts.worktrees.ctl.checkout import Repository, Worktree, ahead, base_of
from synapsed.parts.worktrees.ctl.git import Git
from synapsed.parts.worktrees.ctl.showing import show_changes
from synapsed.parts.worktrees.ctl.unfinished import unfinished_in
from synapsed.parts.worktrees.ctl.unsaved import uncommitted

HEADINGS = ("NAME", "BRANCH", "AGENT", "COMMITS", "UNCOMMITTED", "FOLDER")
GONE = frozenset({"stopped", "exited", "failed"})
"""States of agents without a program."""

NAME = "its name, see 'synapsectl worktree list'"

EXAMPLES = (
    ("synapsectl start claude --worktree login", "an agent in a folder and on a branch of its own"),
    ("synapsectl worktree list", "what there is, and what is not committed or merged yet"),
    ("synapsectl worktree merge login", "into what is checked out here"),
    ("synapsectl worktree remove login", "unless work would be lost"),
)


class AgentIsThere(CtlError):
    exit_code = REFUSED
    code = "AGENT_IS_THERE"


class MergeIsOpen(CtlError):
    exit_code = REFUSED
    code = "MERGE_IS_OPEN"


def _configure_merge(parser: argparse.ArgumentParser) -> None:
    of_one(parser, name=NAME, json="print a JSON document of what was merged, and the commit that it made")
    parser.add_argument(
        "--no-hooks", action="store_true", help="without the repository's own hooks, filters and merge drivers"
    )


def _configure_diff(parser: argparse.ArgumentParser) -> None:
    of_one(parser, name=NAME, json="print a JSON document of it")
    parser.add_argument("--stat", action="store_true", help="only which files, and how much in each")


def _configure_remove(parser: argparse.ArgumentParser) -> None:
    of_one(parser, name=NAME, json="print a JSON document of what it was")
    parser.add_argument("--force", action="store_true", help="also where work is lost by it")


def _list(args: argparse.Namespace, ctx: CommandContext) -> int:
    repository = Repository(Path.cwd())
    found = [_facts(one, _agents_in(one.path, ctx)) for one in repository.worktrees()]
    none = "there is no worktree; 'synapsectl start PROFILE --worktree NAME' makes one"
    ctx.out.rows_of(found, HEADINGS, _row, as_json=args.json, none=none, grows="FOLDER")
    for facts in found:
        if facts["uncommitted"] is None:
            ctx.out.note(
                f"the folder of {facts['name']} is gone: 'synapsectl worktree remove {facts['name']}' forgets it"
            )
    for name in unfinished_in(repository.folder):
        ctx.out.note(f"{name} is half made or half removed: 'synapsectl worktree remove {name}' clears it away")
    return DONE


def _row(facts: dict[str, Any]) -> list[Any]:
    return [value if value is not None else "-" for value in facts.values()]


def _facts(one: Worktree, agents: list[dict[str, Any]]) -> dict[str, Any]:
    git = Git(one.path)
    there = one.path.is_dir()
    base = base_of(git, one) if there else None
    return {
        "name": one.name,
        "branch": one.branch,
        "agent": ", ".join(agent["name"] for agent in agents) or None,
        "commits": ahead(git, base) if base else None,
        "uncommitted": len(uncommitted(git)) if there else None,
        "path": str(one.path),
    }


def _diff(args: argparse.Namespace, ctx: CommandContext) -> int:
    one = Repository(Path.cwd()).find(args.name)
    return show_changes(ctx, Git(one.path), one, stat_only=args.stat, as_json=args.json)


def _merge(args: argparse.Namespace, ctx: CommandContext) -> int:
    repository = Repository(Path.cwd())
    one = repository.find(args.name)
    for agent in _agents_in(one.path, ctx):
        if agent["activity"] not in ("ready", "waiting", "unknown"):
            ctx.out.note(f"{agent['name']} works there: what it does from now on is not merged")

    def allows(runs: Sequence[str]) -> bool:
        told = ", ".join(runs)
        if args.no_hooks or ctx.asks(f"the repository's own {told} would run: merge with them?"):
            return not args.no_hooks
        raise MergeIsOpen(
            f"nothing was merged: the repository has {told} of its own, which an agent may have written; --no-hooks "
            f"merges without them, and 'git merge {one.branch}' with them"
        )

    if repository.merge(one, allows) != 0:
        raise MergeIsOpen(
            "the merge was not made, or waits for you: 'git status' says what is open, 'git merge --abort' undoes it"
        )
    if args.json:
        commit = repository.here.line("rev-parse", "HEAD")
        ctx.out.document({"name": one.name, "path": str(one.path), "branch": one.branch, "commit": commit})
    return DONE


def _remove(args: argparse.Namespace, ctx: CommandContext) -> int:
    repository = Repository(Path.cwd())
    if repository.clear_away(args.name) and args.name not in [one.name for one in repository.worktrees()]:
        left = {"name": args.name, "path": str(repository.folder / args.name), "branch": None, "commit": None}
        ctx.out.either(left, as_json=args.json, line=f"what was left of {args.name} is removed")
        return DONE
    one = repository.find(args.name)
    if Path.cwd().is_relative_to(one.path):
        repository = Repository(repository.main.folder)
    agents = _agents_in(one.path, ctx)
    if running := [agent["name"] for agent in agents if agent["state"] not in GONE]:
        names = " ".join(running)
        raise AgentIsThere(f"{names} runs in {one.path}: 'synapsectl stop {names} --remove' first")
    last = repository.remove(one, force=args.force)
    removed = {"name": one.name, "path": str(one.path), "branch": one.branch, "commit": last}
    told = f"; its last commit was {last[:12]}" if last else ""
    ctx.out.either(removed, as_json=args.json, line=f"{one.name} is removed{told}")
    for agent in agents:
        ctx.out.note(f"{agent['name']} has lost its folder: 'synapsectl stop {agent['name']} --remove' forgets it")
    return DONE


def _agents_in(path: Path, ctx: CommandContext) -> list[dict[str, Any]]:
    """Returns the daemon's agents in that folder; without a daemon those whose programs live on."""
    try:
        agents = ctx.client.get("/agents")
    except NoDaemon:
        agents = [{**agent, "state": "running", "activity": "unknown"} for agent in living(ctx) if agent["cwd"]]
    return [agent for agent in agents if Path(agent["cwd"]).resolve().is_relative_to(path)]


SUBVERBS = {
    "list": SubVerb(
        "list the worktrees of the repository around this folder",
        of_all,
        _list,
        (("synapsectl worktree list", "their agents, commits, and what is not committed"),),
    ),
    "diff": SubVerb(
        "show what has changed in a worktree since it left its branch",
        _configure_diff,
        _diff,
        (
            ("synapsectl worktree diff login", "committed or not, new files too"),
            ("synapsectl worktree diff login --stat", "which files, and how much in each"),
        ),
    ),
    "merge": SubVerb(
        "merge a worktree's branch into what is checked out here",
        _configure_merge,
        _merge,
        (
            (
                "synapsectl worktree merge login",
                "as 'git merge' does; you are asked before hooks of the repository run",
            ),
        ),
    ),
    "remove": SubVerb(
        "remove a worktree and its branch, unless work would be lost",
        _configure_remove,
        _remove,
        (
            ("synapsectl worktree remove login", "refused while anything is uncommitted or in no other branch"),
            ("synapsectl worktree remove login --force", "and what it has is lost"),
        ),
    ),
}
