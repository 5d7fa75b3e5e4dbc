"""Calls `synapsed fleet WHAT` as a process: only the daemon's package reads the fleet's files and keys, and no command
line shows them."""

import json
from typing import Any

from synapsectl.context import CommandContext
from synapsectl.daemon_program import ask_daemon_program
from synapsectl.errors import REFUSED, CtlError

TIMEOUT_S = 180.0


class PersonsRight(CtlError):
    exit_code = REFUSED
    code = "FORBIDDEN"


def ask_fleet(ctx: CommandContext, what: str, **body: Any) -> dict[str, Any]:
    """Returns the answer. Raises ApiError with the program's message, CtlError if there is no answer."""
    return ask_daemon_program(ctx, "fleet", what, body=json.dumps(body), timeout_s=TIMEOUT_S)


def persons_only(ctx: CommandContext) -> None:
    """Raises PersonsRight in an agent's shell: only a person decides about members of the fleet."""
    if ctx.inside_agent:
        raise PersonsRight("the fleet's keys and members are a person's: this is an agent's shell")
