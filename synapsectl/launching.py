"""What `start` and `run` have in common: options, and the request that they make of them."""

import argparse
import os
import time
from typing import Any

from synapsectl.client import SLOW_TIMEOUT, agent_path
from synapsectl.commands.list_ import notes_on
from synapsectl.context import CommandContext
from synapsectl.daemon import ensure_daemon
from synapsectl.errors import ApiError, UsageError
from synapsectl.output import is_text, named
from synapsectl.prompts import tell_waiting
from synapsectl.shell import environment, note_activated
from synapsed.attributes import measured

DEFAULT_SIZE = (120, 40)
"""Columns and rows of an agent that nobody looks at."""

FIRST_S = 4.0
"""Seconds within which a program that does not take its arguments has said so, nearly always."""
STUCK_S = 12.0
"""Seconds for one that has come to rest, and not as it should: the daemon tells its screen after 5 s of rest, and a
program may draw for some seconds before."""
REST_S = 1.0
LOOK_S = 0.1


def add_profile(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} PROFILE [options] [-- ARGUMENT…]"
    parser.add_argument("profile", help="what to start, see 'synapsectl profiles list'; its arguments follow after --")


def add_start_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", help="the agent's name; the profile's where that is free")
    ports = parser.add_mutually_exclusive_group()
    ports.add_argument("--port", type=int, help="the agent's own port; one of the profile's range otherwise")
    ports.add_argument("--no-port", action="store_true", help="no port of its own: the main listener serves it")
    parser.add_argument("--cwd", help="its working directory; the current one otherwise")
    parser.add_argument(
        "--env", action="append", default=[], metavar="K=V", help="a variable of its environment; may be repeated"
    )
    parser.add_argument(
        "--clean-env", action="store_true", help="give it the daemon's environment instead of this shell's"
    )
    parser.add_argument(
        "--save", action="store_true", help="also keep it in the configuration, to be started with every daemon"
    )
    parser.add_argument(
        "--allow-agents",
        action="store_true",
        help="let other agents write to it, also where it is a shell or the like, which runs what they write",
    )
    parser.add_argument(
        "--resume-at-reset",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="a task that meets the account's usage limit goes on when that ends; without this it fails",
    )
    parser.add_argument("--cols", type=int, help="columns of its terminal; as many as this one has otherwise")
    parser.add_argument("--rows", type=int, help="rows of its terminal; as many as this one has otherwise")
    parser.add_argument("--no-spawn-daemon", action="store_true", help="fail where no daemon runs")


def add_worktree_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("a worktree of git")
    group.add_argument(
        "--worktree", metavar="NAME", help="start it on a branch NAME of its own, in a folder beside the repository"
    )
    group.add_argument("--base", metavar="REF", help="where that branch begins; what is checked out here otherwise")
    group.add_argument(
        "--setup", metavar="COMMAND", help="what makes a new one ready; 'git config synapsed.setup' otherwise"
    )


def start_by_choice(args: argparse.Namespace, ctx: CommandContext) -> dict[str, Any]:
    """`start_agent`, in a worktree where `args` ask for one. Raises what that does, GitRefused, SetupFailed."""
    if args.worktree is None:
        if args.base is not None or args.setup is not None:
            raise UsageError("--base and --setup are for a worktree: name it with --worktree NAME")
        return start_agent(args, ctx)
    from synapsectl.worktrees.starting import worktree_for  # with subprocess and tempfile: for this option only

    with worktree_for(args, ctx, _directory(args.cwd)) as folder:
        return start_agent(argparse.Namespace(**{**vars(args), "cwd": folder}), ctx)


def start_agent(args: argparse.Namespace, ctx: CommandContext, *, conversation: str | None = None) -> dict[str, Any]:
    """Start what `args` ask for, on `conversation` where it is given; returns the agent as `list --json` shows it.
    Raises UsageError, ApiError, NoDaemon."""
    columns, rows = _size(args)
    body = {
        "profile": args.profile,
        "name": args.name,
        "port": False if args.no_port else args.port,
        "cwd": _directory(args.cwd),
        "args": args.rest or [],
        "env": None if args.clean_env else environment(ctx),
        "extra_env": dict(_variable(setting) for setting in args.env),
        "attributes": measured(),
        "cols": columns,
        "rows": rows,
        "save": args.save,
        "accept_agents": args.allow_agents or None,
        "conversation": conversation,
        "resume_at_reset": None if args.resume_at_reset else False,
    }
    ensure_daemon(ctx, spawn=not args.no_spawn_daemon)
    given = {key: value for key, value in body.items() if value is not None}
    with ctx.busy(f"starting {args.name or args.profile}"):
        started = _started(given, ctx)
    note_activated(ctx, started.pop("activated", []))
    return started


