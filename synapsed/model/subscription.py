"""A browser that is told of what waits (Web Push), where no page is open."""

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field


class PushPlace(BaseModel):
    """Where a browser is told (RFC 8030), and the keys that only it can read with (RFC 8291)."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    endpoint: str = Field(max_length=2048)
    p256dh: str = Field(max_length=128)
    auth: str = Field(max_length=64)
    page: str = Field(default="", max_length=320)
    """Origin of the page that asked for it."""


@dataclass(frozen=True, slots=True)
class Subscriber:
    """`id`: of the grant by which its page is let in. `answers`: it may answer what agents ask."""

    id: str
    name: str
    place: PushPlace
    answers: bool
