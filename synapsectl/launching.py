"""Common parts of `start` and `run`: options, and the request that they make."""

import argparse
import os
import time
from importlib import import_module
from shutil import which
from typing import Any

from synapsectl.client import SLOW_TIMEOUT, agent_path
from synapsectl.commands.list_ import notes_on
from synapsectl.context import CommandContext
from synapsectl.daemon import ensure_daemon
from synapsectl.errors import ApiError, NoDaemon, TimedOut, UsageError
from synapsectl.given_paths import from_home
from synapsectl.output import is_text, named
from synapsectl.parsing import nearest
from synapsectl.prompts import tell_waiting
from synapsectl.shell import environment, note_activated
from synapsectl.signals import DeferredInterrupt
from synapsectl.verbs import verbs
from synapsed.process.parent_attributes import measured

DEFAULT_SIZE = (120, 40)
"""Columns and rows of an agent without a viewer."""

LARGEST = 1000
"""Most columns, and rows, of a window, however large this terminal is."""

FIRST_S = 4.0
"""Seconds within which a program nearly always reports wrong arguments."""
STUCK_S = 12.0
"""Seconds for a program that has come to rest in an unexpected state: the daemon reports its screen after 5 s of rest,
and a program may draw for some seconds before."""
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
    parser.add_argument("--cwd", type=from_home, help="its working directory; the current one otherwise")
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
        help="let other agents write to it even if it is a shell or the like, which runs what they write",
    )
    parser.add_argument(
        "--without-approval",
        action="store_true",
        help="start it even if settings of its program keep the deny rules of its approval from being enforced",
    )
    parser.add_argument(
        "--resume-at-reset",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="a task that reaches the account's usage limit continues when the limit ends; with "
        "--no-resume-at-reset it fails",
    )
    parser.add_argument("--cols", type=int, help="columns of its terminal; as many as this one has otherwise")
    parser.add_argument("--rows", type=int, help="rows of its terminal; as many as this one has otherwise")
    parser.add_argument(
        "--prompt",
        metavar="TEXT",
        help="the program's prompt, such as 'ed> ', if no profile describes it; digits and folders in it may change",
    )
    parser.add_argument("--no-spawn-daemon", action="store_true", help="fail where no daemon runs")


def add_worktree_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("a worktree of git")
    group.add_argument(
        "--worktree", metavar="NAME", help="start it on a branch NAME of its own, in a folder beside the repository"
    )
    group.add_argument("--base", metavar="REF", help="where that branch begins; what is checked out here otherwise")
    group.add_argument(
        "--setup", metavar="COMMAND", help="the command that prepares a new one; 'git config synapsed.setup' otherwise"
    )


def start_by_choice(args: argparse.Namespace, ctx: CommandContext) -> dict[str, Any]:
    """Does the same as `start_agent`, in a worktree if `args` ask for one. Raises its errors, GitRefused,
    SetupFailed."""
    if args.worktree is None:
        if args.base is not None or args.setup is not None:
            raise UsageError("--base and --setup are for a worktree: name it with --worktree NAME")
        return start_agent(args, ctx)
    starting = import_module(f"{verbs()['worktree'].package}.starting")  # with subprocess and tempfile: only here
    with starting.worktree_for(args, ctx, _directory(args.cwd)) as folder:
        return start_agent(argparse.Namespace(**{**vars(args), "cwd": folder}), ctx)


def unasked(profile: str, **wanted: Any) -> argparse.Namespace:
    """Returns arguments for `start_agent` of `profile` without options but those `wanted`."""
    options: dict[str, Any] = {
        "name": None,
        "port": None,
        "no_port": False,
        "cwd": None,
        "rest": None,
        "clean_env": False,
        "env": [],
        "cols": None,
        "rows": None,
        "save": False,
        "allow_agents": False,
        "without_approval": False,
        "prompt": None,
        "resume_at_reset": True,
        "no_spawn_daemon": False,
    }
    return argparse.Namespace(profile=profile, **{**options, **wanted})


def start_agent(args: argparse.Namespace, ctx: CommandContext, *, conversation: str | None = None) -> dict[str, Any]:
    """Starts the agent of `args`, on `conversation` if it is given; returns the agent as `list --json` shows it. Raises
    UsageError, ApiError, NoDaemon."""
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
        "without_approval": args.without_approval or None,
        "conversation": conversation,
        "prompt": args.prompt,
        "resume_at_reset": None if args.resume_at_reset else False,
    }
    ensure_daemon(ctx, spawn=not args.no_spawn_daemon)
    given = {key: value for key, value in body.items() if value is not None}
    others = [] if args.name or conversation else _others(args.profile, body["cwd"], ctx)
    try:
        started = _started_whole(given, ctx)
    except ApiError as error:
        raise _with_generic(error, args) if error.code == "UNKNOWN_PROFILE" else error from None
    note_activated(ctx, started.pop("activated", []))
    _note_others(started, others, ctx)
    return started


