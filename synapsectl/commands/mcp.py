"""`synapsectl mcp`: an MCP server for the program of an agent (`synapsectl.mcp_server`)."""

import argparse

from synapsectl.context import CommandContext
from synapsectl.errors import DONE, NotInstalled
from synapsed.process.extras import MCP_INSTALL, MCP_MISSING, has_mcp

EXAMPLES = (("synapsectl mcp", "started by an agent's program, not by a person"),)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Speaks MCP on stdin and stdout; an agent's program starts it, not a person."


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    if not has_mcp():
        raise NotInstalled(f"{MCP_MISSING}: {MCP_INSTALL}")
    import anyio

    from synapsectl.mcp_server import serve  # importing the SDK takes half a second: for this verb only

    anyio.run(serve, ctx.client)
    return DONE
