"""`synapsectl usage`: adds up the usage of turns, as far as programs have reported it."""

import argparse
from typing import Any

from synapsectl.context import CommandContext
from synapsectl.errors import DONE
from synapsectl.output import short_id
from synapsectl.times import moment

EXAMPLES = (
    ("synapsectl usage", "tokens and cost, by agent"),
    ("synapsectl usage --by day --since 7d", "of this week, by day"),
)

FIGURES = ("TURNS", "INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE", "COST")
COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--by", choices=("agent", "day", "task"), default="agent", help="what the rows are")
    parser.add_argument("--agent", help="only this agent's")
    parser.add_argument("--context", metavar="ID", help="only of tasks of this context")
    parser.add_argument(
        "--since", type=moment, metavar="TIME", help="such as 2h, today, 2026-01-31 or '2026-01-31 14:00'"
    )
    parser.add_argument("--until", type=moment, metavar="TIME", help="before this time")
    parser.add_argument("--limit", type=int, default=1000, metavar="N", help="rows at the most (default 1000)")
    parser.add_argument("--json", action="store_true", help="print the daemon's answer as a JSON document")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    query = {"by": args.by, "limit": args.limit}
    given = {"agent": args.agent, "context": args.context, "since": args.since, "until": args.until}
    query |= {name: value for name, value in given.items() if value is not None}
    report = ctx.client.get("/control/usage", query)
    if not report["complete"]:
        ctx.out.note("the history is being brought up to date: the last turns are missing")
    if args.json:
        ctx.out.document(report)
        return DONE
    if not report["rows"]:
        ctx.out.note("no program has reported its usage")
        return DONE
    agents = {} if args.by == "day" else {agent["id"]: agent["name"] for agent in ctx.client.get("/agents")}
    headings = ("TASK", "AGENT") if args.by == "task" else (args.by.upper(),)
    rows = [(*_key(args.by, row, agents, short=ctx.out.on_terminal), *_figures(row)) for row in report["rows"]]
    rows.append((*("all" if n == 0 else "" for n in range(len(headings))), *_figures(report["total"])))
    ctx.out.table((*headings, *FIGURES), rows)
    if report["more"]:
        ctx.out.note(f"there are more than {args.limit} rows: see --limit")
    return DONE


def _key(by: str, row: dict[str, Any], agents: dict[str, str], *, short: bool) -> tuple[str, ...]:
    agent = agents.get(row["agent"], row["agent"])
    if by == "task":
        task = row["task"] or ""
        return ((short_id(task) if short else task) or "(no task)", agent)
    return (row["day"],) if by == "day" else (agent,)


def _figures(row: dict[str, Any]) -> tuple[str, ...]:
    counts = ["-" if row[name] is None else str(row[name]) for name in COUNTS]
    return (str(row["turns"]), *counts, _cost(row))


def _cost(row: dict[str, Any]) -> str:
    """Returns the cost, with the number of its turns if not all of them reported theirs."""
    if row["cost_usd"] is None:
        return "-"
    return f"${row['cost_usd']:.4f}" + (f" (of {row['priced']} turns)" if row["priced"] < row["turns"] else "")
