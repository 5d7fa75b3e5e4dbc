"""`synapsectl uninstall`: removes the service of the person's session."""

import argparse
from collections.abc import Sequence

from synapsectl.context import CommandContext
from synapsectl.errors import DONE, UsageError
from synapsectl.service.available import this_machines
from synapsectl.service.files import WantedFile
from synapsectl.service.manager import NoServiceManager, ServiceManager

EXAMPLES = (("synapsectl uninstall", "the service goes, agents and their files stay"),)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="show what would be removed, and change nothing")
    parser.add_argument("--json", action="store_true", help="print a JSON document of what was removed")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    if ctx.inside_agent:
        raise UsageError("an agent removes no services: a person does, in a shell of their own")
    manager = this_machines(ctx.environ)
    files = manager.installed()
    if not files:
        ctx.out.note("no service is installed")
    elif not args.dry_run and (problem := manager.problem()):
        raise NoServiceManager(f"{problem}; nothing was changed")
    for file in () if args.json else files:
        ctx.out.line(f"{'would remove' if args.dry_run else 'remove'} {file.path}")
    if files and not args.dry_run:
        _remove(ctx, manager, files)
    if args.json:
        ctx.out.document({"dry_run": args.dry_run, "removed": [str(file.path) for file in files]})
    return DONE


def _remove(ctx: CommandContext, manager: ServiceManager, files: Sequence[WantedFile]) -> None:
    with ctx.busy("stopping the service and its agents"):
        manager.unload()
        for file in files:
            file.remove()
        manager.forget()
    ctx.out.note(f"the service is gone, its agents have ended; state and configuration stay ({ctx.paths.state})")
