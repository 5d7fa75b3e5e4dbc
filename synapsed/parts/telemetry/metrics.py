"""`GET /metrics`: gathers the numbers at the moment of a scrape, and writes them without delaying the event loop."""

import asyncio
import importlib
import platform
import resource
from collections.abc import Iterable
from typing import Any

import psutil
import structlog

from synapsed.clock import Clock
from synapsed.errors import StoreError
from synapsed.interfaces import AgentFigures, DaemonFigures, EventLog
from synapsed.parts.telemetry.families import Values, agent_values, sheets_of
from synapsed.parts.telemetry.observer import Observer
from synapsed.parts.telemetry.task_lives import TaskPhase
from synapsed.parts.telemetry.tracer import TraceFigures

CATCH_UP_S = 5.0
"""Seconds between two reads of the log without a scrape, so that little is left for a scrape."""

GATHERED = 32
"""Agents that are read between two turns of the event loop."""

_STAGES = {
    "synapse_task_queue_seconds": TaskPhase.QUEUED,
    "synapse_task_delivery_seconds": TaskPhase.DELIVERING,
    "synapse_task_turn_seconds": TaskPhase.TURN,
    "synapse_task_input_seconds": TaskPhase.ASKING,
    "synapse_task_completion_seconds": TaskPhase.WHOLE,
}

log = structlog.stdlib.get_logger("synapsed.metrics")


class Metrics:
    def __init__(
        self,
        *,
        log: EventLog,
        figures: DaemonFigures,
        clock: Clock,
        traces: TraceFigures | None = None,
    ) -> None:
        self._log = log
        self._figures = figures
        self._traces = traces
        self._clock = clock
        self._began = clock.wall()
        self._profiles: dict[str, str] = {}
        self._observer = Observer(log, profile_of=self._profiles.get)

    async def run(self) -> None:
        """Follows the log until cancelled."""
        while True:
            await asyncio.sleep(CATCH_UP_S)
            try:
                await self._gather()
            except StoreError as error:
                log.warning("the log cannot be read; tasks are counted later", why=error.message)

    async def scrape(self, accept: str) -> tuple[str, bytes]:
        """Returns the content type and the document, in the format that `accept` asks for. Raises StoreError."""
        # The library takes a tenth of a second to load: only at a scrape, and in a thread.
        exposition = await asyncio.to_thread(importlib.import_module, "synapsed.parts.telemetry.exposition")
        agents = await self._gather()
        process = await asyncio.to_thread(self._process)
        now = self._clock.wall()
        values = {**self._daemon(), **agent_values(agents, now=now), **self._tasks(agents), **process}
        encode, content_type = exposition.encoder_for(accept)
        pieces = [piece async for piece in exposition.expose(sheets_of(values), encode)]
        return content_type, b"".join(pieces)

    async def _gather(self) -> list[AgentFigures]:
        """Returns the present agents, after reading the log up to now."""
        agents: list[AgentFigures] = []
        for one in self._figures.agents():
            agents.append(one)
            if len(agents) % GATHERED == 0:
                await asyncio.sleep(0)
        self._profiles.update((one.id, one.profile) for one in agents)
        await self._observer.catch_up()
        self._profiles.clear()
        self._profiles.update((one.id, one.profile) for one in agents)
        self._observer.forget(self._profiles)
        return agents

    def _daemon(self) -> dict[str, Any]:
        store = self._figures.store
        return {
            "synapse_build_info": [((self._figures.version, platform.python_version()), 1.0)],
            "synapse_start_time_seconds": [((), self._began)],
            "synapse_events_total": [((kind,), count) for kind, count in sorted(self._log.published.items())],
            "synapse_subscribers": [((), self._figures.streams())],
            "synapse_loop_lag_seconds": [((), self._figures.lag)],
            "synapse_store_commit_seconds": [((), store.commits)],
            "synapse_store_read_seconds": [((), store.reads)],
            **self._sent(),
            "synapse_store_errors_total": [((reason,), count) for reason, count in sorted(store.refusals.items())],
        }

    def _sent(self) -> dict[str, Any]:
        if self._traces is None:
            return {}
        sent = [(("exported",), self._traces.exported), (("dropped",), self._traces.dropped)]
        return {"synapse_trace_spans_total": sent}

    def _tasks(self, agents: Iterable[AgentFigures]) -> dict[str, Any]:
        seen = self._observer
        named = {one.id: (one.name, one.profile) for one in agents}
        stages = {
            name: [((profile,), took) for (one, profile), took in sorted(seen.periods.items()) if one is stage]
            for name, stage in _STAGES.items()
        }
        return {
            "synapse_tasks_submitted_total": [((profile,), count) for profile, count in sorted(seen.submitted.items())],
            "synapse_tasks_ended_total": sorted(seen.ended.items()),
            "synapse_tasks_failed_total": sorted(seen.failed.items()),
            **stages,
            "synapse_tool_calls_total": sorted(seen.tools.items()),
            "synapse_tool_call_seconds": [((profile,), took) for profile, took in sorted(seen.tool_times.items())],
            "synapse_agent_tokens_total": [
                ((*named[agent_id], kind), count)
                for (agent_id, kind), count in sorted(seen.tokens.items())
                if agent_id in named
            ],
            "synapse_agent_cost_dollars_total": [
                (named[agent_id], cost) for agent_id, cost in sorted(seen.costs.items()) if agent_id in named
            ],
        }

    def _process(self) -> Values:
        """Returns the system's figures of this process; unknown ones are left out. Runs in a thread."""
        process = psutil.Process()
        with process.oneshot():
            cpu = process.cpu_times()
            values: dict[str, Any] = {
                "synapse_process_cpu_seconds_total": [((), cpu.user + cpu.system)],
                "synapse_process_resident_memory_bytes": [((), process.memory_info().rss)],
                "synapse_process_open_fds": [((), process.num_fds())],
                "synapse_process_threads": [((), process.num_threads())],
            }
        values["synapse_process_max_fds"] = [((), resource.getrlimit(resource.RLIMIT_NOFILE)[0])]
        values["synapse_store_size_bytes"] = [((), self._figures.store.size())]
        return values
