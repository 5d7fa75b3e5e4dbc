"""Models of the user's other hosts, whose daemons are reached through ssh."""

from pydantic import BaseModel, ConfigDict

from synapsed.interfaces import HostState


class Host(BaseModel):
    """Settings of a host, as a person gave them. `target` is a destination of ssh's: `ssh://[user@]host[:port]`, or a
    name in its configuration."""

    model_config = ConfigDict(extra="ignore")

    name: str
    target: str
    socket: str | None = None
    """The path of the control socket there; None: synapsectl there is asked."""
    synapsectl: str = "synapsectl"
    """Command that is asked there for the control socket."""
    added_at: str


class HostView(Host):
    """A host and the state of its connection: `since` and `retry_at` are RFC 3339, `local` is the path of its control
    socket here, `waiting` counts the tasks under way to it."""

    state: HostState
    since: str
    error: str | None
    retry_at: str | None
    local: str
    waiting: int
