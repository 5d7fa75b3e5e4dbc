"""Events as hosts publish them: chooses what other hosts learn of an event, and checks events of other hosts. Pure.

By default no text of people and programs is published (`[fleet.events] content`): of each type only the fields of
`PLAIN`. A type that is not listed there is not published.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from synapsed.clock import iso
from synapsed.model.events import Event, envelope
from synapsed.model.events import encoded as shown
from synapsed.model.external import NAME_PATTERN
from synapsed.shared.regex import regex
from synapsed_fleet.envelope import BadEnvelope, encoded
from synapsed_fleet.fleet_answers import FleetEvent
from synapsed_fleet.host_record import iso_of

PLAIN: Final[Mapping[str, frozenset[str]]] = {
    kind: frozenset(fields.split())
    for kind, fields in {
        "agentState": "state pid exit_code restarts",
        "activity": "activity",
        "taskStatus": "state",
        "taskDelivered": "attempt",
        "inputRequired": "",
        "inputAnswered": "prompt_id by where",
        "attention": "id state kind prompt_id code until by where",
        "permissionDecided": "verdict tool",
        "agentAlert": "code",
        "agentReported": "kind",
        "agentTransition": "from_agent to_agent kind",
        "toolExecution": "tool_name status call_id duration_ms denied exact source",
        "usage": "model input_tokens output_tokens cache_read_tokens cache_write_tokens cost_usd source",
        "rateLimits": "windows plan source",
        "schedule": "schedule outcome at missed_since",
        "ruleFired": "rule cause cause_event action outcome",
        "daemon": "state version agents",
    }.items()
}
"""Fields, by type, that hold no text of people or programs."""
NEVER: Final = frozenset({"screen", "taskArtifact", "emotionUpdate"})
"""Types that are never published: some are too large, and the last says how a person feels."""
GAP: Final = "gap"
DATA_MAX: Final = 16 * 1024
"""Most bytes of an event that is accepted; this host's own have 10,000 at most, and the envelope."""


def told_types(*, content: bool) -> frozenset[str] | None:
    """Returns the types that are published; None: all but `NEVER`."""
    return None if content else frozenset(PLAIN)


def event_id(event: Event) -> str:
    """Returns the id of the event between hosts. It includes the time, since a log that was lost begins again with
    1."""
    return f"{event.id:010d}-{int(event.at * 1000):x}"


def event_body(event: Event, agent: str | None, *, content: bool) -> bytes | None:
    """Returns the document of an event of this host's agent of that name; None for an event that is not published."""
    kind = event.data.type
    if kind in NEVER or (not content and kind not in PLAIN):
        return None
    if content:
        whole = json.loads(shown(event))
    else:
        whole = envelope(event)
        whole["data"] = _plain(kind, whole["data"])
    return encoded({**whole, "agent": agent})


def _plain(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    told = {name: value for name, value in data.items() if name in PLAIN[kind] and value is not None}
    if isinstance(error := data.get("error"), dict):  # of a task: its code is one of a list
        told["error"] = {"code": error.get("code")}
    if isinstance(prompt := data.get("prompt"), dict):
        told["prompt"] = {key: prompt.get(key) for key in ("prompt_id", "type")}
    return told


def gap_body(first: int, last: int, *, at: float) -> bytes:
    """Returns the notice that the events of this host with numbers from `first` to `last` are not published."""
    return encoded({"id": last, "event": GAP, "data": {"from": first, "to": last}, "time": iso(at)})


def _time(text: str) -> str:
    if (told := iso_of(text)) is None:
        raise ValueError("it is no time in UTC")
    return told


class EventSaid(BaseModel):
    """An event as its host publishes it; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    id: int = Field(ge=0, lt=2**53)
    data: dict[str, Any]
    time: Annotated[str, AfterValidator(_time)]
    agent: str | None = Field(default=None, max_length=64)
    task: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_-]{1,64}$")
    context: str | None = Field(default=None, max_length=200)


def read_event(src: str, kind: str, body: bytes, *, place: str) -> FleetEvent:
    """Returns the event of host `src`, whose signature the caller has checked. Raises BadEnvelope for any other
    content."""
    if len(body) > DATA_MAX:
        raise BadEnvelope(f"an event has {len(body)} bytes, {DATA_MAX} are allowed")
    try:
        said = EventSaid.model_validate_json(body)
    except (ValidationError, RecursionError):
        raise BadEnvelope("it is no event") from None
    if said.agent is not None and NAME_PATTERN.fullmatch(said.agent) is None:
        raise BadEnvelope("the name of its agent is not valid")
    return FleetEvent(
        id=place,
        event=kind,
        data=said.data,
        time=said.time,
        agent=None if said.agent is None else f"{said.agent}@{src}",
        task=said.task,
        context=said.context,
        host=src,
        number=said.id,
    )


@dataclass(frozen=True, slots=True)
class EventCursor:
    """A place in the stream of events. It names the stream by the time when it was made, since a stream that was made
    again counts from 1. As text `<stream>-<place>`; `0` is before everything."""

    stream: str
    seq: int

    def __str__(self) -> str:
        return f"{self.stream}-{self.seq}" if self.stream else str(self.seq)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads a cursor from its text. Raises BadEnvelope."""
        found = _CURSOR.fullmatch(text)
        if found is None:
            raise BadEnvelope("it is no place in the events of a fleet")
        return cls(found[1] or "", int(found[2]))


CURSOR: Final = r"^(?:([0-9a-f]{8})-)?([0-9]{1,18})$"
_CURSOR: Final = regex(CURSOR)


def stream_name(created: str) -> str:
    """Returns the part of a cursor that identifies the stream among others of the same name."""
    return hashlib.sha256(created.encode()).hexdigest()[:8]
