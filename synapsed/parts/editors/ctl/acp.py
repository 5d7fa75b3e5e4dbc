"""`synapsectl acp`: an agent as a session in an editor that speaks the Agent Client Protocol."""

import argparse
import os
from typing import TYPE_CHECKING

from synapsectl.context import CommandContext
from synapsectl.errors import DONE, NOT_FOUND, CtlError

if TYPE_CHECKING:
    from synapsed.parts.editors.ctl.opening import ServedAgents

EXAMPLES = (
    ("synapsectl acp claude", "the command that an editor is given for the agent claude"),
    ("synapsectl acp --start codex", "the agent in the editor's folder; codex is started if the folder has no agent"),
    ("synapsectl acp claude@box", "an agent on another host of yours"),
    ("synapsectl acp claude --sign-in", "its terminal, as an editor opens it where its program has no account"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Speaks ACP (version 1) on stdin and stdout; an editor starts it, not a person."
    parser.add_argument(
        "agent", nargs="?", help="the agent that is served, and no other; otherwise the one in the editor's folder"
    )
    parser.add_argument(
        "--start",
        metavar="PROFILE",
        help="start an agent of this profile if there is no such agent, and one that is stopped",
    )
    parser.add_argument("--no-spawn-daemon", action="store_true", help="fail where no daemon runs")
    parser.add_argument(
        "--sign-in",
        action="store_true",
        help="put this terminal on the agent that an editor would get, for its program's own sign-in; ctrl-] leaves it",
    )


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    from synapsed.parts.editors.ctl.opening import AgentsOwn, ServedAgents

    if ctx.inside_agent:
        raise AgentsOwn("acp is for a person's editor: an agent reaches the others by the tools of 'synapsectl mcp'")
    wanted = ServedAgents(args.agent, args.start, spawn=not args.no_spawn_daemon)
    if args.sign_in:
        return sign_in(ctx, wanted)
    from synapsed.parts.editors.ctl.server import AcpServer

    AcpServer(ctx, wanted, received=0, sent=1).run()
    return DONE


def sign_in(ctx: CommandContext, wanted: "ServedAgents") -> int:
    """Runs in a terminal that an editor opens if the agent has no account: attaches to its program."""
    from synapsectl.ahead import DEFAULT_DETACH, told
    from synapsectl.commands.attach import attach, require_terminal
    from synapsectl.reach import reach
    from synapsectl.terminal_keys import parse_keys
    from synapsed.parts.editors.ctl.opening import open_new
    from synapsed.parts.editors.ctl.shapes import RequestRefused

    require_terminal("acp --sign-in", ctx)
    try:
        opened = open_new(ctx, wanted, os.getcwd())  # noqa: PTH109 - without pathlib
    except RequestRefused as refusal:
        raise NotServed(str(refusal)) from None
    there, name = reach(ctx, opened.session_id)
    code = attach(there, name, parse_keys(DEFAULT_DETACH), read_only=False, hint=told("{name}", DEFAULT_DETACH))
    return DONE if code is None else code


class NotServed(CtlError):
    """Error for an editor that would get no agent here."""

    exit_code = NOT_FOUND
    code = "UNKNOWN_AGENT"
