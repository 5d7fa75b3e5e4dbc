"""Shows the changes of a checkout in a terminal, to a pipe or to a script."""

from synapsectl.colours import BOLD, CYAN, GREEN, RED, painted
from synapsectl.context import CommandContext
from synapsectl.errors import DONE
from synapsectl.output import harmless
from synapsed.parts.worktrees.ctl.checkout import Worktree, base_of, changes
from synapsed.parts.worktrees.ctl.git import Git
from synapsed.parts.worktrees.ctl.isolation import FILTERS, commands

STYLES = (("diff ", BOLD), ("index ", BOLD), ("--- ", BOLD), ("+++ ", BOLD), ("@@", CYAN), ("+", GREEN), ("-", RED))
"""Beginnings of a diff's lines, with their colours; the first that fits counts."""


def show_changes(ctx: CommandContext, git: Git, worktree: Worktree | None, *, stat_only: bool, as_json: bool) -> int:
    """Prints the changes; a pipe gets the bytes as they are, for `git apply`."""
    base = base_of(git, worktree)
    changed, unseen = changes(git, base, stat_only=stat_only)
    if as_json:
        told = {"path": str(git.folder), "branch": git.line("branch", "--show-current") or None, "base": base}
        ctx.out.document(told | {"diff": changed.decode("utf-8", "replace"), "unseen": unseen})
    elif not ctx.out.on_terminal:
        ctx.out.raw(changed)
    else:
        for line in changed.decode("utf-8", "replace").splitlines():
            style = next((style for start, style in STYLES if line.startswith(start)), "") if not stat_only else ""
            ctx.out.styled_line(painted(harmless(line), style) if ctx.out.coloured else harmless(line))
    if filters := commands(git.settings(), FILTERS):
        ctx.out.note(f"the repository's own {', '.join(filters)} was not run, for an agent may have written it")
    if unseen:
        ctx.out.note(f"not shown, for git cannot read it: {', '.join(unseen)}")
    if not changed and not unseen:
        ctx.out.note("nothing has changed")
    return DONE
