"""How far something that follows the log has come, as the store keeps it."""

from typing import Literal

from pydantic import BaseModel, ConfigDict


class FollowerState(BaseModel):
    """Events up to `cursor` are seen to. Of a receiver of webhooks also its failures since the last success, as in
    `model.push`; times are seconds since the epoch."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    cursor: int
    partly: tuple[str, ...] = ()
    """Rules that have seen to the event after `cursor`."""
    state: Literal["active", "done", "given_up"] = "active"
    attempt: int = 0
    failing_since: float | None = None
    retry_at: float | None = None
    problem: str = ""
    """What was wrong the last time that it failed."""
    secret: str = ""
    """What it keeps for itself. By its name it is encrypted in the database."""
