"""Types of the fleet's rows: what is under way to other hosts, and what has come from them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Self

from synapsed.model.external import part_of_task
from synapsed.model.task import Task

KEY: Final = "fleet"
"""Member of a task's metadata if another host has sent it: `src`, and the task's `id` there. No client sets it."""
VIA: Final = "fleet"
"""`metadata.external.via` of a task that the fleet carries."""


def carried_by_fleet(task: Task) -> bool:
    """Returns whether the task is under way by the fleet: it stays so."""
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
    """One thing that another host has not said to have. `id` is ours, `wire` what it is called on the way. What a
    message or an update says is made of the task `task_id` when it is published; `body` is that of a control.

    `piped`: the broker has it, at `seq` of the stream that was made at `stream`; that closes nothing. `n` counts an
    update up, so that the receipt of an older one does not close it."""

    id: str
    dst: str
    kind: OutKind
    task_id: str
    n: int = 0
    body: str | None = None
    state: OutState = "new"
    stream: str | None = None
    seq: int | None = None
    attempt: int = 0
    at: float = 0.0
    """Since when it is under way, in seconds since the epoch: given by the database."""

    @property
    def wire(self) -> str:
        if self.kind == "upd":
            return f"{self.id.rpartition(':')[2]}/{self.n}"
        return self.id


def update_row(origin: FleetOrigin) -> str:
    """The id of the row of a task's updates to the host that sent it."""
    return f"u:{origin.src}:{origin.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class InRow:
    """One thing that was taken, or refused (`refused`: code and message, as JSON): never again. It has had its receipt,
    or is owed it."""

    src: str
    id: str
    kind: str
    n: int = 0
    task_id: str | None = None
    refused: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkCandidate:
    """Work for any that was seen here, and of which is not known yet whose it is."""

    src: str
    id: str
    cls: str
    round: int
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetChange:
    """Changes of a transaction to these rows besides those that follow from its tasks. `closed`: ids, the `n` up to
    which they are closed, and the host whose receipt it is; `taken`: is owed a receipt from then on; `decided`:
    candidates, by host and id; `given_up`: tasks of which nothing is sent any more."""

    put: tuple[OutRow, ...] = ()
    closed: tuple[tuple[str, int, str], ...] = ()
    taken: tuple[InRow, ...] = ()
    candidates: tuple[WorkCandidate, ...] = ()
    decided: tuple[tuple[str, str], ...] = ()
    given_up: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """A received message that no member has sent: kept for people."""

    at: float
    subject: str
    reason: str
    headers: str
    size: int
