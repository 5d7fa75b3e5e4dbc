"""Events of what a person has written down to be done by itself."""

from typing import Literal

from pydantic import Field

from synapsed.model.events.base import Data

__all__ = ["ScheduleCame"]


class ScheduleCame(Data):
    """A time of a schedule came. `sent`: its message is the task; `missed`: no daemon ran, or the machine slept, and
    nothing is sent; `refused`: it could not be sent, and `problem` says why."""

    type: Literal["schedule"] = "schedule"
    schedule: str = Field(description="Its id")
    outcome: Literal["sent", "missed", "refused"]
    at: str = Field(description="The time of the schedule (RFC 3339, UTC)")
    missed_since: str | None = Field(default=None, description="The first time that was missed, where any was")
    problem: str = ""
