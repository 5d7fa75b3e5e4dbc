"""What is known of the person at one agent, as it is kept from one daemon to the next."""

from pydantic import BaseModel, ConfigDict, Field

from synapsed.parts.moods.likeness import Sketch
from synapsed.parts.moods.signals import Source
from synapsed.parts.moods.words import Emotion


class _Kept(BaseModel):
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class Feeling(_Kept):
    """One emotion: its points when they were counted last, and the level that was told last, with when."""

    points: float = 0.0
    level: int = 1
    told: float | None = None
    source: Source = "interaction_pattern"
    """What moved it last."""


class OpenQuestion(_Kept):
    """A message of the person's. `missed`: it failed, or was stopped."""

    at: float
    sketch: Sketch
    task: str | None = None
    missed: bool = False


class Open(_Kept):
    """A task of the person's that is not over; `at`: when it was delivered, before that when it was sent."""

    id: str
    at: float
    urgent: bool = False


class MoodState(_Kept):
    """Times are those of events. The lists are bounded by `scorer`, oldest first."""

    at: float = 0.0
    """When the points were counted."""
    feelings: dict[Emotion, Feeling] = Field(default_factory=dict)
    session: float | None = None
    """When the person's work without a pause began."""
    acted: float = 0.0
    """When the person did something last."""
    asked: list[OpenQuestion] = []
    open: list[Open] = []
    others: list[str] = []
    """Tasks of others that interrupt, and are not over."""
    refusals: list[tuple[str, str]] = []
    """Prompts by id, with the answer that says no."""
    streak: int = 0
    """Quick successes in a row."""
