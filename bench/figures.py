"""What the benchmarks share: a daemon of their own, percentiles, and a line for each figure beside its bar."""

import asyncio
import contextlib
import os
import socket
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.support.daemon import Daemon

SMOKE = "SYNAPSED_BENCH_SMOKE"
"""Set in the environment: everything is measured in a size that shows only that the measuring works."""


def sized[Size: (int, float)](full: Size, smoke: Size) -> Size:
    """`full`, or `smoke` in a smoke run."""
    return smoke if os.environ.get(SMOKE) else full


@contextlib.contextmanager
def daemon(
    config: str = "", *, profiles: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None
) -> Iterator[Daemon]:
    """A real daemon in a temporary home, with these profiles of the user's, and `environ` beside the own environment;
    it and its agents are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="synapsed-bench-") as folder:
        running = Daemon(Path(folder), environ={**environment(), **(environ or {})}, config=config)
        for name, text in (profiles or {}).items():
            path = running.config_file.parent / "profiles" / f"{name}.toml"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        running.start()
        try:
            yield running
        finally:
            running.end()


def environment() -> dict[str, str]:
    """The own one, but with compiled modules kept, as an installed package has them."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


async def listening(port: int) -> float:
    """When it takes connections."""
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), 1):
                return time.monotonic()
        except OSError:
            await asyncio.sleep(0.005)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of `values` lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def pss(pid: int) -> int:
    """Proportional memory of a process, bytes (Linux)."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def computed(pid: int) -> float:
    """Seconds that all its threads have computed, exactly (Linux)."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(one.read_text().split()[0]) for one in tasks) / 1e9


def report(what: str, figure: str, bar: str, *, held: bool) -> None:
    """One line: what was measured, the figure, the bar and whether it holds."""
    print(f"{'ok  ' if held else 'MISS'}  {what:<56} {figure}; bar: {bar}", flush=True)


def milliseconds(seconds: Sequence[float]) -> str:
    return f"p50 {statistics.median(seconds) * 1e3:.1f} ms, p95 {percentile(seconds, 0.95) * 1e3:.1f} ms"
