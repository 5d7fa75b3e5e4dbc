"""Other hosts of one's own, whose daemons are reached through ssh."""

from pydantic import BaseModel, ConfigDict

from synapsed.interfaces import HostState


class Host(BaseModel):
    """What a person said of one. `target` is a destination of ssh's: `ssh://[user@]host[:port]`, or a name of its
    configuration."""

    model_config = ConfigDict(extra="ignore")

    name: str
    target: str
    socket: str | None = None
    """The path of the control socket there; None: synapsectl there is asked."""
    synapsectl: str = "synapsectl"
    """What to call there for that."""
    added_at: str


class HostView(Host):
    """With how it stands: `since` and `retry_at` are RFC 3339, `local` is the path of its control socket here,
    `waiting` counts what is under way to it."""

    state: HostState
    since: str
    error: str | None
    retry_at: str | None
    local: str
    waiting: int
