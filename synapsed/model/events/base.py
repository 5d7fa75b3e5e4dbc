"""What all events have in common."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["By", "Data", "ReportedBy", "Where"]

type By = Literal["person", "agent", "policy", "rule", "daemon"]
"""Who did something: `policy` is the agent's approval policy, `rule` a rule of the configuration, `daemon` synapsed by
itself."""

type Where = Literal["terminal", "control", "http", "a2a", "mcp", "program"]
"""Where it came from: the agent's own terminal, the control socket, the agent's or the main port, A2A, an agent's
tools, or the program's own question to its policy."""

ReportedBy = Annotated[
    str | None,
    Field(description="Who reported it from outside: `person`, or an agent's id; null: synapsed saw it itself"),
]


class Data(BaseModel):
    """What an event tells. In the log `type` stands with the other fields; clients are sent it as `event`, beside
    `data`. A field that a newer version has added is passed over."""

    model_config = ConfigDict(extra="ignore", ser_json_inf_nan="null")

    type: str
