"""The interface of the history for the API: the filter of a request, and the methods."""

from dataclasses import dataclass
from typing import Literal, Protocol

from synapsed.parts.history.answers import HistoryKind, HistoryPage, HistoryStats, UsageReport

type By = Literal["agent", "day", "task"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFilter:
    """Filter of a search; None means any. `query`: words that all stand in it, a phrase in double quotes. `context`: of
    the context, or of its thread. `since` and `until` (exclusive) are seconds since the epoch. `before` is the `next`
    of a page. `whole`: with the texts. `visible_to` is an agent: its own texts and calls, and messages to it.
    `since_event`: only data of later events; the history sets it, so that data of a former agent with the same id are
    left out."""

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
    """Full text over messages, answers and tool calls; and usage of turns. Raises StoreError, InvalidRequest for a
    query of too many words, Busy if there are too many requests or an answer takes too long."""

    async def search(self, which: HistoryFilter) -> HistoryPage: ...

    async def stats(self, which: HistoryFilter) -> HistoryStats: ...

    async def usage(self, which: HistoryFilter, by: By) -> UsageReport:
        """Returns the usage; the agent, the context, the times, `limit` and `visible_to` of `which` are used."""
        ...

    async def knows(self, agent_id: str) -> bool:
        """Returns True if there is anything of the agent, which may be gone."""
        ...
