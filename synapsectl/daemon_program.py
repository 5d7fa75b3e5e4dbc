"""Runs the daemon's program, and has helpers of its package, for verbs of parts, which import this tool only."""

import json
import subprocess
from typing import Any

from synapsectl.context import CommandContext
from synapsectl.errors import ApiError, CtlError
from synapsed import own_python
from synapsed.own_python import PACKAGES
from synapsed.shared.files import write_whole

__all__ = ["PACKAGES", "ask_daemon_program", "daemon_command", "write_whole"]


def daemon_command(*arguments: str) -> list[str]:
    """Returns the command line of `synapsed ARGUMENT…`, by this Python and with its packages."""
    return own_python.command("synapsed.cli", *arguments)


def ask_daemon_program(ctx: CommandContext, *words: str, body: str = "", timeout_s: float) -> dict[str, Any]:
    """Runs `synapsed WORD…` with `body` on its standard input, and returns its JSON answer. Raises ApiError with its
    words, CtlError if there is no answer."""
    called = f"'synapsed {' '.join(words)}'"
    try:
        done = subprocess.run(
            daemon_command(*words),
            input=body,
            env=ctx.own_environment,
            cwd=PACKAGES,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise CtlError(f"{called} did not end: {error}") from None
    try:
        told = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
        raise CtlError(f"{called} failed: {last}") from None
    if isinstance(failed := told.get("error"), dict):
        raise ApiError(failed["code"], failed["message"], details=failed.get("details"))
    found: dict[str, Any] = told
    return found
