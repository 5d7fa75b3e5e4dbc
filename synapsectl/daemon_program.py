"""The daemon's program and helpers of its package, for verbs of parts, which know this tool only."""

from synapsed import own_python
from synapsed.own_python import PACKAGES
from synapsed.shared.files import write_whole

__all__ = ["PACKAGES", "daemon_command", "write_whole"]


def daemon_command(*arguments: str) -> list[str]:
    """Returns the command line of `synapsed ARGUMENT…`, by this Python and with its packages."""
    return own_python.command("synapsed.cli", *arguments)
