"""`synapsectl uninstall`."""

import argparse

from synapsectl.context import Context
from synapsectl.errors import DONE, UsageError
from synapsectl.service.manager import NoServiceManager, this_machines

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="show what would be removed, and change nothing")


def run(args: argparse.Namespace, ctx: Context) -> int:
    if ctx.inside_agent:
        raise UsageError("an agent removes no services")
    manager = this_machines(ctx.environ)
    files = manager.installed()
    if not files:
        ctx.out.note("no service is installed")
        return DONE
    for file in files:
        ctx.out.line(f"{'would remove' if args.dry_run else 'remove'} {file.path}")
    if args.dry_run:
        return DONE
    if problem := manager.problem():
        raise NoServiceManager(f"{problem}; nothing was changed")
    manager.unload()
    for file in files:
        file.remove()
    manager.forget()
    ctx.out.note(f"the service is gone, its agents have ended; state and configuration stay ({ctx.paths.state})")
    return DONE
