"""Schedules: messages that a person has planned, and their progress."""

import hashlib
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from synapsed.clock import iso
from synapsed.parts.schedules.due import Missed
from synapsed.parts.schedules.spec import Spec, check_zone, parse
from synapsed.shared.regex import regex

SCHEDULED = "scheduled"
"""Key of a task's metadata: its occurrence. No client sets it."""

FILE = "file:"
"""Beginning of the ids of schedules in `config.toml`, so that their names cannot equal those of others."""

SCHEDULES_MAX = 200
"""Most schedules, with those that were added by the verb."""

MESSAGE_MAX = 65_536
"""Characters of a message."""

type Outcome = Literal["sent", "missed", "refused"]
"""Result of a time that came."""

_NAME = regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def _checked_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError("must be letters, digits, '_', '.' and '-', at most 64, beginning with a letter or digit")
    return text


def _checked_time(text: str) -> str:
    parse(text)
    return text.strip()


def _message(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


class NewSchedule(BaseModel):
    """A schedule as it is written: in `[[schedule]]`, or by `schedule add`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, AfterValidator(_checked_name)] | None = None
    """Name of the schedule. Without one, a name is made: from its contents in the configuration, else from its agent's
    name."""
    at: Annotated[str, AfterValidator(_checked_time)]
    """Times in cron's notation, or systemd's."""
    zone: Annotated[str, AfterValidator(check_zone)] | None = None
    """The time zone of `at`, if that names none. None: the machine's."""
    agent: Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[^\x00-\x20\x7f]+$")]
    """Receiver of the message: any address."""
    message: Annotated[str, Field(min_length=1, max_length=MESSAGE_MAX), AfterValidator(_message)]
    missed: Missed = "skip"
    """Handling of times at which no daemon ran or the machine slept: nothing, or one message for all of them."""
    priority: int = Field(default=1, ge=1, le=5)
    new_conversation: bool = False
    """Each message begins a new conversation."""

    @model_validator(mode="after")
    def _one_zone(self) -> Self:
        parse(self.at, self.zone)
        return self

    @property
    def spec(self) -> Spec:
        return parse(self.at, self.zone)


class Schedule(NewSchedule):
    """A present schedule."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str
    """`file:NAME` for one of the configuration, else its name."""
    by: str | None = None
    """Id of the agent that has made it; None for a person."""
    born: int = 0
    """Distinguishes that agent from a later one with the same id (`EventLog.born`)."""
    created_at: float
    """Seconds since the epoch."""

    @property
    def called(self) -> str:
        """Its name."""
        return self.id.removeprefix(FILE)

    @property
    def times(self) -> str:
        """Text that determines its times."""
        return f"{self.at}\0{self.zone or ''}"

    @property
    def in_file(self) -> bool:
        return self.id.startswith(FILE)


def as_schedule(new: NewSchedule, *, now: float) -> Schedule:
    """Returns a schedule of the configuration. Without a name its id follows from its contents."""
    said = "\0".join((new.at, new.zone or "", new.agent, new.message))
    name = new.name or hashlib.sha256(said.encode()).hexdigest()[:8]
    return Schedule(**new.model_dump(exclude={"name"}), name=name, id=f"{FILE}{name}", created_at=now)


class ScheduleState(BaseModel):
    """Progress of a schedule: its times up to `cursor` have been handled. `last_*` belong to the last of them; times
    are seconds since the epoch. `times` are those of the schedule that the state belongs to."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    cursor: float
    times: str
    last_at: int | None = None
    last_outcome: Outcome | None = None
    last_task: str | None = None
    last_problem: str = ""


class LastTime(BaseModel):
    """The last time of a schedule that has come, and its result."""

    at: str
    outcome: Outcome
    task: str | None
    problem: str


class ScheduleView(BaseModel):
    """A schedule as it is shown. `next` are its next times in its own zone; `zone` is null if it is the machine's;
    `source` is the place where it was written, `by` the agent that has made it (null: a person)."""

    id: str
    name: str
    source: Literal["file", "verb"]
    by: str | None
    at: str
    zone: str | None
    agent: str
    message: str
    missed: Missed
    priority: int
    new_conversation: bool
    next: list[str]
    last: LastTime | None


class Occurrence(BaseModel):
    """One time of a schedule, for which there is one task at most, ever. `at` is in seconds since the epoch."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    schedule: str
    at: int

    @property
    def key(self) -> str:
        """Text from which the task's id is made."""
        return f"schedule\0{self.schedule}\0{self.at}"

    def metadata(self) -> dict[str, Any]:
        """Returns the metadata of its task."""
        return {"schedule": self.schedule, "at": iso(self.at)}
