"""Makes a trace of each task that is over, and sends it. It follows the log with a durable cursor.

The log is the queue: events that the collector has not taken are read again from it, by the next daemon too. So only
one batch is held in memory, a collector that cannot be reached costs only an attempt at intervals, and no other work
waits for it. The ids of spans are made of their tasks, so that a batch that is sent twice (after a kill between the
collector's answer and the write of the cursor) has the same spans.
"""

import asyncio
import contextlib
import importlib
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import structlog

from synapsed.clock import Clock, backoff
from synapsed.errors import StoreError
from synapsed.interfaces import AgentFigures, EventLog, Store
from synapsed.model.external import alias_of
from synapsed.parts.telemetry.extra import MISSING
from synapsed.parts.telemetry.face import TracesConfig
from synapsed.parts.telemetry.observer import ELSEWHERE, UNKNOWN
from synapsed.parts.telemetry.reader import EventWithLife, LifeFollower
from synapsed.parts.telemetry.spans import Span, spans_of
from synapsed.parts.telemetry.task_lives import Life, Period, TaskPhase
from synapsed.shared.files import write_private
from synapsed.store.follower import NotNow

EVERY_S = 2.0
"""Seconds between two looks at the log: spans come in batches, a little later than their events."""

AGE_MAX_S = 24 * 3600.0
"""Seconds after a task's end in which its trace can be sent; later the trace is dropped."""

SPANS_MAX = 128
"""Spans of a batch, without those of its last task: encoding one takes some 50 µs, beside the event loop."""

FIRST_PAUSE_S = 2.0
LAST_PAUSE_S = 60.0
"""First pause in seconds after a batch that was not taken; it doubles."""

LAST_WORDS_S = 2.0
"""Seconds that the daemon's end waits for the remaining spans; the next daemon sends the rest."""

log = structlog.stdlib.get_logger("synapsed.traces")


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSettings:
    """Settings of the traces. `resource` describes the source of the spans, `sample` is the share of the traces that
    begin here and are sent."""

    endpoint: str
    headers: Mapping[str, str]
    sample: float
    timeout: float
    cursor: Path
    resource: Mapping[str, str]
    version: str
    proxy: str | None = field(default=None, repr=False)
    """Proxy, or None if the endpoint is reached directly."""


def trace_settings(config: TracesConfig, *, cursor: Path, version: str, proxy: str | None = None) -> TraceSettings:
    """Returns the settings of the configuration, for this host."""
    resource = {"service.name": "synapsed", "service.version": version, "host.name": socket.gethostname()}
    return TraceSettings(
        endpoint=config.endpoint,
        proxy=proxy,
        headers=config.headers,
        sample=config.sample,
        timeout=config.timeout,
        cursor=cursor,
        resource=resource,
        version=version,
    )


@dataclass(slots=True)
class TraceFigures:
    """Numbers of spans since the daemon began."""

    exported: int = 0
    dropped: int = 0


type Outcome = tuple[Literal["taken", "later", "refused"], int | None]
"""Result of a batch, and the HTTP status of the last answer: `taken`: the collector has the batch; `later`: the
collector cannot be reached or is busy; `refused`: another attempt would fail too."""


class Exporter(Protocol):
    def send(self, spans: Sequence[Span]) -> Outcome:
        """Sends the spans, and waits until that is done."""
        ...

    def close(self) -> None: ...


