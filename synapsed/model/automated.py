"""A schedule, rule, webhook or sink, and what keeps it from its work: for those who look after the daemon."""

from typing import Literal

from pydantic import BaseModel, Field


class Automated(BaseModel):
    """`ok`: it does what it is there for; `idle`: it does nothing, and `problem` says why; `wrong`: it cannot."""

    kind: Literal["schedule", "rule", "webhook", "sink"]
    name: str
    state: Literal["ok", "idle", "wrong"] = "ok"
    problem: str = ""
    source: Literal["file", "verb"] = Field(default="file", description="`file`: it stands in config.toml")
