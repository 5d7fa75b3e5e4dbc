"""The state of a person's mood at one agent, saved for the next daemon."""

from pydantic import BaseModel, ConfigDict, Field

from synapsed.parts.moods.likeness import Sketch
from synapsed.parts.moods.signals import Source
from synapsed.parts.moods.words import Emotion


class _Kept(BaseModel):
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class Feeling(_Kept):
    """One emotion: its points at the last count, and the last reported level, with its time."""

    points: float = 0.0
    level: int = 1
    told: float | None = None
    source: Source = "interaction_pattern"
    """Source of its last change."""


class OpenQuestion(_Kept):
    """A message of the person. `missed`: its task failed, or was stopped."""

    at: float
    sketch: Sketch
    task: str | None = None
    missed: bool = False


class Open(_Kept):
    """An unfinished task of the person; `at` is the time of its delivery, or of its sending while it is not
    delivered."""

    id: str
    at: float
    urgent: bool = False


class MoodState(_Kept):
    """The state of one person's mood. Times are those of events. The lists are bounded by `scorer`, oldest first."""

    at: float = 0.0
    """Time at which the points were counted."""
    feelings: dict[Emotion, Feeling] = Field(default_factory=dict)
    session: float | None = None
    """Time at which the person's work without a pause began."""
    acted: float = 0.0
    """Time of the last action of the person."""
    asked: list[OpenQuestion] = []
    open: list[Open] = []
    others: list[str] = []
    """Unfinished tasks of other senders that interrupt."""
    refusals: list[tuple[str, str]] = []
    """Ids of prompts, each with the answer that means no."""
    streak: int = 0
    """Quick successes in a row."""
