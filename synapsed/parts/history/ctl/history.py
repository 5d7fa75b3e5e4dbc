"""`synapsectl history [QUERY]`: searches, counts and exports messages, answers and tool calls."""

import argparse
from typing import Any

from synapsectl.colours import DIM
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, UsageError
from synapsectl.messages import INSTRUCTIONS, SYSTEM
from synapsectl.output import TableCell, one_line, short_id
from synapsectl.times import moment, shown
from synapsed.parts.history.ctl.exports import as_csv, as_markdown, as_transcript

EXAMPLES = (
    ("synapsectl history 'race condition' --since 7d", "who said something about it"),
    ("synapsectl history --context 5b1e --format markdown", "a whole conversation"),
    ("synapsectl history --stats", "how much there is"),
)

HEADINGS = ("TIME", "BY", "TO", "KIND", "TASK", "TEXT")
LIMIT = 50
THREAD_LIMIT = 10_000
PAGE = 200
KINDS = ("message", "answer", "tool")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="*", help='words that must all occur; a "phrase" in double quotes')
    parser.add_argument("--agent", help="only what was said to this agent, and what it said or did")
    parser.add_argument("--context", metavar="ID", help="only this conversation, over all agents, in the order of time")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only these; may be given again")
    parser.add_argument(
        "--since", type=moment, metavar="TIME", help="such as 2h, today, 2026-01-31 or '2026-01-31 14:00'"
    )
    parser.add_argument("--until", type=moment, metavar="TIME", help="before this time")
    parser.add_argument(
        "--limit", type=int, metavar="N", help=f"how many (default {LIMIT}; {THREAD_LIMIT} with --context)"
    )
    parser.add_argument("--stats", action="store_true", help="how much there is, by kind, agent and day")
    parser.add_argument(
        "--format", choices=("text", "json", "csv", "markdown"), default="text", help="all but text have whole texts"
    )
    parser.add_argument("--json", action="store_true", help="the same as --format json")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    form = "json" if args.json else args.format
    if args.limit is not None and args.limit < 1:
        raise UsageError("--limit: must be at least 1")
    if args.stats and form not in ("text", "json"):
        raise UsageError("--stats has the formats text and json")
    query = {
        "q": " ".join(args.query) or None,
        "agent": args.agent,
        "context": args.context,
        "kind": ",".join(args.kind) if args.kind else None,
        "since": args.since,
        "until": args.until,
    }
    asked: dict[str, Any] = {name: value for name, value in query.items() if value is not None}
    if args.stats:
        _stats(ctx, ctx.client.get("/control/history/stats", asked), as_json=form == "json")
        return DONE
    limit = args.limit or (THREAD_LIMIT if args.context else LIMIT)
    items = _items(ctx, asked, limit, whole=form != "text" or args.context is not None)
    if args.context is not None or form == "markdown":
        items.reverse()
    _show(args, ctx, form, items)
    return DONE


def _items(ctx: CommandContext, asked: dict[str, Any], limit: int, *, whole: bool) -> list[dict[str, Any]]:
    """Returns the items, newest first."""
    items: list[dict[str, Any]] = []
    query = {**asked, **({"text": 1} if whole else {})}
    complete = True
    while len(items) < limit:
        page = ctx.client.get("/control/history", {**query, "limit": min(PAGE, limit - len(items))})
        complete = complete and page["complete"]
        items += page["items"]
        if page["next"] is None:
            break
        query["before"] = page["next"]
    _remark(ctx, complete=complete)
    if page["next"] is not None:
        ctx.out.note(f"these are the newest {len(items)}, and there may be more: see --limit")
    return items


def _show(args: argparse.Namespace, ctx: CommandContext, form: str, items: list[dict[str, Any]]) -> None:
    if form == "json":
        ctx.out.document(items)
        return
    if form == "csv":
        ctx.out.text(as_csv(items))
        return
    if not items:
        ctx.out.note("nothing of this kind was said or done")
    names = {agent["id"]: agent["name"] for agent in ctx.client.get("/agents")} if items else {}
    if form == "markdown":
        title = f"Thread {args.context}" if args.context is not None else " ".join(args.query) or "History"
        ctx.out.text(as_markdown(items, names, title=title))
    elif args.context is not None:
        if items:
            ctx.out.text(as_transcript(items, names))
    else:
        folds = ctx.out.on_terminal and not args.query
        rows = [_row(item, names, short=ctx.out.on_terminal, folds=folds) for item in items]
        if rows:
            ctx.out.table(HEADINGS, rows, grows="TEXT")


def _row(item: dict[str, Any], names: dict[str, str], *, short: bool, folds: bool) -> tuple[object, ...]:
    """Returns the row under HEADINGS. `folds`: instructions from synapsed are these words, not their text."""
    by, to = (names.get(item[end], item[end]) if item[end] is not None else "" for end in ("by", "to"))
    task = item["task"] or ""
    kind = item["kind"] if item["state"] in (None, "completed") else f"{item['kind']} {item['state']}"
    text = TableCell(INSTRUCTIONS, DIM) if folds and item["by"] == SYSTEM else one_line(item["snippet"])
    return (shown(item["time"]), by, to, kind, short_id(task) if short else task, text)


def _stats(ctx: CommandContext, stats: dict[str, Any], *, as_json: bool) -> None:
    _remark(ctx, complete=stats["complete"])
    if as_json:
        ctx.out.document(stats)
        return
    first, last = (shown(stats[end]) if stats[end] is not None else "-" for end in ("first", "last"))
    rows = [("all", "", stats["items"]), ("tasks", "", stats["tasks"]), ("contexts", "", stats["contexts"])]
    rows += [("first", first, ""), ("last", last, "")]
    rows += [(what, name, count) for what in ("kind", "agent", "day") for name, count in stats[f"by_{what}"].items()]
    ctx.out.table(("WHAT", "NAME", "COUNT"), rows)


def _remark(ctx: CommandContext, *, complete: bool) -> None:
    if not complete:
        ctx.out.note("the history is being brought up to date: what happened last is missing")
