"""`/control/history` and `/control/usage`: search in messages, answers and tool calls, and the sum of usage.

A person may search everything; an agent its own texts and calls and messages to it, and its own usage.
"""

from dataclasses import replace
from typing import Annotated

from aiohttp import web
from pydantic import Field

from synapsed.api import CONTEXT, Flag, Query, Text, Time, between, flag, one_of, rights_of, some_of, text_like
from synapsed.api.operation import operation
from synapsed.errors import AmbiguousAddress, Busy, NotReady, UnknownAgent
from synapsed.parts.history.answers import KINDS, HistoryKind, HistoryPage, HistoryStats, UsageReport
from synapsed.parts.history.interface import By, History, HistoryFilter

QUERY_MAX = 1000
ID_MAX = 2**62
Words = Annotated[
    str | None, text_like(rf"^[^\u0000]{{0,{QUERY_MAX}}}$", f"at most {QUERY_MAX} characters, none of them NUL")
]
OfAgent = Annotated[
    Text, Field(description="only what was said to this agent, and what it said or did: any address, or an id")
]
OfContext = Annotated[
    Text, Field(description="only what belongs to this context, with what its agents asked others meanwhile")
]
Since = Annotated[Time, Field(description="from this time on (RFC 3339)")]
Until = Annotated[Time, Field(description="before this time (RFC 3339)")]
ERRORS = (UnknownAgent, AmbiguousAddress, Busy, NotReady)


class HistoryQuery(Query):
    q: Words = Field(
        None, description="words that all stand in it, in any case and also within others; a phrase in double quotes"
    )
    agent: OfAgent = None
    context: OfContext = None
    kind: Annotated[list[HistoryKind] | None, some_of(KINDS)] = Field(None, description="only these kinds")
    since: Since = None
    until: Until = None


class SearchQuery(HistoryQuery):
    limit: Annotated[int, between(1, 200)] = Field(50, description="how many at the most")
    before: Annotated[int | None, between(0, ID_MAX)] = Field(None, description="go on where a page ended: its `next`")
    text: Flag = flag("with the texts, as far as they are kept")


class UsageQuery(Query):
    by: Annotated[By, one_of(By)] = Field("agent", description="what the rows are")
    agent: OfAgent = None
    context: OfContext = None
    since: Since = None
    until: Until = None
    limit: Annotated[int, between(1, 10_000)] = Field(1000, description="rows at the most")


def _listed(request: web.Request) -> None:
    rights_of(request).require_list()


@operation(
    "Search messages, answers and tool calls, newest first",
    "a page; secrets in it are masked",
    allowed=_listed,
    errors=ERRORS,
)
async def search(request: web.Request, query: SearchQuery, history: History) -> HistoryPage:
    """Returns the texts and calls that `q` finds, or all of them without it. A page may be empty and have a `next`: for
    words of one or two characters it looks through the next 20,000 texts."""
    which = await _filter(request, history, query)
    return await history.search(replace(which, limit=query.limit, before=query.before, whole=query.text))


@operation("How much there is of messages, answers and tool calls", "counts", allowed=_listed, errors=ERRORS)
async def stats(request: web.Request, query: HistoryQuery, history: History) -> HistoryStats:
    return await history.stats(await _filter(request, history, query))


@operation(
    "Tokens and cost, where programs tell them",
    "by agent, day of the daemon's local zone, or task",
    allowed=_listed,
    errors=ERRORS,
)
async def usage(request: web.Request, query: UsageQuery, history: History) -> UsageReport:
    """Returns the usage of turns that the log still has."""
    which = await _filter(request, history, query)
    return await history.usage(replace(which, limit=query.limit), query.by)


async def _filter(request: web.Request, history: History, query: HistoryQuery | UsageQuery) -> HistoryFilter:
    kinds = query.kind if isinstance(query, HistoryQuery) else None
    return HistoryFilter(
        query=(query.q if isinstance(query, HistoryQuery) else None) or "",
        agent_id=await _agent(request, history, query.agent),
        context=query.context,
        kinds=None if kinds is None else frozenset(kinds),
        since=query.since,
        until=query.until,
        limit=0,
        visible_to=rights_of(request).scope,
    )


async def _agent(request: web.Request, history: History, address: str | None) -> str | None:
    """Returns the agent's id; for one that is gone, the id itself."""
    if not address:
        return None
    try:
        return request.app[CONTEXT].control.directory.resolve(address)
    except UnknownAgent:
        if await history.knows(address):
            return address
        raise
