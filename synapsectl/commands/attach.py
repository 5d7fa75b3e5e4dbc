"""`synapsectl attach AGENT`."""

import argparse
import signal
import sys
from typing import Any

from synapsectl.client import agent_path
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, ApiError, NoDaemon, UsageError
from synapsectl.keys import DEFAULT_DETACH, Key, parse_keys
from synapsectl.reach import reach

EXAMPLES = (
    ("synapsectl attach claude", "look at it and type; ctrl-] leaves it running"),
    ("synapsectl attach claude --read-only", "only look"),
)

SIGNALED = 128
"""Added to a signal's number, as a shell has it."""

GONE = frozenset({"stopped", "exited", "failed"})


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", help="a name, id, type-port or type; NAME@HOST on another host")
    parser.add_argument("--read-only", action="store_true", help="look on; keys are not sent")
    add_attach_options(parser)


def add_attach_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--detach-keys",
        default=DEFAULT_DETACH,
        metavar="KEYS",
        help="what leaves the agent running and ends the session: keys separated by commas (default: %(default)s)",
    )


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    detach = parse_keys(args.detach_keys)
    require_terminal("attach", ctx)
    ctx, name = reach(ctx, args.agent)
    agent = ctx.client.get(agent_path(name, "status"), {"detail": 1})
    if agent["state"] in GONE:
        raise ApiError("NOT_READY", f"{agent['name']} is {agent['state']}: 'synapsectl restart {agent['name']}' first")
    if detach:
        ctx.out.remark(f"[{agent['name']}: {args.detach_keys} detaches]")
    code = attach(ctx, agent, detach, read_only=args.read_only)
    return DONE if code is None else code


def require_terminal(verb: str, ctx: CommandContext) -> None:
    """Raises UsageError where there is no terminal to put on the agent, or one that could not show its screen."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(f"{verb} needs a terminal on stdin and stdout; 'synapsectl send' and 'screen' do not")
    if ctx.dumb:
        raise UsageError(
            f"{verb} needs a terminal that obeys escape sequences, and TERM says that this one does not; "
            "'synapsectl send' and 'screen' do not"
        )


def attach(
    ctx: CommandContext,
    agent: dict[str, Any],
    detach: tuple[Key, ...],
    *,
    read_only: bool,
    ends_as_program: bool = False,
) -> int | None:
    """Put this terminal on `agent`. Returns the exit code, None after a detach or a proper end of the program; with
    `ends_as_program` that end has the program's own exit code. Raises ApiError, NoDaemon."""
    from synapsectl.attach import AttachedTerminal, DaemonLost, Detached, Killed, ProgramExited
    from synapsectl.tty import Terminal, TerminalGone

    name = agent["name"]
    terminal = Terminal(sys.stdin.fileno())
    viewer = AttachedTerminal(
        client=ctx.client, agent=agent["id"], terminal=terminal, detach=detach, read_only=read_only
    )
    try:
        ending = viewer.run()
    except TerminalGone:
        return SIGNALED + signal.SIGHUP
    match ending:
        case Detached():
            ctx.out.remark(f"[detached from {name}]")
        case ProgramExited(code):
            ctx.out.remark(f"[{name} ended{_how(code)}]")
            return _program_code(code) if ends_as_program else None
        case DaemonLost(reason):
            raise NoDaemon(f"the daemon is gone ({reason}); {name} goes on without it: attach again when it is back")
        case Killed(signum):
            ctx.out.remark(f"[detached from {name}]")
            return SIGNALED + signum
    return None


def _how(code: int | None) -> str:
    if code is None:
        return ""
    if code >= 0:
        return f" with exit code {code}"
    try:
        return f" by {signal.Signals(-code).name}"
    except ValueError:
        return f" by signal {-code}"


def _program_code(code: int | None) -> int:
    """The program's exit code as a shell has it; 1 where nobody knows it."""
    if code is None:
        return 1
    return code if code >= 0 else SIGNALED - code
