"""The telemetry of one daemon, put together: metrics, traces, and the asyncio tasks that update both."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import structlog

from synapsed.aio import cancel_all
from synapsed.kernel import Kernel, Running
from synapsed.parts.telemetry.metrics import Metrics
from synapsed.parts.telemetry.tracer import Tracer, trace_settings

METRICS_KEY = "metrics-token"
"""Name of a file in the state directory, with a token that reads the metrics and nothing else."""

CURSOR_FILE = "traces.cursor"
"""Name of a file in the state directory, with the event up to which traces were sent."""

log = structlog.stdlib.get_logger("synapsed.telemetry")


class Telemetry(Running):
    """Metrics and traces, as far as they are configured; both follow the log until the part is closed."""

    def __init__(self, kernel: Kernel) -> None:
        self.provides = {Telemetry: self}
        self._kernel = kernel
        self._at_work: list[asyncio.Task[None]] = []
        config, figures, events = kernel.config, kernel.figures, kernel.store.events
        self.tracer: Tracer | None = None
        """Tracer, or None without traces."""
        self.metrics: Metrics | None = None
        """Metrics, or None if they are switched off."""
        if config.traces.endpoint:
            kernel.sampling.share = config.traces.sample
            settings = trace_settings(
                config.traces,
                cursor=kernel.paths.state / CURSOR_FILE,
                version=figures.version,
                proxy=config.outgoing.proxy_for(urlsplit(config.traces.endpoint).hostname or ""),
            )
            self.tracer = Tracer(settings, log=events, tasks=kernel.store, agents=figures.agents, clock=kernel.clock)
        if config.metrics.enabled:
            traces = self.tracer.figures if self.tracer is not None else None
            self.tokens = {"/metrics": METRICS_KEY}
            self.metrics = Metrics(log=events, figures=figures, clock=kernel.clock, traces=traces)

    def started(self) -> None:
        loop = asyncio.get_running_loop()
        if self.metrics is not None:
            self._at_work.append(loop.create_task(_alone(self.metrics.run(), "metrics")))
        if self.tracer is not None:
            self._at_work.append(loop.create_task(_alone(self.tracer.trace(self._kernel.alert), "traces")))

    async def close(self) -> None:
        """Ends both; spans of tasks that ended with the agents are sent first."""
        await cancel_all(self._at_work)
        if self.tracer is not None:
            await _alone(self.tracer.close(), "traces")


@asynccontextmanager
async def opened(kernel: Kernel) -> AsyncGenerator[Running]:
    telemetry = Telemetry(kernel)
    try:
        yield telemetry
    finally:
        await telemetry.close()


async def _alone(work: Coroutine[Any, Any, None], what: str) -> None:
    """Runs the work; its failure does not stop the agents."""
    try:
        await work
    except Exception:
        log.exception("it has failed, and ends", what=what)
