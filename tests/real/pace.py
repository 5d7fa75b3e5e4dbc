"""The pace of the machine while something ran: a bare interpreter is started every few seconds, and seconds in which
that takes longer count as less. So what is late on a machine that others use, too, is not taken for the product's."""

import json
import subprocess
import sys
import threading
import time
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

EVERY_S = 2.0
"""Between two starts: it is some 0.5 % of a processor."""

QUICK = 0.1
"""The share of the starts, the quickest ones, of which the slowest tells how long one takes on this machine."""

BUSY = 2.0
"""By so much the run itself may slow the machine down."""


@dataclass(frozen=True)
class Pace:
    """Starts of an interpreter, in their order: when each began (Unix seconds), and how many seconds it took."""

    starts: Sequence[tuple[float, float]] = ()

    @classmethod
    def read(cls, path: Path) -> Self:
        """Returns none of a run that has noted none."""
        lines = path.read_text().splitlines() if path.exists() else []
        return cls(tuple((at, took) for at, took in map(json.loads, lines)))

    def seconds(self, spans: Iterable[tuple[float, float]]) -> float:
        """Returns how long `spans` are, where the machine is as quick as it can be."""
        return sum(self._seconds(since, until) for since, until in spans)

    def _seconds(self, since: float, until: float) -> float:
        if not self.starts:
            return until - since
        usual = BUSY * sorted(took for _, took in self.starts)[int(QUICK * len(self.starts))]
        first = bisect_right(self.starts, since, key=lambda start: start[0])
        last = bisect_right(self.starts, until, key=lambda start: start[0])
        edges = [since, *(at for at, _ in self.starts[first:last]), until]
        slowed = [max(1.0, took / usual) for _, took in self.starts[max(0, first - 1) : last]]
        slowed = [1.0] * (len(edges) - 1 - len(slowed)) + slowed
        return sum((b - a) / by for a, b, by in zip(edges[:-1], edges[1:], slowed, strict=True))


def watch(path: Path, over: threading.Event) -> None:
    """Notes starts in `path` until `over` is set."""
    with path.open("w") as file:
        while not over.wait(EVERY_S):
            at, began = time.time(), time.perf_counter()
            subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True)
            print(json.dumps((at, time.perf_counter() - began)), file=file, flush=True)
