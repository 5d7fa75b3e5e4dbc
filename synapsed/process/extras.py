"""Dependencies that a packager may leave out: the MCP SDK, for the tools with which a program's model uses the other
agents, and Textual, for `top`. The extras `mcp` and `tui` name them."""

from importlib.util import find_spec

MCP_INSTALL = "pip install 'synapsed[mcp]'"
MCP_MISSING = (
    "the MCP SDK is not installed: agents' models have no tools for the other agents, and use synapsectl in their "
    "shells, which codex's sandbox refuses"
)


def has_mcp() -> bool:
    """Returns True if `mcp` is installed, without importing it."""
    return find_spec("mcp") is not None


TUI_INSTALL = "pip install 'synapsed[tui]'"
TUI_MISSING = "Textual is not installed: 'synapsectl top' draws with it, 'inbox' and 'list --watch' do without"


def has_tui() -> bool:
    """Returns True if Textual is installed, without importing it."""
    return find_spec("textual") is not None
