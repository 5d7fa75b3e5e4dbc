"""The machine that a run was on: cores, load, and how long a bare interpreter takes to start."""

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

__all__ = ["Load", "bare_start_ms", "cores", "watched"]

EVERY_S = 5.0
"""Between two readings of the load."""

STARTS = 7


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def bare_start_ms() -> float:
    """Returns the median of a few starts of an interpreter that does nothing, in milliseconds by the clock."""
    took = []
    for _ in range(STARTS):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True)
        took.append(1000 * (time.perf_counter() - began))
    return round(statistics.median(took), 1)


@dataclass
class Load:
    """The load average of one minute while something ran."""

    seen: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{min(self.seen):.1f} to {max(self.seen):.1f}, {statistics.fmean(self.seen):.1f} on average"


@contextmanager
def watched() -> Iterator[Load]:
    """Reads the load while its body runs."""
    load, ended = Load([os.getloadavg()[0]]), threading.Event()

    def watch() -> None:
        while not ended.wait(EVERY_S):
            load.seen.append(os.getloadavg()[0])

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield load
    finally:
        ended.set()
        thread.join()
        load.seen.append(os.getloadavg()[0])
