"""Shapes of the answers about the fleet. Times are RFC 3339."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class _View(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FleetKept(_View):
    """A file of the fleet's here, or a `message` that is too large to go as one. It was `given` here, is `going` to
    `host` with the `row` of the outbox, was `sent`, is `coming` from `host`, or has come and is `here`. Of its `size`
    in bytes the receiver has `have`; `problem`: what holds it up."""

    id: str
    host: str | None = None
    state: Literal["given", "going", "sent", "coming", "here"]
    name: str | None = None
    message: bool = False
    size: int
    have: int
    since: str
    row: str | None = None
    problem: str | None = None


class FleetStatus(_View):
    """This host in its fleet. `broker`: where it is connected, `problem`: why it is not, or what is wrong though it is,
    for people; `since`: for how long it is connected, or is not."""

    host: str
    connected: bool
    broker: str | None = None
    since: str | None = None
    problem: str | None = None
    outbox: dict[str, int] = {}
    """Numbers of messages without a receipt, by state."""
    oldest: str | None = None
    """Time since which the oldest of these messages has no receipt."""
    mail: dict[str, int] = {}
    """Number of messages, by their host, that wait at the broker until this host has taken them."""
    quarantined: int = 0
    expires: str | None = None
    """Time until which this host's credentials are valid; they are renewed long before."""
    files: list[FleetKept] = []
    """Transfers under way that are too large for a message, at most 50."""


class FleetAgent(_View):
    name: str
    type: str
    teams: list[str] = []
    skills: list[str] = []
    state: str
    idle: bool = False
    queue: int = 0


class FleetHost(_View):
    """Another host as this one sees it. `away` is what is shown, never a reason to refuse what is sent there."""

    host: str
    state: Literal["here", "up", "away", "sleeping"]
    seen: str | None = None
    version: str | None = None
    classes: list[str] | None = None
    """Classes of work for any host that this one takes; None: it publishes none of that."""
    agents: list[FleetAgent] = []


class FleetOut(_View):
    """A message that has no receipt of its host yet. `piped`: the broker has it."""

    id: str
    dst: str
    kind: str
    task: str
    state: Literal["new", "piped"]
    attempt: int
    since: str


class FleetEvent(_View):
    """An event of a host, in the form in which clients get this host's events. `id` is a place in the fleet's stream,
    from which a reader can go on; None for a gap. `number` is the event's id at its host. `agent` is an address such as
    `codex@box`."""

    id: str | None
    event: str
    data: dict[str, Any]
    time: str
    agent: str | None = None
    task: str | None = None
    context: str | None = None
    host: str | None = None
    number: int | None = None


class FleetFile(_View):
    """A file that is given here to be sent: what of it is here so far. A part of a message names it by its `uri`, once
    it is `whole`."""

    id: str
    uri: str
    name: str
    size: int
    whole: bool
    sha256: str | None = None


class FleetHeld(_View):
    """A received message that no member has sent."""

    at: str
    subject: str
    reason: str
    size: int


class FleetRow(_View):
    status: Literal["retried", "canceled", "removed"]
    id: str
