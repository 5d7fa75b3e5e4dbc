"""`synapsectl attach AGENT`: puts this terminal on an agent."""

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from synapsectl.ahead import DEFAULT_DETACH, BegunAttach, told
from synapsectl.client import agent_path
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, ApiError, CtlError, NoDaemon, UsageError
from synapsectl.reach import reach
from synapsectl.shell import brought_along
from synapsectl.terminal_keys import Key, parse_keys
from synapsed.shared.counts import counted

if TYPE_CHECKING:
    import argparse


EXAMPLES = (
    ("synapsectl attach claude", "look at it and type; ctrl-] leaves it running"),
    ("synapsectl attach claude --read-only", "only look"),
)


def _plain(agent: str) -> dict[str, Any]:
    return {"agent": agent, "read_only": False, "detach_keys": DEFAULT_DETACH}


class _Quick(dict[tuple[str, ...], dict[str, Any]]):
    """Reads the plainest command line, `attach AGENT`, without the parser, which takes as long as everything else."""

    def get(self, arguments: tuple[str, ...], default: Any = None) -> Any:
        return default if len(arguments) != 1 or arguments[0].startswith("-") else _plain(*arguments)


QUICK = _Quick({("api",): _plain("api")})

SIGNALED = 128
"""Added to a signal's number for the exit code, as shells do."""

HANGUP = 1


def configure(parser: "argparse.ArgumentParser") -> None:
    parser.add_argument("agent", help="a name, id, type-port or type; NAME@HOST on another host")
    parser.add_argument("--read-only", action="store_true", help="look on; keys are not sent")
    add_attach_options(parser)


def add_attach_options(parser: "argparse.ArgumentParser") -> None:
    parser.add_argument(
        "--detach-keys",
        default=DEFAULT_DETACH,
        metavar="KEYS",
        help="what leaves the agent running and ends the session: keys separated by commas (default: %(default)s)",
    )


def run(args: "argparse.Namespace", ctx: CommandContext) -> int:
    detach = parse_keys(args.detach_keys)
    if ctx.begun is None:
        require_terminal("attach", ctx)
    there, name = reach(ctx, args.agent)
    hint = told("{name}", args.detach_keys) if detach else ""
    # This host's login variables are of no use to an agent on another host.
    along = brought_along(ctx, name) if there is ctx and not args.read_only else nullcontext()
    with along:
        code = attach(
            there,
            name,
            detach,
            read_only=args.read_only,
            hint=hint,
            begun=ctx.begun,
            far=there is not ctx,
            held=getattr(args, "held", b""),
        )
    return DONE if code is None else code


def require_terminal(verb: str, ctx: CommandContext) -> None:
    """Raises UsageError if there is no terminal to put on the agent, or the terminal cannot show the agent's screen."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(f"{verb} needs a terminal on stdin and stdout; 'synapsectl send' and 'screen' do not")
    if ctx.dumb:
        raise UsageError(
            f"{verb} needs a terminal that obeys escape sequences, and TERM says that this one does not; "
            "'synapsectl send' and 'screen' do not"
        )


def attach(
    ctx: CommandContext,
    agent: str,
    detach: tuple[Key, ...],
    *,
    read_only: bool,
    hint: str = "",
    ends_as_program: bool = False,
    begun: BegunAttach | None = None,
    far: bool = False,
    held: bytes = b"",
) -> int | None:
    """Puts this terminal on `agent`, a name or id, `far` if it is on another host; `hint` is printed before, `begun` is
    a connection that has begun already, and `held` the key with which the person came here. Returns the exit code, None
    after a detach or a proper end of the program; with `ends_as_program` that end has the program's own exit code.
    Raises ApiError, NoDaemon."""
    from synapsectl.attachment import AttachedTerminal
    from synapsectl.endings import DaemonLost, Detached, Hopped, Killed, ProgramExited
    from synapsectl.tty import Terminal, TerminalGone

    terminal = Terminal(sys.stdin.fileno())
    viewer = AttachedTerminal(
        client=ctx.client,
        agent=agent,
        terminal=terminal,
        detach=detach,
        read_only=read_only,
        begun=begun,
        far=far,
        held=held,
    )
    try:
        ending = viewer.run(lambda name: ctx.out.remark(hint.format(name=name)) if hint else None)
    except TerminalGone:
        return SIGNALED + HANGUP
    except ApiError as error:
        if error.code == "NOT_READY" and (state := error.details.get("state")) is not None:
            name = error.details.get("agent", agent)
            raise ApiError("NOT_READY", f"{name} is {state}: 'synapsectl restart {name}' first") from None
        raise
    name = viewer.name
    _tell_lost(ctx, viewer.lost, name)
    match ending:
        case Detached():
            ctx.out.remark(f"[detached from {name}]")
        case ProgramExited(code):
            if terminal.alternate:
                _last_words(ctx, viewer.agent)
            ctx.out.remark(f"[{name} ended{_how(code)}]")
            return _program_code(code) if ends_as_program else None
        case DaemonLost(reason):
            raise NoDaemon(f"the daemon is gone ({reason}); {name} goes on without it: attach again when it is back")
        case Hopped(where):
            _show(ctx, where)
            return attach(ctx, viewer.agent, detach, read_only=read_only, ends_as_program=ends_as_program, far=far)
        case Killed(signum):
            ctx.out.remark(f"[detached from {name}]")
            return SIGNALED + signum
    return None


def _tell_lost(ctx: CommandContext, lost: int, name: str) -> None:
    """Reports keys that were typed over a dead line and are lost."""
    if lost:
        ctx.out.remark(
            f"[{counted(lost, 'byte')} that you typed may not have reached {name}, and will not be sent again]"
        )


def _last_words(ctx: CommandContext, agent: str) -> None:
    """Prints the text that the program has left on its screen, which stood on this terminal's alternate screen; prints
    nothing of a full-screen program."""
    try:
        screen = ctx.client.get(agent_path(agent, "screen"), {"format": "json"})
    except CtlError:
        return
    if isinstance(screen, dict) and not screen.get("alternate") and (lines := screen.get("lines")):
        ctx.out.text("\n".join(lines).strip("\n"))


def _show(ctx: CommandContext, where: str) -> None:
    """Shows the inbox, or the list, until the person leaves it."""
    from synapsectl.parsing import parse

    args, show = parse(["inbox"] if where == "inbox" else ["list", "--watch"])
    try:
        show(args, ctx)
    except KeyboardInterrupt:
        return


def _how(code: int | None) -> str:
    if code is None:
        return ""
    if code >= 0:
        return f" with exit code {code}"
    import signal

    try:
        return f" by {signal.Signals(-code).name}"
    except ValueError:
        return f" by signal {-code}"


def _program_code(code: int | None) -> int:
    """Returns the program's exit code as shells report it; 1 if it is unknown."""
    if code is None:
        return 1
    return code if code >= 0 else SIGNALED - code
