"""Calls `synapsed fleet WHAT` as a process: the fleet's files and keys are the daemon's package's, and stand in no
command line."""

import json
import subprocess
from typing import Any

from synapsectl.context import CommandContext
from synapsectl.daemon_program import PACKAGES, daemon_command
from synapsectl.errors import REFUSED, ApiError, CtlError

TIMEOUT_S = 180.0


class PersonsRight(CtlError):
    exit_code = REFUSED
    code = "FORBIDDEN"


def ask_fleet(ctx: CommandContext, what: str, **body: Any) -> dict[str, Any]:
    """Raises ApiError with its words, CtlError where it did not come to that."""
    try:
        done = subprocess.run(
            daemon_command("fleet", what),
            input=json.dumps(body),
            env=ctx.own_environment,
            cwd=PACKAGES,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise CtlError(f"'synapsed fleet {what}' did not end: {error}") from None
    try:
        told = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
        raise CtlError(f"'synapsed fleet {what}' failed: {last}") from None
    if isinstance(failed := told.get("error"), dict):
        raise ApiError(failed["code"], failed["message"], details=failed.get("details"))
    found: dict[str, Any] = told
    return found


def persons_only(ctx: CommandContext) -> None:
    """Raises PersonsRight in an agent's shell: who belongs to the fleet is for its person to say."""
    if ctx.inside_agent:
        raise PersonsRight("the fleet's keys and members are a person's: this is an agent's shell")
