"""`synapsectl send AGENT[,AGENT…] MESSAGE`: sends a message to agents, and waits for the answers."""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from synapsectl.context import CommandContext
from synapsectl.daemon import ensure_daemon
from synapsectl.errors import NOT_FOUND, ApiError, CtlError, UsageError
from synapsectl.given_paths import from_home
from synapsectl.handed_over import prepare
from synapsectl.interrupts import interrupt_all
from synapsectl.messages import build_parts, divided, give, read_text
from synapsectl.parsing import seconds
from synapsectl.sending import Sending, Wanted, check
from synapsectl.teams import ANYWHERE, with_members

EXAMPLES = (
    ("synapsectl send claude 'explain this repository' --wait", "wait for the answer, and print it"),
    ("git diff | synapsectl send claude --wait -", "the message from stdin"),
    ("synapsectl send claude,codex 'review the last commit' --wait", "a table of both answers"),
    ("synapsectl send team:review 'is it right?' --any", "the first answer of a team, from any host of the fleet"),
    ("synapsectl send claude --priority 5", "interrupt what it does"),
    ("synapsectl send claude --file shot.png 'what is wrong here?'", "a file goes with it"),
)

TAKES_REST = True
KEY_MAX = 128
MANY = 50
"""Number of agents above which a message is sent only after a person agrees."""
AGENTS_MAX = 1000
INTERRUPT_PRIORITY = 5
_LIKE_A_COMMAND = re.compile(r"\s*(/[a-z][\w:-]*|![\w./-]+)(?:\s|\Z)", re.IGNORECASE)
"""Beginning of a message that many programs would take for a command of theirs: `/clear`, `!ls`."""
NEVER_SENT_TO = frozenset({"stopped", "stopping", "exited", "failed"})
"""States of agents that `--all` and `--type` leave out."""


class NoAgents(CtlError):
    exit_code = NOT_FOUND
    code = "UNKNOWN_AGENT"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} (AGENT[,AGENT…] | --all | --type TYPE) [options] [--] [MESSAGE | -]"
    parser.add_argument(
        "words", nargs="*", metavar="AGENT MESSAGE", help="agents or teams, and what; - reads it from stdin"
    )
    parser.add_argument("--all", action="store_true", help="to every agent that runs")
    parser.add_argument("--fleet", action="store_true", help="with --all or --type: on all hosts of the fleet")
    parser.add_argument("--type", metavar="TYPE", help="to every agent of this profile that runs")
    parser.add_argument(
        "--priority",
        type=int,
        choices=range(1, 6),
        default=1,
        help="4 is delivered before 1; 5 interrupts what runs first, and without a message does only that",
    )
    parser.add_argument("--wait", action="store_true", help="wait for the end, and print the answer's text only")
    parser.add_argument(
        "--any", action="store_true", help="of several: wait for the first answer, and print that alone"
    )
    parser.add_argument("--yes", action="store_true", help=f"send to more than {MANY} agents without being asked")
    parser.add_argument("--follow", action="store_true", help="wait, and print what the agent says as it says it")
    parser.add_argument(
        "--timeout",
        type=seconds,
        metavar="S",
        help="seconds after which the waiting ends (exit code 5), not the task; else the time for the reply",
    )
    parser.add_argument(
        "--response",
        action="store_true",
        help="a reply is wanted: it comes to this agent as a message; with --wait, and for a person, as output",
    )
    parser.add_argument("--reply-to", metavar="TASK", help="this is the reply to that task; nothing is typed")
    parser.add_argument("--from", dest="sender", metavar="AGENT", help="say that this agent is the sender")
    parser.add_argument("--context", metavar="ID", help="a label that the messages of one conversation share")
    parser.add_argument(
        "--new-conversation",
        action="store_true",
        help="start the agent again first, in a new conversation",
    )
    parser.add_argument(
        "--file", action="append", type=from_home, default=[], metavar="FILE", help="a file to go with it; repeatable"
    )
    parser.add_argument("--command", action="store_true", help="let a leading / or ! be a command of the program")
    parser.add_argument(
        "--idempotency-key",
        metavar="KEY",
        help="a key of your choice: a message that is sent again with it makes no second task (after exit code 8)",
    )
    parser.add_argument(
        "--save",
        type=from_home,
        metavar="DIR",
        help="with --wait: save the files and data that come with the answer in this folder",
    )
    parser.add_argument("--json", action="store_true", help="print the task as a JSON document")
    parser.add_argument("--no-spawn-daemon", action="store_true", help="fail where no daemon runs")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    words = [*args.words, *(args.rest or [])]
    addresses = _addresses(args, words)
    if not words and not args.file:
        if args.priority != INTERRUPT_PRIORITY:
            raise UsageError(
                "there is no message: write it after the agent, or - to read it from stdin"
                " (--priority 5 interrupts without one)"
            )
        body = None
    else:
        body = _body(args, ctx, " ".join(words))
    _check_options(args, addresses)
    wanted = _wanted(args, ctx)
    ensure_daemon(ctx, spawn=not args.no_spawn_daemon)
    if body is not None:
        body["message"]["parts"] += [give(ctx.client, path) for path in divided(args.file)[1]]
    agents = addresses if addresses is not None else _running(args, ctx)
    if body is None:
        return _interrupt(args, ctx, agents, named=addresses is not None)
    sending = Sending(wanted, ctx)
    _check_count(args, ctx, agents)
    _check_background(args, ctx, agents)
    if args.fleet:
        _together(body, agents)
    _note_command(args, ctx, " ".join(words))
    try:
        return sending.run(agents, body, named=addresses is not None)
    except ApiError as error:
        # Nothing was sent yet: a single address was refused, and several are checked before anything is sent.
        if addresses is None or (members := _members(ctx, agents, error)) is None:
            raise
    _check_count(args, ctx, members)
    _check_background(args, ctx, members)
    if any(name.startswith(ANYWHERE) for name in agents):
        _together(body, members)
    return sending.run(members, body, named=True)


