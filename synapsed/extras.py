"""Whether the MCP SDK is installed: the extra `mcp`, for the tools that a program's model has of the other agents."""

from importlib.util import find_spec

MCP_INSTALL = "pip install 'synapsed[mcp]'"
MCP_MISSING = (
    "the MCP SDK is not installed: agents' models have no tools for the other agents, and use synapsectl in their "
    "shells, which codex's sandbox refuses"
)


def has_mcp() -> bool:
    """Nothing of it is imported."""
    return find_spec("mcp") is not None
