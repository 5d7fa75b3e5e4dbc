"""A dependency that a packager may leave out: the MCP SDK, for the tools with which a program's model uses the other
agents. The extra `mcp` names it."""

from importlib.util import find_spec

MCP_INSTALL = "pip install 'synapsed[mcp]'"
MCP_MISSING = (
    "the MCP SDK is not installed: agents' models have no tools for the other agents, and use synapsectl in their "
    "shells, which codex's sandbox refuses"
)


def has_mcp() -> bool:
    """Returns True if `mcp` is installed, without importing it."""
    return find_spec("mcp") is not None