def _started(body: dict[str, Any], ctx: CommandContext) -> dict[str, Any]:
    """The agent that `body` asks for. A daemon that is older than this tool does not know `attributes`."""
    started: dict[str, Any]
    try:
        started = ctx.client.post("/control/start", body, timeout=SLOW_TIMEOUT)
    except ApiError as error:
        if error.code != "INVALID_REQUEST" or error.details.get("field") != "attributes":
            raise
        del body["attributes"]
        started = ctx.client.post("/control/start", body, timeout=SLOW_TIMEOUT)
        started["withheld"] = "umask and limits, which this daemon, older than the tool, does not know"
    return started


def show_started(agent: dict[str, Any], ctx: CommandContext, *, as_json: bool, watched: bool = False) -> None:
    """`watched`: it may not take its arguments, which shows in its first seconds."""
    asks: dict[str, Any] | None = None
    if watched or agent.get("drift"):
        with ctx.busy(f"waiting for {agent['name']}"):
            agent, asks = _watch(agent, ctx)
    if withheld := withheld_from(agent):
        ctx.out.note(withheld)
    for note in notes_on(agent):
        ctx.out.note(f"{agent['name']}: {note}")
    if as_json:
        ctx.out.document(agent)
    elif ctx.out.on_terminal:
        ctx.out.line(f"{agent['name']}  {agent['id']}  {agent['endpoint']}  pid {agent['pid']}")
        ctx.out.note(f"'synapsectl attach {agent['name']}' puts this terminal on it")
    else:
        ctx.out.table((), [[agent["name"], agent["id"], agent["endpoint"], agent["pid"]]])
    if asks is not None:
        tell_waiting(ctx, agent["name"], agent["name"], {"status": "input_required", "prompt": asks})


def withheld_from(agent: dict[str, Any]) -> str | None:
    """Returns a sentence that says which attributes of this shell its program could not have."""
    withheld = agent.get("withheld")
    return f"{agent['name']}: not given to its program as this shell has it: {withheld}" if withheld else None


def _watch(agent: dict[str, Any], ctx: CommandContext) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The agent as soon as it is known what it does, or that it has ended, and what it asks; at the latest after
    `STUCK_S`, and after `FIRST_S` where it shows nothing, or still draws."""
    began = changed = time.monotonic()
    screen = ""
    while agent["state"] in ("starting", "running") and agent["activity"] in ("starting", "unknown", "waiting"):
        detail = ctx.client.get(agent_path(agent["id"], "status"), {"detail": 1})
        now = time.monotonic()
        if detail["screen"] != screen:
            screen, changed = detail["screen"], now
        patience = STUCK_S if screen.strip() and now - changed >= REST_S else FIRST_S
        if detail["prompt"] or now - began >= patience:
            return agent, detail["prompt"]
        time.sleep(LOOK_S)
        agent = next((each for each in ctx.client.get("/agents") if each["id"] == agent["id"]), agent)
    return agent, None


def _directory(given: str | None) -> str:
    try:
        path = os.path.realpath(given) if given else os.getcwd()  # noqa: PTH109 - pathlib would only wrap it
    except OSError as error:
        raise UsageError(f"the current directory is gone ({error.strerror}): name one with --cwd") from None
    if not os.path.isdir(path):  # noqa: PTH112
        raise UsageError(f"--cwd: {named(str(given))} is no directory")
    if not is_text(path):
        raise UsageError(f"the directory is not UTF-8: '{named(path)}'")
    return path


def _variable(setting: str) -> tuple[str, str]:
    name, equals, value = setting.partition("=")
    if not equals or not name:
        raise UsageError(f"--env: {setting!r} is not of the form NAME=VALUE")
    return name, value


def _size(args: argparse.Namespace) -> tuple[int, int]:
    try:
        here = os.get_terminal_size(0)
        columns, rows = here.columns or DEFAULT_SIZE[0], here.lines or DEFAULT_SIZE[1]
    except OSError:
        columns, rows = DEFAULT_SIZE
    columns, rows = (here if given is None else given for given, here in ((args.cols, columns), (args.rows, rows)))
    if columns < 1 or rows < 1:
        raise UsageError("--cols and --rows are at least 1")
    return columns, rows
