"""Types of the fleet's rows: messages under way to other hosts, and received ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Self

from synapsed.model.external import part_of_task
from synapsed.model.task import Task

KEY: Final = "fleet"
"""Key of a task's metadata if another host has sent the task: `src`, and the task's `id` there. Clients cannot set
it."""
VIA: Final = "fleet"
"""`metadata.external.via` of a task that the fleet carries."""


def carried_by_fleet(task: Task) -> bool:
    """Returns True if the fleet carries the task; the answer never changes during the task's life."""
    return part_of_task(task) == VIA


type OutKind = Literal["msg", "upd", "ctl", "work"]
type OutState = Literal["new", "piped"]


class FleetOrigin(NamedTuple):
    """Origin of a task: a host, and the id of its own task there."""

    src: str
    id: str

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Self | None:
        told = metadata.get(KEY)
        src, id_ = (told.get("src"), told.get("id")) if isinstance(told, dict) else (None, None)
        return cls(src, id_) if isinstance(src, str) and isinstance(id_, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutRow:
    """A message to another host, until that host has confirmed it. The content of a message or an update is made of the
    task `task_id` when it is published."""

    id: str
    """Id of the row here; `wire` is the id that the other host gets."""
    dst: str
    kind: OutKind
    task_id: str
    n: int = 0
    """Number of the update of the task, so that the receipt of an older update does not close the row."""
    body: str | None = None
    """Content of a control."""
    state: OutState = "new"
    stream: str | None = None
    """Time at which the broker's stream was made; with `seq` it says where the message is, once the broker has
    acknowledged it."""
    seq: int | None = None
    """Number of the message in that stream."""
    attempt: int = 0
    at: float = 0.0
    """Time since which it is under way, in seconds since the epoch; the database sets it."""

    @property
    def wire(self) -> str:
        if self.kind == "upd":
            return f"{self.id.rpartition(':')[2]}/{self.n}"
        return self.id


def update_row(origin: FleetOrigin) -> str:
    """Returns the id of the row of a task's updates to the host that sent it."""
    return f"u:{origin.src}:{origin.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class InRow:
    """A message that was taken, or refused (`refused`: code and message, as JSON), and so is not taken again. Its
    receipt was sent, or is due."""

    src: str
    id: str
    kind: str
    n: int = 0
    task_id: str | None = None
    refused: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkCandidate:
    """An offer of work, open to any host, that this host has seen; kept until it is known which host has taken it."""

    src: str
    id: str
    cls: str
    round: int
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetChange:
    """Changes of these rows in one transaction, besides those that follow from its tasks."""

    put: tuple[OutRow, ...] = ()
    closed: tuple[tuple[str, int, str], ...] = ()
    """Ids, the `n` up to which they are closed, and the host whose receipt closes them."""
    taken: tuple[InRow, ...] = ()
    """Messages for which a receipt is due from then on."""
    candidates: tuple[WorkCandidate, ...] = ()
    decided: tuple[tuple[str, str], ...] = ()
    """Candidates, by host and id."""
    given_up: tuple[str, ...] = ()
    """Tasks of which no row is sent any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """A received message that no member has sent; it is kept for people to look at."""

    at: float
    subject: str
    reason: str
    headers: str
    size: int
