"""A push notification config and its receiver's place in the log, as the store keeps them."""

from typing import Literal

from pydantic import ConfigDict, Field

from synapsed.interfaces import LogProgress


class PushRecord(LogProgress):
    """Receiver of notifications about a task. `token` and `credentials` are secrets: they are sent to the receiver and
    nowhere else. `cursor` is the last event that the receiver accepted; `state` is `done` once it has accepted the
    task's end."""

    model_config = ConfigDict(extra="ignore")

    task_id: str
    id: str
    agent_id: str
    url: str = Field(repr=False)
    """Address of the receiver; its query may carry a secret."""
    token: str | None = Field(default=None, repr=False)
    scheme: str | None = None
    credentials: str | None = Field(default=None, repr=False)
    dialect: Literal["1.0", "0.3"] = "1.0"
    """The version of A2A in which it was requested, and in which it is sent."""
