"""Record of a host for all others: its agents, and the sign that it is there. Pure.

A record is written whole each time, with a number that grows. Whether a host is there is judged by the reader's own
clock: the number has not changed for 35 s. No clock is compared with another host's. It is shown, and never a reason
to refuse a message.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from synapsed.clock import iso_of
from synapsed.model.external import NAME_PATTERN
from synapsed_fleet.envelope import encoded

VERSION: Final = 1
EVERY_S: Final = 10.0
AWAY_S: Final = 35.0
"""Three records and a half."""
TWIN_S: Final = 900.0
"""So long it is told that another machine has this host's key."""
AGENTS_MAX: Final = 500
RECORD_MAX: Final = 200_000
"""Bytes of a record that is read."""


WAITS_MAX: Final = 50
"""Most waiting items of a host that are told: the oldest."""
WORDS_MAX: Final = 300
"""Characters of a question that are told."""


ToldTime = Annotated[str, AfterValidator(lambda text: iso_of(text) or "")]
"""Empty for what is no time."""
STATES: Final = frozenset({"up", "sleeping"})
ToldState = Annotated[str, AfterValidator(lambda text: text if text in STATES else "away")]
"""State of a host in a record; an unknown state counts as away."""
ToldType = Annotated[str, AfterValidator(lambda text: text if NAME_PATTERN.fullmatch(text) else "unknown")]


class AgentRecordOf(BaseModel):
    """One agent of a host, as the host tells it."""

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
    """One thing that waits for a person on a host. `question` is empty where the host tells no texts; `src` and `task`
    are who has sent the message that it is about, and what that is called there."""

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
    """`boot` tells one life of a daemon from another, `n` counts its records. `waits` is None where the host does not
    tell who waits for a person; `more`: how many it has besides."""

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
    """Classes of the work that it takes; None: it does not say so."""
    waits: list[WaitRecord] | None = Field(default=None, max_length=WAITS_MAX)
    more: int = Field(default=0, ge=0)


def read(body: bytes) -> HostRecord | None:
    """None for what is no record. Agents that have what is no name of one are passed over: no address leads to them,
    or one that is read as another's."""
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
    """Returns a digest of the content whose change makes a record worth writing before its time."""
    told: list[Any] = [agent.model_dump(exclude={"since"}) for agent in agents]
    return json.dumps([told, None if waits is None else [one.model_dump() for one in waits]])


@dataclass(frozen=True, slots=True)
class LastRecord:
    """Time of the last change of a host's record, by this host's clock."""

    boot: str
    n: int
    at: float


class Liveness:
    """Times are `clock.monotonic()`."""

    def __init__(self) -> None:
        self._seen: dict[str, LastRecord] = {}

    def note(self, record: HostRecord, now: float) -> None:
        """A record that is read for the first time may be old: its host is there once the next one is seen."""
        known = self._seen.get(record.host)
        if known is None or (known.boot, known.n) != (record.boot, record.n):
            self._seen[record.host] = LastRecord(record.boot, record.n, now)

    def idle_for(self, host: str, now: float) -> float | None:
        """Seconds since its record changed; None if it was never read."""
        seen = self._seen.get(host)
        return None if seen is None else now - seen.at

    def forget(self, host: str) -> None:
        self._seen.pop(host, None)

    def state(self, record: HostRecord, now: float) -> str:
        """`up`, `away`, or what the host said as it left (`sleeping`)."""
        if record.state != "up":
            return record.state
        idle = self.idle_for(record.host, now)
        return "away" if idle is None or idle >= AWAY_S else "up"


class Twin:
    """Detection of another machine that has this host's key: a copy of its disk, or a thief. `note` every record that
    stands at the broker since this daemon has written there. One foreign record may be the goodbye, or the last word,
    of the daemon before this one. Times are `clock.monotonic()`."""

    def __init__(self, boot: str) -> None:
        self._boot = boot
        self._last: LastRecord | None = None
        self._until = 0.0

    def note(self, record: HostRecord, now: float) -> bool:
        """Notes a record; returns True if it is news of a twin."""
        if record.boot == self._boot or record.state != "up":
            return False
        before, self._last = self._last, LastRecord(record.boot, record.n, now)
        if before is None or (before.boot, before.n) == (record.boot, record.n):
            return False
        news, self._until = now >= self._until, now + TWIN_S
        return news

    def is_there(self, now: float) -> bool:
        return now < self._until
