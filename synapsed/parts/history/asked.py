"""What the API asks of the history."""

from dataclasses import dataclass
from typing import Literal, Protocol

from synapsed.parts.history.answers import HistoryKind, HistoryPage, HistoryStats, UsageReport

type By = Literal["agent", "day", "task"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFilter:
    """What is looked for; None means any. `query`: words that all stand in it, a phrase in double quotes. `context`: of
    the context, or of its thread. `since` and `until` (exclusive) are seconds since the epoch. `before` is the `next`
    of a page. `whole`: with the texts. `visible_to` is an agent: what it said or did, and what was said to it.
    `since_event`: only what later events tell; the history itself sees to it that agents are those of now."""

    query: str = ""
    agent_id: str | None = None
    context: str | None = None
    kinds: frozenset[HistoryKind] | None = None
    since: float | None = None
    until: float | None = None
    limit: int = 50
    before: int | None = None
    whole: bool = False
    visible_to: str | None = None
    since_event: int = 0


class History(Protocol):
    """Full text over messages, answers and tool calls; and what turns have used. Raises StoreError, InvalidRequest for
    a query of too many words, Busy where too many ask or an answer takes too long."""

    async def search(self, which: HistoryFilter) -> HistoryPage: ...

    async def stats(self, which: HistoryFilter) -> HistoryStats: ...

    async def usage(self, which: HistoryFilter, by: By) -> UsageReport:
        """Of `which`, the agent, the context, the times, `limit` and `visible_to` count."""
        ...

    async def knows(self, agent_id: str) -> bool:
        """Whether there is anything of the agent, which may be gone."""
        ...
