"""How far something that follows the log has come, as the store keeps it."""

from typing import Literal

from pydantic import BaseModel, ConfigDict


class LogProgress(BaseModel):
    """Events up to `cursor` are seen to. Of a receiver elsewhere also its failures since the last success: `attempt`
    counts them, `failing_since` and `retry_at` are None while nothing fails, in seconds since the epoch."""

    cursor: int
    state: Literal["active", "done", "given_up"] = "active"
    attempt: int = 0
    failing_since: float | None = None
    retry_at: float | None = None


class FollowerState(LogProgress):
    """As it is in the database."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    partly: tuple[str, ...] = ()
    """Rules that have seen to the event after `cursor`."""
    problem: str = ""
    """What was wrong the last time that it failed."""
    secret: str = ""
    """What it keeps for itself. By its name it is encrypted in the database."""
