"""`synapsectl acp`: an agent as a session in an editor that speaks the Agent Client Protocol (`synapsectl.acp`)."""

import argparse

from synapsectl.context import CommandContext
from synapsectl.errors import DONE

EXAMPLES = (
    ("synapsectl acp claude", "the command that an editor is given for the agent claude"),
    ("synapsectl acp --start codex", "the agent in the editor's folder; codex is started if the folder has no agent"),
    ("synapsectl acp claude@box", "an agent on another host of yours"),
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


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    from synapsectl.acp.opening import AgentsOwn, ServedAgents
    from synapsectl.acp.server import AcpServer

    if ctx.inside_agent:
        raise AgentsOwn("acp is for a person's editor: an agent reaches the others by the tools of 'synapsectl mcp'")
    wanted = ServedAgents(args.agent, args.start, spawn=not args.no_spawn_daemon)
    AcpServer(ctx, wanted, received=0, sent=1).run()
    return DONE
