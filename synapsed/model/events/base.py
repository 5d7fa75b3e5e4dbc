"""What all events have in common."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

type By = Literal["person", "agent", "policy", "rule", "daemon"]
"""Who did something: `policy` is the agent's approval policy, `rule` a rule of the configuration, `daemon` synapsed by
itself."""

type Where = Literal["terminal", "control", "http", "a2a"]
"""Where it came from: the agent's own terminal, the control socket, the agent's or the main port, or A2A."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Who does something, and from where. `who` is an agent's id, or the name of a rule."""

    by: By
    who: str | None = None
    where: Where | None = None


ReportedBy = Annotated[
    str | None,
    Field(description="Who reported it from outside: `person`, or an agent's id; null: synapsed saw it itself"),
]


@dataclass(frozen=True)
class _Large:
    """Marks a field that may be large: where an event is too large for a stream, `{truncated, size}` stands for it."""


LARGE = _Large()


class Data(BaseModel):
    """What an event tells. In the log `type` stands with the other fields; clients are sent it as `event`, beside
    `data`. A field that a newer version has added is passed over."""

    model_config = ConfigDict(extra="ignore", ser_json_inf_nan="null")

    type: str

    @classmethod
    def large_fields(cls) -> frozenset[str]:
        """The names under which clients get them."""
        marked = ((name, field) for name, field in cls.model_fields.items() if LARGE in field.metadata)
        return frozenset(field.serialization_alias or name for name, field in marked)
