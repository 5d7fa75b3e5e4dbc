"""Schedules: what a person has written down to be sent, and how far that has come."""

import hashlib
import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from synapsed.clock import iso
from synapsed.parts.schedules.due import Missed
from synapsed.parts.schedules.spec import Spec, check_zone, parse

SCHEDULED = "scheduled"
"""Key of a task's metadata: the occurrence that it stands for. No client sets it."""

FILE = "file:"
"""Ids of the schedules of `config.toml` begin so: their names and those of others never meet."""

SCHEDULES_MAX = 200
"""Those that were added by the verb among them."""

MESSAGE_MAX = 65_536
"""Characters of a message."""

type Outcome = Literal["sent", "missed", "refused"]
"""What became of a time that came."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError("must be letters, digits, '_', '.' and '-', at most 64, beginning with a letter or digit")
    return text


def _at(text: str) -> str:
    parse(text)
    return text.strip()


def _message(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


class NewSchedule(BaseModel):
    """One as it is written: `[[schedule]]`, and what `schedule add` sends."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, AfterValidator(_name)] | None = None
    """What it is called. Without one it gets a name made of its contents, or of its agent's."""
    at: Annotated[str, AfterValidator(_at)]
    """When: cron's notation, or systemd's."""
    zone: Annotated[str, AfterValidator(check_zone)] | None = None
    """The time zone of `at`, where that names none. None: the machine's."""
    agent: Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[^\x00-\x20\x7f]+$")]
    """To whom: any address."""
    message: Annotated[str, Field(min_length=1, max_length=MESSAGE_MAX), AfterValidator(_message)]
    missed: Missed = "skip"
    """What becomes of times at which no daemon ran or the machine slept: nothing, or one message for all of them."""
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
    """One that there is. `id` is `file:NAME` for one of the configuration, else its name; `by` is the id of the agent
    that has made it, None for a person, and `born` says which agent of that id (`EventLog.born`); `created_at` is in
    seconds since the epoch."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str
    by: str | None = None
    born: int = 0
    created_at: float

    @property
    def called(self) -> str:
        """Its name."""
        return self.id.removeprefix(FILE)

    @property
    def times(self) -> str:
        """What its times follow from."""
        return f"{self.at}\0{self.zone or ''}"

    @property
    def in_file(self) -> bool:
        return self.id.startswith(FILE)


def as_schedule(new: NewSchedule, *, now: float) -> Schedule:
    """One of the configuration. Without a name its id follows from what it says."""
    said = "\0".join((new.at, new.zone or "", new.agent, new.message))
    name = new.name or hashlib.sha256(said.encode()).hexdigest()[:8]
    return Schedule(**new.model_dump(exclude={"name"}), name=name, id=f"{FILE}{name}", created_at=now)


class ScheduleState(BaseModel):
    """How far it has come: its times up to `cursor` have been seen to. `last_*` are of the last of them; times are
    seconds since the epoch. `times` are those of the schedule that it is the state of."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    cursor: float
    times: str
    last_at: int | None = None
    last_outcome: Outcome | None = None
    last_task: str | None = None
    last_problem: str = ""


class LastTime(BaseModel):
    """The last time of a schedule that has come, and what became of it."""

    at: str
    outcome: Outcome
    task: str | None
    problem: str


class ScheduleView(BaseModel):
    """A schedule as it is shown. `next` are its next times in its own zone; `zone` is null where that is the
    machine's; `source` says where it was written down, `by` which agent has made it (null: a person)."""

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
        """What the task's id is made of."""
        return f"schedule\0{self.schedule}\0{self.at}"

    def metadata(self) -> dict[str, Any]:
        """What its task keeps."""
        return {"schedule": self.schedule, "at": iso(self.at)}
