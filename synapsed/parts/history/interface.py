"""The interface of the history for the API: the filter of a request, and the methods."""

from dataclasses import dataclass
from typing import Literal, Protocol

from synapsed.parts.history.answers import HistoryKind, HistoryPage, HistoryStats, UsageReport

type By = Literal["agent", "day", "task"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFilter:
    """Filter of a search; None stands for any."""

    query: str = ""
    """All these words must occur; a phrase is in double quotes."""
    agent_id: str | None = None
    context: str | None = None
    """Id of a context: matches its texts, and texts of messages that were sent while their sender worked in it."""
    kinds: frozenset[HistoryKind] | None = None
    since: float | None = None
    """Seconds since the epoch, inclusive."""
    until: float | None = None
    """Seconds since the epoch, exclusive."""
    limit: int = 50
    before: int | None = None
    """`next` of the previous page."""
    whole: bool = False
    """True to return the texts, too, beside the snippets."""
    visible_to: str | None = None
    """An agent: only its own texts and calls, and messages to it."""
    since_event: int = 0
    """Data of earlier events are left out. The history sets it, because of data of a former agent with the same id."""


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