class Tracer(LifeFollower):
    """Makes and sends traces. `agents` returns the figures of all agents. Call `trace` once the daemon serves, and
    `close` before the store is closed."""

    name = "traces"
    pace = EVERY_S

    def __init__(
        self,
        settings: TraceSettings,
        *,
        log: EventLog,
        tasks: Store,
        agents: Callable[[], Iterable[AgentFigures]],
        clock: Clock,
    ) -> None:
        super().__init__(log)
        self._settings = settings
        self._tasks = tasks
        self._agents = agents
        self._names: dict[str, tuple[str, str]] = {}
        self._clock = clock
        self._spans: list[Span] = []
        """Spans of tasks up to the cursor that the collector does not have yet."""
        self._patient = True
        """True if it keeps trying while the collector cannot be reached."""
        self._exporter: Exporter | None = None
        self._sending = False
        self.figures = TraceFigures()

    async def trace(self, alert: Callable[[str], None]) -> None:
        """Runs until cancelled; `alert` is called if it cannot work at all."""
        try:
            otlp = await asyncio.to_thread(importlib.import_module, "synapsed.parts.telemetry.otlp")
        except ImportError:
            log.error("no traces", why=MISSING)  # noqa: TRY400 - the message is enough
            alert(MISSING)
            return
        self._exporter = otlp.exporter_of(self._settings)
        await self.restore()
        await self.run()

    async def close(self) -> None:
        """Sends the rest, for LAST_WORDS_S at most."""
        if self._exporter is None:
            return
        if not self._sending:
            try:
                async with asyncio.timeout(LAST_WORDS_S):
                    await self.send_now()
            except (TimeoutError, StoreError) as error:
                log.debug("the next daemon sends the rest", why=str(error))
        self._exporter.close()

    async def send_now(self) -> None:
        """Sends all spans, in one attempt; the next daemon sends those that are left after a failure."""
        self._patient = False
        await self.restore()
        with contextlib.suppress(NotNow):
            await self.catch_up()

    async def restore(self) -> None:
        """Sets the cursor to the last daemon's place, else to the beginning of this one, which is noted for the next
        one, if the disk takes it. Raises StoreError."""
        await super().restore()
        self._spans = []
        self.cursor = await asyncio.to_thread(self._load)

    async def on_event(self, entry: EventWithLife) -> None:
        life = entry.life
        if life is None or life.end is None or not any(one.stage is TaskPhase.WHOLE for one in _periods(entry)):
            return
        self._spans += await self._spans_of(life)
        if len(self._spans) >= SPANS_MAX:
            await self._deliver(entry.event.id)

    async def handled(self) -> None:
        if self._spans:
            await self._deliver(self.cursor)

    async def _spans_of(self, life: Life) -> list[Span]:
        assert life.end is not None
        if life.by_reply:
            return []  # such a task waits for another task, which has its own trace
        if self._clock.wall() - life.end > AGE_MAX_S:
            self.figures.dropped += 1
            return []
        metadata = await self._tasks.task_metadata(life.task_id)
        name, profile = self._named(life.agent_id)
        return list(spans_of(life, metadata, name=name, profile=profile, share=self._settings.sample))

    def _named(self, agent_id: str) -> tuple[str, str]:
        if (alias := alias_of(agent_id)) is not None:
            return alias, ELSEWHERE
        if agent_id not in self._names:
            self._names = {one.id: (one.name, one.profile) for one in self._agents()}
        return self._names.get(agent_id, (agent_id, UNKNOWN))

    async def _deliver(self, cursor: int) -> None:
        """Gives the spans to the collector, however long that takes, and moves the durable cursor. Raises NotNow
        instead of waiting if it is not patient."""
        failures, spans = 0, self._spans
        while (sent := await self._send(spans))[0] == "later":
            if failures == 0:
                log.warning("the collector takes no spans; they are sent later", status=sent[1])
            if not self._patient:
                raise NotNow
            await asyncio.sleep(backoff(failures, initial=FIRST_PAUSE_S, factor=2.0, maximum=LAST_PAUSE_S))
            failures += 1
        if sent[0] == "refused":
            log.error("the collector refuses spans; they are dropped", status=sent[1], spans=len(spans))
            self.figures.dropped += len(spans)
        else:
            self.figures.exported += len(spans)
        self._spans = []
        await asyncio.to_thread(self._save, cursor)

    async def _send(self, spans: list[Span]) -> Outcome:
        """Sends in a thread of its own, which the end of the daemon does not wait for."""
        assert self._exporter is not None
        loop, send = asyncio.get_running_loop(), self._exporter.send
        sent: asyncio.Future[Outcome] = loop.create_future()

        def tell(outcome: Outcome) -> None:
            self._sending = False
            if not sent.done():
                sent.set_result(outcome)

        def work() -> None:
            outcome: Outcome = "later", None
            try:
                outcome = send(spans)
            except Exception as error:  # noqa: BLE001 - no error may end this work
                log.warning("the exporter failed", why=type(error).__name__)
            with contextlib.suppress(RuntimeError):  # the daemon has ended meanwhile
                loop.call_soon_threadsafe(tell, outcome)

        self._sending = True
        threading.Thread(target=work, name="traces", daemon=True).start()
        return await sent

    def _load(self) -> int:
        with contextlib.suppress(OSError, ValueError):
            cursor = int(self._settings.cursor.read_text(encoding="ascii"))
            if 0 <= cursor <= self._events.last_id:
                return cursor
        try:
            self._save(self.cursor)
        except StoreError as error:  # the first batch that is sent has it written
            log.warning("the beginning of the traces is not noted", why=error.message)
        return self.cursor

    def _save(self, cursor: int) -> None:
        write_private(self._settings.cursor, f"{cursor}\n".encode())


def _periods(entry: EventWithLife) -> Iterator[Period]:
    return (one for one in entry.ended if isinstance(one, Period))
