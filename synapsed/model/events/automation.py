"""Events of what a person has written down to be done by itself."""

from typing import Literal

from pydantic import Field

from synapsed.model.events.base import Data


class ScheduleCame(Data):
    """A time of a schedule came. `sent`: its message is the task; `missed`: no daemon ran, or the machine slept, and
    nothing is sent; `refused`: it could not be sent, and `problem` says why."""

    type: Literal["schedule"] = "schedule"
    schedule: str = Field(description="Its id")
    outcome: Literal["sent", "missed", "refused"]
    at: str = Field(description="The time of the schedule (RFC 3339, UTC)")
    missed_since: str | None = Field(default=None, description="The first time that was missed, where any was")
    problem: str = ""


class RuleFired(Data):
    """A rule was for an event, which is `cause`. `done`: what it says was done (a webhook: is to be told);
    `failed`: `problem` says why not; `held`: nothing was done, since a loop was in sight."""

    type: Literal["ruleFired"] = "ruleFired"
    rule: str
    cause: int = Field(description="Id of the event")
    cause_event: str = Field(description="Its type")
    action: Literal["notify", "approve", "deny", "send", "restart", "webhook"]
    outcome: Literal["done", "failed", "held"]
    sent: str | None = Field(default=None, description="The task that was sent")
    webhook: str | None = Field(default=None, description="The receiver that is told")
    text: str = Field(default="", description="What the person is told")
    problem: str = ""
