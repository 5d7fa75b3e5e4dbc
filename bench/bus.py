"""What an event costs: the same commits without events, with them, and with subscribers who are sent them.

python -m bench bus

In one process, in turn, so that whatever else the machine does falls on all of them alike. CPU time of all threads
counts, and the time of a commit.
"""

import asyncio
import logging
import statistics
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from bench.figures import milliseconds, report, sized
from synapsed.aio import Pace
from synapsed.api.context import PIECES_AT_ONCE
from synapsed.api.event_stream import EventCache, Subscription
from synapsed.clock import SystemClock, iso
from synapsed.interfaces import EVERY_EVENT, NewEvent
from synapsed.model.events import ToolExecution
from synapsed.model.task import Message, Task
from synapsed.store.store import SqliteStore

ROUNDS = sized(40, 2)
COMMITS = sized(50, 5)
"""Of each round; each with `EVENTS` events, where it has any."""
EVENTS = 4
SUBSCRIBERS = 10
EVENT_MS = 1.0
RATIO = 1.0
"""What an event may add to a commit, of the time of one without events."""


@dataclass
class Bus:
    store: SqliteStore
    events: int
    subscribers: int = 0
    took: list[float] = field(default_factory=list)
    cpu: float = 0.0
    sent: int = 0
    readers: list[asyncio.Task[None]] = field(default_factory=list)

    def subscribe(self) -> None:
        cache, pace = EventCache(), Pace(PIECES_AT_ONCE)
        self.readers = [asyncio.create_task(self._read(cache, pace)) for _ in range(self.subscribers)]

    async def _read(self, cache: EventCache, pace: Pace) -> None:
        log = self.store.events
        subscription = Subscription(
            log, cache, SystemClock(), pace, after=log.last_id, which=EVERY_EVENT, who={"subscriber": "bench"}
        )
        async for sent in subscription.follow():
            self.sent = max(self.sent, sent.event_id or 0)

    async def round(self) -> None:
        cpu = time.process_time()
        for number in range(COMMITS):
            task = a_task(number)
            told = [NewEvent.of(task, tool(n)) for n in range(self.events)]
            begin = time.perf_counter()
            await self.store.commit(tasks=[task], events=told)
            self.took.append(time.perf_counter() - begin)
        while self.subscribers and self.sent < self.store.events.last_id:
            await asyncio.sleep(0)
            for reader in self.readers:
                if reader.done():  # it would be waited for without end
                    reader.result()
        self.cpu += time.process_time() - cpu

    @property
    def cpu_of_commit(self) -> float:
        return self.cpu / (ROUNDS * COMMITS)


def main() -> None:
    quiet = structlog.make_filtering_bound_logger(logging.WARNING)
    structlog.configure(wrapper_class=quiet)
    asyncio.run(buses())


async def buses() -> None:
    with ExitStack() as stack:
        found: dict[str, Bus] = {}
        for name, events, subscribers in (("none", 0, 0), ("events", EVENTS, 0), ("sent", EVENTS, SUBSCRIBERS)):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="synapsed-bench-"))
            store = await SqliteStore.open(Path(folder) / "synapsed.db", clock=SystemClock())
            found[name] = Bus(store, events, subscribers)
        found["sent"].subscribe()
        await asyncio.sleep(0)
        for _ in range(ROUNDS):
            for bus in found.values():
                await bus.round()
        for bus in found.values():
            for reader in bus.readers:
                reader.cancel()
            await asyncio.gather(*bus.readers, return_exceptions=True)
            await bus.store.close()
    plain = found["none"]
    for name, what in (("events", "an event"), ("sent", f"an event that {SUBSCRIBERS} are sent")):
        bus = found[name]
        each = (bus.cpu_of_commit - plain.cpu_of_commit) / EVENTS * 1e3
        report(f"{what}, CPU beyond the commit's own", f"{each:.3f} ms", f"≤ {EVENT_MS} ms", held=each <= EVENT_MS)
    added = (statistics.median(found["events"].took) / statistics.median(plain.took) - 1) / EVENTS
    report(
        "what an event adds to the time of a commit",
        f"{added:.2f} of it: with {EVENTS} {milliseconds(found['events'].took)}, without {milliseconds(plain.took)}",
        f"p50 ≤ {RATIO}",
        held=added <= RATIO,
    )


def a_task(number: int) -> Task:
    now = iso(time.time())
    return Task(agent_id="synapse-claude-8100", message=Message.of(f"do {number}"), created_at=now, updated_at=now)


def tool(number: int) -> ToolExecution:
    return ToolExecution(
        tool_name="shell",
        status="completed",
        input={"command": f"pytest -x tests/test_{number}.py"},
        output={"text": "1 passed in 0.12s\n" * 10},
        call_id=str(number),
    )


if __name__ == "__main__":
    main()
