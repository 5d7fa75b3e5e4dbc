"""`start --worktree NAME`: the folder that an agent is started in, made if it is not there."""

import argparse
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from synapsectl.context import CommandContext
from synapsectl.errors import BadAnswer, CtlError, MaybeAccepted, TimedOut, UsageError
from synapsed.parts.worktrees.ctl.checkout import Repository, Worktree, check_name
from synapsed.parts.worktrees.ctl.git import Git
from synapsed.parts.worktrees.ctl.isolation import FILTERS, commands
from synapsed.parts.worktrees.ctl.unsaved import some, submodules

MAY_RUN = (BadAnswer, MaybeAccepted, TimedOut)
"""Errors after which the daemon may have started the agent."""


@contextmanager
def worktree_for(args: argparse.Namespace, ctx: CommandContext, folder: str) -> Iterator[str]:
    """Yields the folder in the worktree that matches `folder`, to start in. A worktree that was made for an agent which
    then does not start is removed again. Raises UsageError, GitRefused, CannotBeDeleted, SetupFailed."""
    check_name(args.worktree)
    repository = Repository(Path(folder))
    repository.clear_away(args.worktree)
    known = next((one for one in repository.worktrees() if one.name == args.worktree), None)
    if known is not None and args.base is not None and repository.commit(args.base) != known.base:
        raise UsageError(
            f"the worktree {known.name} exists already, so where it begins cannot be chosen: leave --base out"
        )
    if known is not None and not known.path.is_dir():
        raise UsageError(f"{known.path} is gone: 'synapsectl worktree remove {known.name}' forgets it")
    worktree = known or _made(args, ctx, repository)
    question = "the repository's own set-up command is {}: run it?"
    try:
        repository.set_up(worktree, args.setup, ctx.own_environment, lambda command: ctx.asks(question.format(command)))
    except KeyboardInterrupt:
        if known is None:
            _take_back(repository, worktree)
        raise
    inside = worktree.path / Path(folder).relative_to(repository.here.folder)
    try:
        yield str(inside if inside.resolve().is_relative_to(worktree.path) and inside.is_dir() else worktree.path)
    except (CtlError, KeyboardInterrupt) as error:
        may_run = isinstance(error, MAY_RUN) or (isinstance(error, KeyboardInterrupt) and bool(error.args))
        if known is None and not may_run:  # an interrupt with words says that the agent may go on
            _take_back(repository, worktree)
        raise


def _take_back(repository: Repository, worktree: Worktree) -> None:
    with suppress(CtlError):
        repository.remove(worktree, force=False)


def _made(args: argparse.Namespace, ctx: CommandContext, repository: Repository) -> Worktree:
    worktree, copied = repository.add(args.worktree, args.base)
    told = f", with {copied} ignored files of .worktreeinclude" if copied else ""
    ctx.out.note(f"{worktree.path} is made, on branch {worktree.branch}{told}")
    if filters := commands(repository.here.settings(), FILTERS):
        ctx.out.note(
            f"the repository's own {', '.join(filters)} is not run, for an agent may have written it: "
            "in your own configuration (git config --global) it is"
        )
    if empty := submodules(Git(worktree.path)):
        path = shlex.quote(str(worktree.path))
        ctx.out.note(
            f"its submodules are empty ({some(empty)}): 'git -C {path} submodule update --init --recursive' fills them"
        )
    return worktree
