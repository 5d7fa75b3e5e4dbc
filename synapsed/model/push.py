"""A push notification config and how far its receiver has been told, as the store keeps them."""

from typing import Literal

from pydantic import ConfigDict, Field

from synapsed.model.records import LogProgress


class PushRecord(LogProgress):
    """Whom to notify of a task. `token` and `credentials` are secrets: they are sent to the receiver and nowhere else.
    What a receiver accepted last is the event `cursor`; `state` is `done` once it was told the task's end."""

    model_config = ConfigDict(extra="ignore")

    task_id: str
    id: str
    agent_id: str
    url: str = Field(repr=False)
    """It may carry a secret in its query."""
    token: str | None = Field(default=None, repr=False)
    scheme: str | None = None
    credentials: str | None = Field(default=None, repr=False)
    dialect: Literal["1.0", "0.3"] = "1.0"
    """The version of A2A in which it was asked for, and is told."""
