"""Record of a host for all others: its agents, and a sign that it is running. Pure.

Each record is complete, with a number that grows. Readers use their own clock to decide that a host is away: the number
has not changed for 35 s. Clocks of two hosts are never compared. The state is only shown: a message to a host that is
away is not refused.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from synapsed.clock import iso
from synapsed.model.external import NAME_PATTERN
from synapsed_fleet.envelope import encoded

VERSION: Final = 1
EVERY_S: Final = 10.0
AWAY_S: Final = 35.0
"""Seconds without a new record until a host is away: three and a half records."""
TWIN_S: Final = 900.0
"""Seconds for which a warning stays that another machine has this host's key."""
AGENTS_MAX: Final = 500
RECORD_MAX: Final = 200_000
"""Most bytes of a record that is read."""


WAITS_MAX: Final = 50
"""Most waiting items that a host publishes: the oldest."""
WORDS_MAX: Final = 300
"""Most characters of a question in a record."""


def iso_of(text: str) -> str | None:
    """Returns a time from outside in the form of `iso`; None if it is no time in UTC of this millennium: not every
    reader could convert it to its own zone."""
    if re.fullmatch(r"2[0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?Z", text) is None:
        return None
    try:
        return iso(datetime.fromisoformat(text).timestamp())
    except ValueError:
        return None


ToldTime = Annotated[str, AfterValidator(lambda text: iso_of(text) or "")]
"""A time as a host gives it; empty if the text is no time."""
STATES: Final = frozenset({"up", "sleeping"})
ToldState = Annotated[str, AfterValidator(lambda text: text if text in STATES else "away")]
"""State of a host in a record; an unknown state counts as away."""
ToldType = Annotated[str, AfterValidator(lambda text: text if NAME_PATTERN.fullmatch(text) else "unknown")]


class AgentRecordOf(BaseModel):
    """One agent of a host, as the host describes it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str = Field(max_length=64)
    type: ToldType = Field(max_length=64)
    teams: list[str] = Field(default=[], max_length=50)
    skills: list[str] = Field(default=[], max_length=50)
    state: str = Field(default="running", max_length=20)
    activity: str = Field(default="unknown", max_length=20)
    since: ToldTime = Field(default="", max_length=40)
    queue: int = Field(default=0, ge=0)


class WaitRecord(BaseModel):
    """One item that waits for a person on a host. `question` is empty if the host publishes no texts; `src` and `task`
    are the host that sent the message which the item is about, and that host's id of the task."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9:_.-]{0,99}$")
    agent: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
    kind: str = Field(max_length=20)
    since: ToldTime = Field(max_length=40)
    prompt_type: str | None = Field(default=None, max_length=20)
    question: str = Field(default="", max_length=WORDS_MAX)
    src: str | None = Field(default=None, max_length=31)
    task: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")


class HostRecord(BaseModel):
    """The record of a host. `boot` identifies one run of its daemon, `n` counts the records of that run. `waits` is
    None if the host does not publish waiting items; `more`: the number of further ones."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    v: int
    host: str = Field(max_length=31)
    jwt: str = Field(max_length=8000)
    boot: str = Field(max_length=64)
    n: int = Field(ge=0)
    state: ToldState = Field(default="up", max_length=20)
    version: str = Field(default="", max_length=40)
    load: float = 0.0
    agents: list[AgentRecordOf] = Field(default=[], max_length=AGENTS_MAX)
    classes: list[str] | None = Field(default=None, max_length=64)
    """Classes of work that it takes; None: it publishes none of that."""
    waits: list[WaitRecord] | None = Field(default=None, max_length=WAITS_MAX)
    more: int = Field(default=0, ge=0)


def read(body: bytes) -> HostRecord | None:
    """Reads a record; None if `body` is no valid one. Agents without a valid name are left out: no address leads to
    them, or one that means another agent."""
    if len(body) > RECORD_MAX:
        return None
    try:
        told = HostRecord.model_validate_json(body)
    except ValidationError:
        return None
    named = [agent for agent in told.agents if NAME_PATTERN.fullmatch(agent.name)]
    return told if len(named) == len(told.agents) else told.model_copy(update={"agents": named})


def written(record: HostRecord) -> bytes:
    return encoded(record.model_dump())


def digest(agents: Sequence[AgentRecordOf], waits: Sequence[WaitRecord] | None = None) -> str:
    """Returns a digest of the content; when the digest changes, a record is written before its time."""
    told: list[Any] = [agent.model_dump(exclude={"since"}) for agent in agents]
    return json.dumps([told, None if waits is None else [one.model_dump() for one in waits]])


@dataclass(frozen=True, slots=True)
class LastRecord:
    """Time of the last change of a host's record, by this host's clock."""

    boot: str
    n: int
    at: float


class Liveness:
    """Knows which hosts are up, from the changes of their records. Times are `clock.monotonic()`."""

    def __init__(self) -> None:
        self._seen: dict[str, LastRecord] = {}

    def note(self, record: HostRecord, now: float) -> None:
        """Notes a record. The first one that is read may be old: its host counts as up when the next one is seen."""
        known = self._seen.get(record.host)
        if known is None or (known.boot, known.n) != (record.boot, record.n):
            self._seen[record.host] = LastRecord(record.boot, record.n, now)

    def idle_for(self, host: str, now: float) -> float | None:
        """Returns the seconds since the host's record changed; None if no record was read."""
        seen = self._seen.get(host)
        return None if seen is None else now - seen.at

    def forget(self, host: str) -> None:
        self._seen.pop(host, None)

    def state(self, record: HostRecord, now: float) -> str:
        """Returns `up`, `away`, or the state that the host gave when it left (`sleeping`)."""
        if record.state != "up":
            return record.state
        idle = self.idle_for(record.host, now)
        return "away" if idle is None or idle >= AWAY_S else "up"


class Twin:
    """Detects another machine that has this host's key: a copy of its disk, or a thief. `note` gets every record of
    this host at the broker since this daemon has written there. One foreign record may be the last one of the daemon
    before. Times are `clock.monotonic()`."""

    def __init__(self, boot: str) -> None:
        self._boot = boot
        self._last: LastRecord | None = None
        self._until = 0.0

    def note(self, record: HostRecord, now: float) -> bool:
        """Notes a record; returns True if it shows for the first time that another running host has the same identity
        (a twin)."""
        if record.boot == self._boot or record.state != "up":
            return False
        before, self._last = self._last, LastRecord(record.boot, record.n, now)
        if before is None or (before.boot, before.n) == (record.boot, record.n):
            return False
        news, self._until = now >= self._until, now + TWIN_S
        return news

    def is_there(self, now: float) -> bool:
        return now < self._until
