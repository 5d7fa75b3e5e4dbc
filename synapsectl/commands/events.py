"""`synapsectl events`: the log of events, one line each; with `-f`, as they happen."""

import argparse
import json
from collections.abc import Iterator
from typing import Any

from synapsectl.client import agent_path
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, NoDaemon, UsageError
from synapsectl.eventlines import Lines
from synapsectl.output import as_json

EXAMPLES = (
    ("synapsectl events -f", "everything, as it happens"),
    ("synapsectl events claude --types toolExecution --json", "one agent's tool calls, for a script"),
    ("synapsectl events --fleet -f", "what happens on all hosts of the fleet"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", nargs="?", help="only this agent's")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what happens, until interrupted")
    parser.add_argument(
        "--after", metavar="ID", help="begin after this event; otherwise, with -f, with the next that happens"
    )
    parser.add_argument("--types", metavar="T,U", help="only these types, such as toolExecution,attention")
    parser.add_argument("--agents", metavar="A,B", help="only these agents', by name or id")
    parser.add_argument("--tasks", metavar="T,U", help="only these tasks', by id or its first 8 characters")
    parser.add_argument(
        "--fleet", action="store_true", help="those of all hosts of the fleet; their ids are of the fleet"
    )
    parser.add_argument("--host", metavar="HOST", help="with --fleet: only that host's")
    parser.add_argument("--json", action="store_true", help="one JSON document a line")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    path = _path(args)
    asked = {"types": args.types, "agents": args.agents, "tasks": args.tasks, "host": args.host}
    query: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    if not args.follow:
        query["until"] = "newest"
    after = args.after if args.after is not None or args.follow else 0
    while after := _show(args, ctx, path, query if after is None else {"after": after, **query}):
        pass
    if not args.follow:
        return DONE
    raise NoDaemon("the daemon ended the stream")


def _path(args: argparse.Namespace) -> str:
    if args.host and not args.fleet:
        raise UsageError("--host needs --fleet")
    if args.fleet and (args.agent or args.agents or args.tasks):
        raise UsageError("--fleet goes only with --host and --types")
    if args.after is not None and not args.fleet and not _is_number(args.after):
        raise UsageError(f"--after: the id of an event is a number, not {args.after!r}")
    if args.fleet:
        return "/fleet/events"
    return agent_path(args.agent, "events") if args.agent else "/events"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _show(args: argparse.Namespace, ctx: CommandContext, path: str, query: dict[str, Any]) -> str:
    """Shows events until the stream ends; returns the id after which to go on if the daemon ended it because it was
    read too slowly."""
    lines = Lines(on_terminal=ctx.out.on_terminal, environ=ctx.environ)
    with ctx.client.stream(path, query) as stream:
        for message in stream.events():
            if message is None:
                continue
            if message.event == "truncated":
                return message.id
            for event in _single(json.loads(message.data)):
                ctx.out.control((as_json(event) if args.json else lines.of(event)) + "\n")
            ctx.out.stdout.flush()
    return ""


def _single(event: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the event, or the events of a batch."""
    if event["event"] == "batchEvents":
        yield from event["data"]
    else:
        yield event
