"""Events of the daemon itself, and those that only a stream has."""

from typing import Literal

from pydantic import BaseModel, Field

from synapsed.model.events.base import Data


class DaemonChanged(Data):
    """The daemon came up, or goes."""

    type: Literal["daemon"] = "daemon"
    state: Literal["started", "stopping"]
    version: str
    pid: int
    agents: int = Field(description="How many there are")


class Gap(Data):
    """Events were skipped: those with ids from `from` to `to` are not kept any more, or some of them. It stands in no
    log, and has no id."""

    type: Literal["gap"] = "gap"
    first: int = Field(serialization_alias="from")
    last: int = Field(serialization_alias="to")


class Truncated(BaseModel):
    """What stands for a field that makes its event too large for a stream: `GET /events/{id}` has it whole."""

    truncated: Literal[True] = True
    size: int = Field(description="Characters of what it stands for, as JSON")
