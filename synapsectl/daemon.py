"""A daemon that answers, for the verbs that start one where none runs."""

from synapsectl.context import CommandContext
from synapsectl.errors import NoDaemon


def ensure_daemon(ctx: CommandContext, *, spawn: bool) -> None:
    """A daemon answers when this returns. Raises NoDaemon."""
    try:
        # An answer, not only a connection: a daemon that was killed a moment ago still takes those.
        ctx.client.get("/healthz")
    except NoDaemon:
        if not spawn or ctx.inside_agent:
            raise
        from synapsectl.spawn import start_daemon  # a verb that finds a daemon does without it

        start_daemon(ctx)
