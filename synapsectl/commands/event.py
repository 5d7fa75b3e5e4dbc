"""`synapsectl event`: an agent reports about itself, or a person about an agent, and the report becomes an event."""

import argparse
import sys
from typing import Any

from synapsectl.client import agent_path
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, UsageError
from synapsectl.messages import read_text
from synapsed.shared.outside_json import NotJson, read_json

EXAMPLES = (
    ("synapsectl event deployed 'version 3 is out'", "in an agent's shell: what it did"),
    ("synapsectl event deployed 'version 3 is out' --agent claude", "the same about an agent, from another shell"),
)

KINDS = ("toolExecution", "agentTransition", "emotionUpdate", "agentReported")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="TYPE|KIND", help=f"one of {', '.join(KINDS)}; or a word, with a message")
    parser.add_argument("data", metavar="JSON|MESSAGE", help="the event's data; or the message; - reads stdin")
    parser.add_argument("--agent", help="the agent that it is about (default: the agent of this shell)")
    parser.add_argument("--task", metavar="ID", help="the task that it belongs to")
    parser.add_argument("--json", action="store_true", help="print the daemon's answer as a JSON document")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    agent = args.agent or ctx.client.get("/whoami")["agent"]
    if agent is None:
        raise UsageError("name the agent that it is about: --agent NAME")
    text = read_text(args.data, sys.stdin.buffer, "the event")
    body: dict[str, Any] = {"event": args.what, "data": _data(text)} if args.what in KINDS else {}
    body = body or {"kind": args.what, "message": text}
    if args.task is not None:
        body["task"] = args.task
    done = ctx.client.post(agent_path(agent, "events"), body)
    ctx.out.either(done, as_json=args.json, note=f"reported of {agent}")
    return DONE


def _data(text: str) -> Any:
    try:
        return read_json(text)
    except NotJson as error:
        raise UsageError(f"the data is no JSON ({error})") from error
