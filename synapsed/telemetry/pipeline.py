"""All that is measured of one daemon, put together: the metrics, the traces, and what keeps both up to date."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import structlog

from synapsed.clock import Clock
from synapsed.config import Config
from synapsed.model.figures import FAST_S, AgentFigures, Histogram
from synapsed.paths import Paths
from synapsed.store.store import SqliteStore
from synapsed.telemetry.metrics import Metrics
from synapsed.telemetry.tracer import Tracer, trace_settings

log = structlog.stdlib.get_logger("synapsed.telemetry")


class Telemetry:
    """`agents` gives the figures of all agents. `run` it once the daemon serves, `close` it before the store."""

    def __init__(
        self,
        config: Config,
        *,
        store: SqliteStore,
        agents: Callable[[], Iterable[AgentFigures]],
        clock: Clock,
        paths: Paths,
        version: str,
    ) -> None:
        self.lag = Histogram(FAST_S)
        """For whoever watches the event loop."""
        self.tracer: Tracer | None = None
        """None: there are no traces."""
        self.metrics: Metrics | None = None
        """None: they are switched off."""
        if config.traces.endpoint:
            settings = trace_settings(
                config.traces, cursor=paths.traces_cursor, version=version, outgoing=config.outgoing
            )
            self.tracer = Tracer(settings, log=store.events, tasks=store, agents=agents, clock=clock)
        if config.metrics.enabled:
            self.metrics = Metrics(
                log=store.events,
                agents=agents,
                store=store.database,
                clock=clock,
                version=version,
                lag=self.lag,
                traces=self.tracer.figures if self.tracer is not None else None,
            )

    async def run(self, alert: Callable[[str], None]) -> None:
        """Until cancelled; `alert` is told what a person has to mend."""
        async with asyncio.TaskGroup() as group:
            if self.metrics is not None:
                group.create_task(_alone(self.metrics.run(), "metrics"))
            if self.tracer is not None:
                group.create_task(_alone(self.tracer.trace(alert), "traces"))

    async def close(self) -> None:
        if self.tracer is not None:
            await _alone(self.tracer.close(), "traces")


async def _alone(work: Coroutine[Any, Any, None], what: str) -> None:
    """Whatever goes wrong there, the agents go on."""
    try:
        await work
    except Exception:
        log.exception("it has failed, and ends", what=what)
