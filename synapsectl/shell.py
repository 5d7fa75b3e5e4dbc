"""The environment of the shell that a verb runs in, and what of it agents that are there already get."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from synapsectl.client import agent_path
from synapsectl.context import CommandContext
from synapsectl.errors import ApiError, CtlError
from synapsectl.output import is_text

OF_A_SERVICE = ("INVOCATION_ID", "JOURNAL_STREAM", "NOTIFY_SOCKET")
"""Set for what a service manager starts."""


TELL_S = 0.2
"""Seconds that an attached terminal may wait at the most for a daemon that does not read."""


def environment(ctx: CommandContext) -> dict[str, str]:
    """This shell's environment; a variable that is no UTF-8 cannot be told to the daemon."""
    environ = ctx.own_environment
    kept = {key: value for key, value in environ.items() if is_text(key) and is_text(value)}
    if left := sorted(environ.keys() - kept.keys()):
        ctx.out.note(f"left out of the environment, because they are not UTF-8: {', '.join(map(ascii, left))}")
    return kept


def brought(ctx: CommandContext) -> dict[str, Any] | None:
    """Returns the request that gives an agent what it gets of this shell; None if this is no person's shell.

    A person's has a terminal. A script that has no terminal may be a person's or not: it only replaces what is gone.
    What cron or a service manager starts, and an agent's shell, bring nothing."""
    if ctx.inside_agent:
        return None
    streams: tuple[TextIO | None, ...] = (sys.stdin, sys.stdout, sys.stderr)
    if any(stream is not None and stream.isatty() for stream in streams):
        return {"env": environment(ctx), "bring": "connection"}
    if "TERM" not in ctx.environ or any(name in ctx.environ for name in OF_A_SERVICE):
        return None
    return {"env": environment(ctx), "bring": "missing"}


def bring(ctx: CommandContext, agents: list[str]) -> None:
    """Give `agents` what they get of this shell, for their next start. A daemon that refuses it has said so to the verb
    itself, or is of another version."""
    if (body := brought(ctx)) is None:
        return
    for agent in agents:
        try:
            ctx.client.post(agent_path(agent, "environment", control=True), body)
        except ApiError:
            continue


@contextmanager
def brought_along(ctx: CommandContext, agent: str) -> Iterator[None]:
    """The same while a terminal is attached to `agent`, which does not wait for it."""
    connection = None
    with suppress(CtlError, OSError):
        if (body := brought(ctx)) is not None:
            connection = ctx.client.tell(agent_path(agent, "environment", control=True), body, timeout=TELL_S)
    try:
        yield
    finally:
        if connection is not None:
            connection.close()


def bring_all(ctx: CommandContext, agent: str) -> list[str]:
    """Have this shell's environment be that of `agent`, from its next start on. Returns the names of what of it decides
    which code runs. Raises ApiError."""
    body = {"env": environment(ctx), "bring": "all"}
    names: list[str] = ctx.client.post(agent_path(agent, "environment", control=True), body)["names"]
    return names


def brings(agents: str) -> str:
    """Returns the next step for `agents` whose environment names what is gone."""
    return f"'synapsectl restart {agents}' in a shell that has it brings that"


def note_activated(ctx: CommandContext, names: list[str]) -> None:
    """Say what of this shell's environment decides which code runs in an agent that has it now."""
    if names:
        ctx.out.note(
            f"of this shell's environment, {', '.join(names)} went along and may decide which code runs there; "
            "'[environment] drop' keeps such variables back"
        )
