"""Tests that the main listener's port is free for the daemon, and says why it is not."""

import os
import socket

from synapsectl.context import CommandContext
from synapsectl.errors import CtlError


def served(ctx: CommandContext) -> list[str]:
    """Returns the addresses at which the daemon of this home listens now."""
    try:
        return list(ctx.client.get("/control/status")["listen"])
    except CtlError:
        return []


def refusal(listen: str) -> str | None:
    """Returns the reason why `address:port` cannot be listened at now; None if it is free."""
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the daemon has it
        try:
            probe.bind((host, int(port)))
            probe.listen(1)  # only this shows another listener with the same option
        except OSError as error:
            return os.strerror(error.errno) if error.errno else str(error)
    return None
