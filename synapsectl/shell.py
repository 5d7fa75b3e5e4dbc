"""The environment of the shell that a verb runs in, and the variables of it that existing agents get."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from synapsectl.client import agent_path
from synapsectl.context import CommandContext
from synapsectl.errors import ApiError, CtlError
from synapsectl.output import is_text

OF_A_SERVICE = ("INVOCATION_ID", "JOURNAL_STREAM", "NOTIFY_SOCKET")
"""Variables that a service manager sets."""


TELL_S = 0.2
"""Seconds that an attached terminal waits at the most for a daemon that does not read."""


def environment(ctx: CommandContext) -> dict[str, str]:
    """Returns this shell's environment without variables that are no UTF-8, which cannot be sent to the daemon."""
    environ = ctx.own_environment
    kept = {key: value for key, value in environ.items() if is_text(key) and is_text(value)}
    if left := sorted(environ.keys() - kept.keys()):
        ctx.out.note(f"left out of the environment, because they are not UTF-8: {', '.join(map(ascii, left))}")
    return kept


def brought(ctx: CommandContext) -> dict[str, Any] | None:
    """Returns the request that gives an agent its variables of this shell; None if this is no person's shell.

    A person's shell has a terminal. A script without a terminal may be a person's or not: it only replaces variables
    that name missing files. Jobs of cron or a service manager, and an agent's shell, bring nothing."""
    if ctx.inside_agent:
        return None
    streams: tuple[TextIO | None, ...] = (sys.stdin, sys.stdout, sys.stderr)
    if any(stream is not None and stream.isatty() for stream in streams):
        return {"env": environment(ctx), "bring": "connection"}
    if "TERM" not in ctx.environ or any(name in ctx.environ for name in OF_A_SERVICE):
        return None
    return {"env": environment(ctx), "bring": "missing"}


def bring(ctx: CommandContext, agents: list[str]) -> None:
    """Gives `agents` their variables of this shell, for their next start. A daemon that refuses has reported it to the
    verb itself, or is of another version."""
    if (body := brought(ctx)) is None:
        return
    for agent in agents:
        try:
            ctx.client.post(agent_path(agent, "environment", control=True), body)
        except ApiError:
            continue


@contextmanager
def brought_along(ctx: CommandContext, agent: str) -> Iterator[None]:
    """Does the same as `bring` while a terminal is attached to `agent`, without waiting for the answer."""
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
    """Gives `agent` the whole environment of this shell, from its next start on. Returns the names of variables that
    decide which code runs. Raises ApiError."""
    body = {"env": environment(ctx), "bring": "all"}
    names: list[str] = ctx.client.post(agent_path(agent, "environment", control=True), body)["names"]
    return names


def brings(agents: str) -> str:
    """Returns the next step for `agents` whose environment names missing files."""
    return f"'synapsectl restart {agents}' in a shell that has it brings that"


def note_activated(ctx: CommandContext, names: list[str]) -> None:
    """Names the variables of this shell that decide which code runs in an agent that has them now."""
    if names:
        ctx.out.note(
            f"of this shell's environment, {', '.join(names)} went along and may decide which code runs there; "
            "'[environment] drop' keeps such variables back"
        )
