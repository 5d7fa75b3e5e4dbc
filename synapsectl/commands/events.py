"""`synapsectl events`: one line an event; with `-f`, as it happens."""

import argparse
import json
from datetime import datetime
from typing import Any

from synapsectl.client import agent_path
from synapsectl.context import Context
from synapsectl.errors import DONE, NoDaemon

__all__ = ["configure", "run"]

VALUE_SHOWN = 100
"""Characters of one fact; `--json` has all of them."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", nargs="?", help="only this agent's")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what happens, until interrupted")
    parser.add_argument(
        "--after", type=int, metavar="ID", help="begin after this event; otherwise, with -f, with the next that happens"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document a line")


def run(args: argparse.Namespace, ctx: Context) -> int:
    path = agent_path(args.agent, "events") if args.agent else "/events"
    after = args.after if args.after is not None or args.follow else 0
    ends = {} if args.follow else {"until": "newest"}
    while after := _show(args, ctx, path, ends if after is None else {"after": after, **ends}):
        pass
    if not args.follow:
        return DONE
    raise NoDaemon("the daemon ended the stream")


def _show(args: argparse.Namespace, ctx: Context, path: str, query: dict[str, Any]) -> str:
    """Show events until the stream ends; the id after which to go on where that was because it was read too slowly."""
    with ctx.client.stream(path, query) as stream:
        for event in stream.events():
            if event is None:
                continue
            if event.event == "truncated":
                return event.id
            if args.json:
                ctx.out.piece(event.data + "\n")
            else:
                ctx.out.line(_line(json.loads(event.data)))
                ctx.out.stdout.flush()
    return ""


def _line(event: dict[str, Any]) -> str:
    data = event["data"]
    when = datetime.fromisoformat(event["time"]).astimezone().strftime("%H:%M:%S")
    facts = " ".join(f"{key}={_short(value)}" for key, value in data.items() if value not in (None, ""))
    about = [event["agent"], (event.get("task") or "")[:8], event["event"]]
    return " ".join(word for word in (str(event["id"] or "-"), when, *about, facts) if word)


def _short(value: Any) -> str:
    if isinstance(value, dict) and "parts" in value:
        value = "".join(part.get("text", "") for part in value["parts"])
    text = value if isinstance(value, str) and value.isprintable() else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= VALUE_SHOWN else text[: VALUE_SHOWN - 1] + "…"