def _started_whole(body: dict[str, Any], ctx: CommandContext) -> dict[str, Any]:
    """Returns the agent that `body` asks for, or removes it again if Ctrl-C came meanwhile. Raises KeyboardInterrupt
    then, and the errors of `_started`."""
    what = body.get("name") or body["profile"]
    with DeferredInterrupt(lambda: ctx.out.note(f"{what} is being started, and will be stopped again")) as interrupt:
        try:
            with ctx.busy(f"starting {what}"):
                started = _started(body, ctx)
        except KeyboardInterrupt:
            told = f"{what} may go on: see 'synapsectl list', and 'synapsectl stop AGENT --remove' ends it"
            raise KeyboardInterrupt(told) from None
        if interrupt.came:
            take_back(started, ctx)
            raise KeyboardInterrupt
    return started


def take_back(agent: dict[str, Any], ctx: CommandContext) -> None:
    """Stops and removes an agent that was just started, and says so. Raises KeyboardInterrupt if it goes on."""
    try:
        stop = agent_path(agent["id"], "stop", control=True)
        ctx.client.post(stop, {"remove": True}, timeout=SLOW_TIMEOUT)
    except (ApiError, NoDaemon, TimedOut) as error:
        told = f"{agent['name']} goes on: 'synapsectl stop {agent['name']} --remove' ends it ({error})"
        raise KeyboardInterrupt(told) from None
    ctx.out.note(f"{agent['name']} was started, and is stopped and removed again; the daemon goes on")


def _with_generic(error: ApiError, args: argparse.Namespace) -> ApiError:
    """Returns the same error with a hint how to start a program without a profile, unless a profile's name was nearly
    typed."""
    if nearest(args.profile, error.details.get("profiles", ())) and which(args.profile) is None:
        return error
    command = " ".join([args.profile, *(args.rest or [])])
    told = str(error).replace("?", "")
    return ApiError(
        error.code,
        f"{told}; any other program that has a prompt is started as 'generic': "
        f"synapsectl start generic --name {args.name or args.profile} -- {command}",
        details=error.details,
        status=error.status,
    )


def _others(profile: str, folder: object, ctx: CommandContext) -> list[dict[str, Any]]:
    """Returns the agents of this profile in the same folder: one of them may be the wanted one."""
    agents = ctx.client.get("/agents")
    return [agent for agent in agents if (agent["type"], agent["cwd"]) == (profile, folder)]


def _note_others(started: dict[str, Any], others: list[dict[str, Any]], ctx: CommandContext) -> None:
    """Lists the agents of the same profile in the folder of the one that was started."""
    running = [agent["name"] for agent in others if agent["pid"] is not None]
    back = f"'synapsectl stop {started['name']} --remove' takes it back"
    if running:
        are = "runs" if len(running) == 1 else "run"
        ctx.out.note(
            f"{', '.join(running)} {are} in this folder already, and {started['name']} is another one beside it: "
            f"{back}; --worktree NAME gives one a folder of its own"
        )
    elif others:
        before = others[0]["name"]
        ctx.out.note(
            f"{before} was in this folder and is stopped, and {started['name']} is a new one: {back}, "
            f"and 'synapsectl restart {before}' goes on with what {before} had begun"
        )


def _started(body: dict[str, Any], ctx: CommandContext) -> dict[str, Any]:
    """Returns the agent that `body` asks for. A daemon older than this tool does not know `attributes`."""
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
    """Shows the agent. `watched`: it may refuse its arguments, which shows in its first seconds."""
    asks: dict[str, Any] | None = None
    if watched or agent.get("drift"):
        try:
            with ctx.busy(f"waiting for {agent['name']}"):
                agent, asks = _watch(agent, ctx)
        except KeyboardInterrupt:
            take_back(agent, ctx)
            raise
    if withheld := withheld_from(agent):
        ctx.out.note(withheld)
    for note in (*notes_on(agent), *agent.get("settings", ())):
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
    """Returns a sentence about the attributes of this shell that the agent's program could not get."""
    withheld = agent.get("withheld")
    return f"{agent['name']}: not given to its program as this shell has it: {withheld}" if withheld else None


def _watch(agent: dict[str, Any], ctx: CommandContext) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Returns the agent, as soon as its activity or its end is known, and its question; at the latest after `STUCK_S`,
    and after `FIRST_S` if it shows nothing, or still draws."""
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
        columns = min(here.columns or DEFAULT_SIZE[0], LARGEST)
        rows = min(here.lines or DEFAULT_SIZE[1], LARGEST)
    except OSError:
        columns, rows = DEFAULT_SIZE
    columns, rows = (here if given is None else given for given, here in ((args.cols, columns), (args.rows, rows)))
    if columns < 1 or rows < 1:
        raise UsageError("--cols and --rows are at least 1")
    return columns, rows
