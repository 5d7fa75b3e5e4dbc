"""`synapsectl install`: makes the daemon a service of the person's session."""

import argparse
import time

from synapsectl.client import SLOW_TIMEOUT
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, REFUSED, CtlError, NoDaemon, TimedOut, UsageError
from synapsectl.service.available import this_machines
from synapsectl.service.files import WantedFile
from synapsectl.service.manager import NoServiceManager, ServiceManager
from synapsectl.service.port import refusal, served
from synapsectl.service.settings import ServiceSettings, gather
from synapsectl.spawn import holds_lock
from synapsectl.upgrading.installation import commands, find_installation

EXAMPLES = (
    ("synapsectl install --dry-run", "what would be written, and where"),
    ("synapsectl install --start", "a service of your session, from now on"),
)

POLL = 0.05
"""Seconds between two checks that the former daemon has ended."""


class InCache(CtlError):
    """The service would run files of a cache, which others empty."""

    exit_code = REFUSED
    code = "IN_CACHE"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="show what would be written, and change nothing")
    parser.add_argument("--start", action="store_true", help="start the service, or restart it where it changed")
    parser.add_argument("--force", action="store_true", help="install it even from a cache, which others may empty")
    parser.add_argument("--json", action="store_true", help="print a JSON document of what was changed")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    if ctx.inside_agent:
        raise UsageError("an agent installs no services: a person does, in a shell of their own")
    ctx.check_user()
    _check_place(ctx, insists=args.force or args.dry_run)
    manager = this_machines(ctx.environ)
    with ctx.busy("reading the configuration, and asking the login shell"):
        problem = manager.problem()
        if problem and not args.dry_run:
            raise NoServiceManager(f"{problem}; nothing was changed")
        settings = gather(ctx.paths, ctx.environ)
    if problem:
        ctx.out.note(f"it could not be installed now: {problem}")
    wanted = manager.files(settings)
    changed = [file for file in wanted if not file.is_current()]
    kept = {file.path for file in wanted}
    gone = [file for file in manager.installed() if file.path not in kept]
    told = {"dry_run": args.dry_run, "changed": [str(file.path) for file in changed]}
    told["removed"] = [str(file.path) for file in gone]
    if not args.json:
        _show(ctx, changed, gone)
    _remarks(ctx, settings)
    if args.dry_run:
        if args.json:
            ctx.out.document(told)
        return DONE
    _put(ctx, manager, settings, changed, gone)
    _begin(ctx, manager, start=args.start)
    if args.json:
        state = manager.state()
        ctx.out.document(told | {"service": {"running": state.running, "enabled": state.enabled, "pid": state.pid}})
    return DONE


def _check_place(ctx: CommandContext, *, insists: bool) -> None:
    """Says where a service would be without its files one day. Raises InCache unless the person `insists`."""
    installed = find_installation()
    if not installed.cached:
        return
    told = (
        f"{installed.cached}, and the service would run from there: '{' && '.join(commands(installed))}' and then its "
    )
    told += "'synapsectl install' make one that stays"
    if not insists:
        raise InCache(f"{told}; nothing was changed (--force: all the same)")
    ctx.out.note(told)


def _begin(ctx: CommandContext, manager: ServiceManager, *, start: bool) -> None:
    if start:
        _start(ctx, manager)
    elif manager.state().outdated:
        ctx.out.note("the service runs as it was: 'synapsectl install --start' restarts it, its agents go on")
    for why, command in manager.advice():
        ctx.out.note(f"{why}: '{command}' changes that")


def _show(ctx: CommandContext, changed: list[WantedFile], gone: list[WantedFile]) -> None:
    for file in changed:
        for line in file.diff():
            ctx.out.line(line)
    for file in gone:
        for line in file.diff(removed=True):
            ctx.out.line(line)
    if not changed and not gone:
        ctx.out.note("all files are up to date")


def _remarks(ctx: CommandContext, settings: ServiceSettings) -> None:
    if settings.listen and settings.listen not in served(ctx) and (why := refusal(settings.listen)):
        ctx.out.note(
            f"{settings.listen} cannot be listened on ({why}): the service comes up without it, reached by its control "
            "socket, and takes it once it is free; or set another with 'listen' under [api] of config.toml"
        )
    if settings.login.problem:
        ctx.out.note(settings.login.problem)
    agents: dict[str, list[str]] = {}
    for agent in settings.agents:
        agents.setdefault(agent.command, []).append(agent.name)
    for program in settings.login.programs:
        who = f"{program.name} (agent {', '.join(agents.get(program.name, []))})"
        if program.path is None:
            ctx.out.note(
                f"{who} was not found by {settings.login.shell}{': ' if program.remark else ''}{program.remark}"
            )
        elif program.remark:
            ctx.out.note(f"{who}: {program.remark}")


def _put(
    ctx: CommandContext,
    manager: ServiceManager,
    settings: ServiceSettings,
    changed: list[WantedFile],
    gone: list[WantedFile],
) -> None:
    before = manager.state()
    if not changed and not gone and before.enabled:
        return
    settings.paths.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
    for file in changed:
        file.write()
    for file in gone:
        file.remove()
    if manager.name == "launchd":
        _let_go(ctx)  # loading the service ends it
    with ctx.busy("installing the service"):
        manager.load()
    ctx.out.note(f"the service is installed ({manager.name}) and starts with your session")


def _start(ctx: CommandContext, manager: ServiceManager) -> None:
    state = manager.state()
    if state.running and not state.outdated:
        ctx.out.note(f"the service runs (pid {state.pid})")
        return
    if not state.running:
        _let_go(ctx)
    with ctx.busy("starting the service"):
        if state.running:
            manager.restart()
        else:
            manager.start()
        state = manager.state()
    if not state.running:
        raise CtlError(f"the service is {state.words}; see {manager.how_to_log()}")
    ctx.out.note(f"the service runs (pid {state.pid})")


def _let_go(ctx: CommandContext) -> None:
    """Ends a daemon that no service manager started; its agents go on, and the service takes them over."""
    with ctx.busy("stopping the daemon that runs"):
        try:
            pid = ctx.client.get("/control/status").get("pid")
            ctx.client.post("/control/shutdown", {"keep_agents": True}, timeout=SLOW_TIMEOUT)
        except NoDaemon:
            return
        deadline = time.monotonic() + SLOW_TIMEOUT
        while holds_lock(ctx):
            if time.monotonic() > deadline:
                raise TimedOut(
                    f"the daemon that runs (pid {pid}) does not end: 'synapsectl doctor' says why; then try again"
                )
            time.sleep(POLL)
    ctx.out.note(f"the daemon that ran (pid {pid}) has ended; its agents go on, under the service")
