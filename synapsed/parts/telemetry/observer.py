"""Counts tasks from the event log: the numbers of those metrics that no other module keeps.

The log is read on request, and at intervals, so that each read stays small. Numbers begin at 0 with the daemon, as
Prometheus expects of a counter; a turn that began earlier still has its whole length, because the beginning of a task
that is first seen in the middle is read from the log.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Container

from synapsed.interfaces import SLOW_S, EventLog, Histogram
from synapsed.model.events import TokensUsed
from synapsed.model.external import alias_of
from synapsed.model.task import TaskState
from synapsed.parts.telemetry.reader import EventWithLife, LifeFollower
from synapsed.parts.telemetry.task_lives import OTHER, Life, Period, TaskPhase, ToolLife, tokens_of

ELSEWHERE = "external"
"""`profile` of tasks of agents elsewhere."""

UNKNOWN = "unknown"
"""`profile` of an agent that was gone before its tasks were counted."""

CODES_MAX = 100
"""Codes of errors that are counted separately; an agent elsewhere may make up its own. Others are counted as OTHER."""


class Observer(LifeFollower):
    """Counts tasks, calls of tools, tokens and costs. `profile_of` returns the profile of a present agent, None for
    another."""

    name = "metrics"

    def __init__(self, log: EventLog, *, profile_of: Callable[[str], str | None]) -> None:
        super().__init__(log)
        self._profile_of = profile_of
        self._reading = asyncio.Lock()
        self.submitted: Counter[str] = Counter()
        self.ended: Counter[tuple[str, str]] = Counter()
        """Ended tasks by profile and state."""
        self.failed: Counter[tuple[str, str]] = Counter()
        """Failed tasks by profile and code."""
        self.periods: dict[tuple[TaskPhase, str], Histogram] = {}
        """Periods by stage and profile; WHOLE has only completed tasks."""
        self.tools: Counter[tuple[str, str]] = Counter()
        """Calls that ended, by profile and status."""
        self.tool_times: dict[str, Histogram] = {}
        """Durations of tool calls by profile."""
        self.tokens: Counter[tuple[str, str]] = Counter()
        """Tokens by agent's id and kind."""
        self.costs: dict[str, float] = {}
        """Costs by agent's id, in US dollars."""

    async def catch_up(self) -> None:
        """Counts the events so far. Raises StoreError."""
        async with self._reading:
            await super().catch_up()

    async def on_event(self, entry: EventWithLife) -> None:
        event, life = entry.event, entry.life
        if isinstance(event.data, TokensUsed):
            self._use(event.agent_id, event.data)
        if life is None or life.by_reply:
            return  # such a task waits for another task, which is counted
        profile = self._profile(life.agent_id)
        self.submitted[profile] += entry.fresh
        for one in entry.ended:
            if isinstance(one, ToolLife):
                self._called(one, profile)
            else:
                self._count(life, one, profile)

    def _use(self, agent_id: str, used: TokensUsed) -> None:
        self.tokens.update({(agent_id, kind): count for kind, count in tokens_of(used).items()})
        if used.cost_usd:
            self.costs[agent_id] = self.costs.get(agent_id, 0.0) + used.cost_usd

    def forget(self, agents: Container[str]) -> None:
        """Drops the counts by agent, except for these agents."""
        for agent_id, kind in [key for key in self.tokens if key[0] not in agents]:
            del self.tokens[agent_id, kind]
        for agent_id in [key for key in self.costs if key not in agents]:
            del self.costs[agent_id]

    def _called(self, call: ToolLife, profile: str) -> None:
        self.tools[profile, "denied" if call.denied else call.status] += 1
        if (histogram := self.tool_times.get(profile)) is None:
            histogram = self.tool_times[profile] = Histogram(SLOW_S)
        histogram.observe(call.seconds)

    def _count(self, life: Life, period: Period, profile: str) -> None:
        if period.stage is TaskPhase.WHOLE:
            self.ended[profile, life.state.value] += 1
            if life.code is not None:
                self.failed[profile, self._code(life.code)] += 1
            if life.state is not TaskState.COMPLETED:
                return
        key = period.stage, profile
        if (histogram := self.periods.get(key)) is None:
            histogram = self.periods[key] = Histogram(SLOW_S)
        histogram.observe(period.seconds)

    def _code(self, code: str) -> str:
        known = {known for _, known in self.failed}
        return code if code in known or len(known) < CODES_MAX else OTHER

    def _profile(self, agent_id: str) -> str:
        if alias_of(agent_id) is not None:
            return ELSEWHERE
        return self._profile_of(agent_id) or UNKNOWN
