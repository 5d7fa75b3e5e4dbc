"""Figures that the packages count about their own work, for the measurements of the daemon. Pure."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from synapsed.model.agent import Activity, ProcessState
from synapsed.model.task import TaskState

FAST_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Bounds for what the machine does, in seconds: a commit, a read, a turn of the event loop."""

SLOW_S = (0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 4 * 3600.0)
"""Bounds for what agents and persons do, in seconds: from a message that is typed at once to an afternoon's work."""


class Histogram:
    """Count of values up to each bound, and their sum. It only grows, and has a fixed size."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        """One count a bucket; the last bucket is for values above every bound."""
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Counts `value`; a negative one, which only a clock that was set back makes, counts as 0."""
        value = max(value, 0.0)
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFigures:
    """One agent at one moment. `oldest` is seconds since the epoch; `output` is None while no program is connected."""

    id: str
    name: str
    profile: str
    state: ProcessState
    activity: Activity
    restarts: int
    queue: int
    """Tasks that wait."""
    oldest: float | None
    """Time at which the oldest of them was made."""
    current: TaskState | None
    """State of the task that is worked on."""
    output: int | None
    """Bytes that the program has written to its terminal, over all launches."""
    terminals: int
    """Terminals that are attached."""
    alerts: int
    """Number of problems that last until they are solved."""


class StoreFigures(Protocol):
    """Figures of the database."""

    commits: Histogram
    """Seconds from the request of a write until it is durable."""
    reads: Histogram
    """Seconds from the request of a read until its answer."""
    refusals: Counter[str]
    """Writes and reads that failed, by the reason."""

    def size(self) -> int:
        """Returns the bytes on the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonFigures:
    """Figures of the whole daemon, each as of the moment at which it is read."""

    version: str
    store: StoreFigures
    lag: Histogram
    """Seconds by which the event loop came late to a timer."""
    agents: Callable[[], Iterable[AgentFigures]]
    streams: Callable[[], int]
    """Streams of events that are open."""