def _members(ctx: CommandContext, agents: list[str], error: ApiError) -> list[str] | None:
    """Returns the addresses with the members of their teams; None if `error` has another reason than a team's name."""
    members = with_members(ctx, agents) if error.code == NoAgents.code else agents
    if not members:
        raise NoAgents("no other agent is in it: see 'synapsectl list'")
    return members if members != agents else None


def _interrupt(args: argparse.Namespace, ctx: CommandContext, agents: list[str], *, named: bool) -> int:
    """Interrupts the agents, and the members of teams; a wrong address stops all before any is interrupted."""
    try:
        for agent in agents if named and len(agents) > 1 else ():
            check(ctx.client, agent)
        return interrupt_all(ctx, agents, as_json=args.json)
    except ApiError as error:
        # Nothing was interrupted yet, as in `run`.
        if not named or (members := _members(ctx, agents, error)) is None:
            raise
    return interrupt_all(ctx, members, as_json=args.json)


def _note_command(args: argparse.Namespace, ctx: CommandContext, text: str) -> None:
    """Says how a message would be a command of the program, if it looks like one."""
    found = _LIKE_A_COMMAND.match(text)
    if found is not None and not args.command and not args.reply_to and not ctx.inside_agent:
        ctx.out.note(f"{found[1]} goes as a part of the message; for a command of the program, send it with --command")


def _check_count(args: argparse.Namespace, ctx: CommandContext, agents: Sequence[str]) -> None:
    """Raises UsageError for more agents than one message goes to, and if a person refuses."""
    if len(agents) > AGENTS_MAX:
        raise UsageError(f"it would go to {len(agents)} agents, and one send goes to at most {AGENTS_MAX}: name fewer")
    if len(agents) <= MANY or args.yes:
        return
    if not ctx.may_ask:
        raise UsageError(f"it would go to {len(agents)} agents: say --yes, if that is meant")
    if not ctx.asks(f"it goes to {len(agents)} agents, a task for each: send it?"):
        raise UsageError("nothing was sent")


def _check_background(args: argparse.Namespace, ctx: CommandContext, agents: Sequence[str]) -> None:
    """Tells which background tasks a new conversation ends. Raises UsageError if a person refuses that."""
    if not args.new_conversation:
        return
    from synapsectl.background import may_end, with_background

    for agent in with_background(ctx, agents):
        if not may_end(ctx, agent, "begin another conversation?"):
            raise UsageError("nothing was sent")


