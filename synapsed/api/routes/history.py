"""`/control/history` and `/control/usage`: what was said and done, searched, and what it has used, added up.

A person asks of everything; an agent of what it said or did itself and what was said to it, and of its own usage.
"""

from typing import cast

from aiohttp import web

from synapsed.api.body import json_response
from synapsed.api.context import CONTEXT, rights_of
from synapsed.api.describe import Response, describe
from synapsed.api.query import Choice, Flag, Integer, Text, Time, Words
from synapsed.errors import AmbiguousAddress, Busy, NotReady, UnknownAgent
from synapsed.interfaces.history import By, History, HistoryFilter
from synapsed.model.history import KINDS, HistoryPage, HistoryStats, UsageReport

QUERY_MAX = 1000
ID_MAX = 2**62
QUERY = Text(
    "q",
    "words that all stand in it, in any case and also within others; a phrase in double quotes",
    pattern=rf"^[^\u0000]{{0,{QUERY_MAX}}}$",
    expected=f"at most {QUERY_MAX} characters, none of them NUL",
)
OF_AGENT = Text("agent", "only what was said to this agent, and what it said or did: any address, or an id")
CONTEXT_ID = Text("context", "only what belongs to this context, with what its agents asked others meanwhile")
KIND = Words("kind", "only these kinds", KINDS)
SINCE = Time("since", "from this time on (RFC 3339)")
UNTIL = Time("until", "before this time (RFC 3339)")
LIMIT = Integer("limit", "how many at the most", 50, 1, 200)
ROWS = Integer("limit", "rows at the most", 1000, 1, 10_000)
BEFORE = Integer("before", "go on where a page ended: its `next`", None, 0, ID_MAX)
WHOLE = Flag("text", "with the texts, as far as they are kept")
BY = Choice("by", "what the rows are", ("agent", "day", "task"))
FILTERS = (QUERY, OF_AGENT, CONTEXT_ID, KIND, SINCE, UNTIL)
ERRORS = (UnknownAgent, AmbiguousAddress, Busy, NotReady)


def routes() -> list[web.RouteDef]:
    return [
        web.get("/control/history", search),
        web.get("/control/history/stats", stats),
        web.get("/control/usage", usage),
    ]


@describe(
    "Search messages, answers and tool calls, newest first",
    Response("a page; secrets in it are masked", HistoryPage),
    query=(*FILTERS, LIMIT, BEFORE, WHOLE),
    errors=ERRORS,
)
async def search(request: web.Request) -> web.Response:
    """Without `q` all of them. A page may be empty and have a `next`: of words of one or two characters it looks
    through the next 20,000 texts."""
    history = _history(request)
    which = await _filter(request, history, limit=LIMIT.of(request), before=BEFORE.of(request), whole=WHOLE.of(request))
    return json_response((await history.search(which)).model_dump(mode="json"))


@describe(
    "How much there is of messages, answers and tool calls",
    Response("counts", HistoryStats),
    query=FILTERS,
    errors=ERRORS,
)
async def stats(request: web.Request) -> web.Response:
    history = _history(request)
    return json_response((await history.stats(await _filter(request, history))).model_dump(mode="json"))


@describe(
    "Tokens and cost, where programs tell them",
    Response("by agent, day of the daemon's local zone, or task", UsageReport),
    query=(BY, OF_AGENT, CONTEXT_ID, SINCE, UNTIL, ROWS),
    errors=ERRORS,
)
async def usage(request: web.Request) -> web.Response:
    """Of the turns that the log still has."""
    history = _history(request)
    which = await _filter(request, history, limit=ROWS.of(request))
    report = await history.usage(which, cast("By", BY.of(request)))
    return json_response(report.model_dump(mode="json"))


def _history(request: web.Request) -> History:
    rights_of(request).require_list()
    history = request.app[CONTEXT].history
    if history is None:
        raise NotReady(
            "there is no history: it is switched off ('enabled' under [history] of config.toml), or this SQLite has no "
            "full text by trigrams"
        )
    return history


async def _filter(
    request: web.Request, history: History, *, limit: int = 0, before: int | None = None, whole: bool = False
) -> HistoryFilter:
    rights = rights_of(request)
    kinds = KIND.of(request)
    return HistoryFilter(
        query=QUERY.of(request) or "",
        agent_id=await _agent(request, history),
        context=CONTEXT_ID.of(request),
        kinds=None if kinds is None else frozenset(kind for kind in KINDS if kind in kinds),
        since=SINCE.of(request),
        until=UNTIL.of(request),
        limit=limit,
        before=before,
        whole=whole,
        visible_to=rights.scope,
    )


async def _agent(request: web.Request, history: History) -> str | None:
    """The agent's id; of one that is gone, the id itself."""
    address = OF_AGENT.of(request)
    if not address:
        return None
    try:
        return request.app[CONTEXT].control.directory.resolve(address)
    except UnknownAgent:
        if await history.knows(address):
            return address
        raise
