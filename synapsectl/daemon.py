"""Makes sure that a daemon answers, for the verbs that start one if none runs."""

from synapsectl.context import CommandContext
from synapsectl.errors import NoDaemon


def ensure_daemon(ctx: CommandContext, *, spawn: bool) -> None:
    """Returns when a daemon answers. Raises NoDaemon."""
    try:
        # An answer is needed, not only a connection: a daemon that was killed a moment ago still accepts connections.
        ctx.client.get("/healthz")
    except NoDaemon as error:
        if error.hint and ctx.inside_agent:
            raise NoDaemon(error.reason, "an agent cannot start one: a person does, with 'synapsed run'") from None
        if error.hint and not spawn:
            raise NoDaemon(error.reason, "leave out --no-spawn-daemon, or start one with 'synapsed run'") from None
        if ctx.inside_agent or not spawn:
            raise
        from synapsectl.spawn import start_daemon  # a verb that finds a daemon does without it

        start_daemon(ctx)