def _together(body: dict[str, Any], agents: Sequence[str]) -> None:
    """Gives a message for several agents of a fleet one context."""
    if len(agents) > 1:
        body.setdefault("context_id", os.urandom(16).hex())


def _check_options(args: argparse.Namespace, addresses: list[str] | None) -> None:
    """Raises UsageError for options that do not go together."""
    if args.follow and args.json:
        raise UsageError("--follow prints text as it comes, --json one document at the end: choose one")
    if args.idempotency_key is not None and not _is_key(args.idempotency_key):
        raise UsageError(f"--idempotency-key must be 1 to {KEY_MAX} printable ASCII characters")
    if args.reply_to and (args.response or addresses is None or len(addresses) != 1):
        raise UsageError("--reply-to goes to the one agent that asked, and wants no response itself")
    if args.save is not None:
        if not (args.wait or args.any or args.follow):
            raise UsageError("--save waits for what comes with the answer: with --wait, --any or --follow")
        prepare(args.save)
    if args.any and (args.follow or args.response):
        raise UsageError("--any waits for the first answer: without --follow and --response")


def _is_key(text: str) -> bool:
    return 0 < len(text) <= KEY_MAX and text.isascii() and text.isprintable()


def _wanted(args: argparse.Namespace, ctx: CommandContext) -> Wanted:
    sender = args.sender or ctx.own_agent
    own = ctx.own_agent is not None
    return Wanted(
        wait=args.wait or args.any or args.follow or (args.response and not own),
        follow=args.follow,
        response=args.response,
        sender=sender,
        timeout=args.timeout,
        deadline=ctx.client.limit(args.timeout),
        json=args.json,
        key=args.idempotency_key,
        first=args.any,
        save=args.save,
    )


def _addresses(args: argparse.Namespace, words: list[str]) -> list[str] | None:
    """Returns the addresses, taken from `words`; None with `--all` or `--type`."""
    if args.fleet and not (args.all or args.type):
        raise UsageError(
            "--fleet goes with --all or --type; a team on all hosts is team:NAME, any of a class any:CLASS"
        )
    if args.all and args.type:
        raise UsageError("--all and --type: choose one")
    if args.all or args.type:
        return None
    addresses = [address for address in words.pop(0).split(",") if address] if words else []
    if not addresses:
        raise UsageError("name the agent to send to, or use --all or --type")
    return list(dict.fromkeys(addresses))


def _running(args: argparse.Namespace, ctx: CommandContext) -> list[str]:
    own = ctx.own_agent
    if args.fleet:
        ctx.client.get("/fleet/hosts")  # raises ApiError if this host is in no fleet
    names = [
        agent["name"]
        for agent in ctx.client.get("/agents", {"hosts": 1} if args.fleet else None)
        if agent["state"] not in NEVER_SENT_TO and agent["id"] != own and args.type in (None, agent["type"])
    ]
    if not names:
        raise NoAgents(
            f"no agent of type {args.type!r} runs: see 'synapsectl list'"
            if args.type
            else "no other agent runs: see 'synapsectl list'"
        )
    return names


def _body(args: argparse.Namespace, ctx: CommandContext, given: str) -> dict[str, Any]:
    text = read_text(given, sys.stdin.buffer) if given else ""
    body: dict[str, Any] = {
        "message": {"role": "user", "parts": build_parts(text, *divided(args.file))},
        "metadata": {},
        "priority": args.priority,
    }
    if args.sender:
        body["metadata"]["sender"] = {"sender_id": args.sender}
    elif (own := ctx.own_agent) is not None:
        body["metadata"]["sender"] = {
            "sender_id": own,
            "sender_type": ctx.environ.get("SYNAPSE_AGENT_TYPE", ""),
            "sender_endpoint": ctx.environ.get("SYNAPSE_ENDPOINT", ""),
        }
    if args.reply_to:
        body["message"]["role"] = "agent"
        body["metadata"]["in_reply_to"] = args.reply_to
    if args.context:
        body["context_id"] = args.context
    if args.new_conversation:
        body["metadata"]["new_conversation"] = True
    if args.command:
        body["command"] = True
    return body
