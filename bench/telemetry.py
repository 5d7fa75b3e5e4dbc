"""What metrics and traces cost: the same turns on three daemons, one after the other, and a scrape of 300 agents.

python -m bench telemetry

One daemon measures nothing, one is scraped every second (Prometheus does it every 15), one sends traces to a collector
as well. Their turns take place in turn, so that whatever else the machine does falls on all of them alike.
"""

import asyncio
import statistics
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

import psutil

from bench.figures import daemon, milliseconds, percentile, report, sized
from synapsed.clock import SystemClock
from synapsed.model.agent import Activity, ProcessState
from synapsed.model.figures import FAST_S, AgentFigures, DaemonFigures, Histogram
from synapsed.parts.telemetry.metrics import Metrics
from synapsed.store.store import SqliteStore
from tests.support.daemon import Daemon

TURNS = sized(150, 3)
AGENTS = sized(300, 20)
SCRAPES = sized(20, 2)
EVERY_S = 1.0
QUIET = '[api]\nlisten = "127.0.0.1:0"\nagent_ports = false\n'
OFF = f"{QUIET}[metrics]\nenabled = false\n"
RATIO = 1.1


def main() -> None:
    turns()
    asyncio.run(scrapes())


@contextmanager
def scraped(running: Daemon) -> Iterator[list[float]]:
    """The daemon is scraped all the while; what each scrape took, seconds."""
    over, took = threading.Event(), list[float]()

    def scrape() -> None:
        while not over.wait(EVERY_S):
            begin = time.perf_counter()
            assert running.get("/metrics").status == 200
            took.append(time.perf_counter() - begin)

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield took
    finally:
        over.set()
        thread.join()


def turns() -> None:
    with ExitStack() as stack:
        daemons = {"neither": stack.enter_context(daemon(OFF))}
        daemons["metrics"] = stack.enter_context(daemon(QUIET))
        if find_spec("opentelemetry.sdk") is not None:
            from tests.support.collector import Collector

            collector = stack.enter_context(Collector())
            traces = f'[traces]\nendpoint = "{collector.url}"\n'
            daemons["metrics and traces"] = stack.enter_context(daemon(QUIET + traces))
        else:
            print("      traces are not measured: they need the extra `otel`")
        for running in daemons.values():
            running.start_agent()
        for name in list(daemons)[1:]:
            stack.enter_context(scraped(daemons[name]))
        took: dict[str, list[float]] = {name: [] for name in daemons}
        before = {name: cpu_s(running) for name, running in daemons.items()}
        for number in range(TURNS):
            for name, running in daemons.items():
                took[name].append(turn(running, number))
        used = {name: (cpu_s(running) - before[name]) / TURNS for name, running in daemons.items()}
    plain = statistics.median(took["neither"])
    for name, times in took.items():
        ratio = statistics.median(times) / plain
        figure = f"{milliseconds(times)}, {used[name] * 1e3:.1f} ms of CPU: {ratio:.2f} times"
        report(f"a turn, {TURNS} with {name}", figure, f"p50 ≤ {RATIO} times that with neither", held=ratio <= RATIO)


def turn(running: Daemon, number: int) -> float:
    begin = time.perf_counter()
    body = {"message": {"parts": [{"type": "text", "text": f"echo {number}"}]}}
    task = running.post("/agents/dummy/tasks/send", body).json["task"]["id"]
    with running.sse(f"/agents/dummy/tasks/{task}/subscribe") as events:
        last = list(events)[-1]
    took = time.perf_counter() - begin
    assert last["data"]["state"] == "completed", last
    running.ready()
    return took


def cpu_s(running: Daemon) -> float:
    used = psutil.Process(running.pid).cpu_times()
    return used.user + used.system


async def scrapes() -> None:
    """In one process: how long the event loop is at work between two of its turns while everything is scraped. CPU
    time of its thread counts, not the clock: on a busy machine others run in between."""
    with tempfile.TemporaryDirectory(prefix="synapsed-bench-") as folder:
        store = await SqliteStore.open(Path(folder) / "synapsed.db", clock=SystemClock())
        figures = [_agent(number) for number in range(AGENTS)]
        metrics = Metrics(
            log=store.events,
            figures=DaemonFigures(
                version="bench",
                store=store.database,
                lag=Histogram(FAST_S),
                agents=lambda: figures,
                streams=lambda: 0,
            ),
            clock=SystemClock(),
        )
        await metrics.scrape("")  # loads the library
        quiet = await pauses(lambda: asyncio.sleep(0.2))
        took, held_up, size = [], list[float](), 0

        async def scrape() -> None:
            nonlocal size
            begin = time.perf_counter()
            size = len((await metrics.scrape(""))[1])
            took.append(time.perf_counter() - begin)

        for _ in range(SCRAPES):
            held_up += await pauses(scrape)
        await store.close()
    print(f"      a scrape of {AGENTS} agents: {size >> 10} KiB, {milliseconds(took)}")
    report(
        "the event loop's work between two turns meanwhile",
        f"p50 {statistics.median(held_up) * 1e3:.2f}, p99 {percentile(held_up, 0.99) * 1e3:.2f}, "
        f"most {max(held_up) * 1e3:.2f} ms "
        f"(without: p99 {percentile(quiet, 0.99) * 1e3:.2f} ms)",
        "never 5 ms",
        held=max(held_up) < 0.005,
    )


async def pauses(work: Callable[[], Awaitable[None]]) -> list[float]:
    """Seconds of work between one turn of the loop and the next while `work` is done."""
    found, over = [], False

    async def watch() -> None:
        last = time.thread_time()
        while not over:
            await asyncio.sleep(0)
            now = time.thread_time()
            found.append(now - last)
            last = now

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    await work()
    over = True
    await watching
    return found


def _agent(number: int) -> AgentFigures:
    return AgentFigures(
        id=f"synapse-claude-{number}",
        name=f"agent-{number}",
        profile="claude",
        state=ProcessState.RUNNING,
        activity=Activity.READY,
        restarts=0,
        queue=1,
        oldest=time.time(),
        current=None,
        output=10_000,
        terminals=1,
        alerts=0,
    )


if __name__ == "__main__":
    main()
