"""`synapsectl external add|list|send|remove`: A2A agents elsewhere, under an alias."""

import argparse
import sys
from functools import partial
from typing import Any
from urllib.parse import quote

from synapsectl.ages import age
from synapsectl.commands import send
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, UsageError
from synapsectl.parsing import SubVerb, of_all, of_one

PATH = "/external/agents"
HEADINGS = ("ALIAS", "NAME", "A2A", "ENDPOINT", "LAST SEEN")
LOOK_TIMEOUT = 60.0
"""Seconds for the daemon to look at a card."""
SECRET_MAX = 8192
FIRST = "0.1"
"""`protocol_version` of agents that speak A2A as it was before it had versions."""

EXAMPLES = (
    ("synapsectl external add https://agents.example/a2a --as far", "its card is read, and it is far from here on"),
    ("synapsectl external send far 'what can you do?' --wait", "a message, and its answer"),
    ("synapsectl external list", "whom there is, and when they were seen"),
)


def _configure_add(adding: argparse.ArgumentParser) -> None:
    adding.add_argument("url", metavar="URL", help="its URL, or that of its card")
    adding.add_argument("--as", "--alias", dest="alias", metavar="ALIAS", help="its name here; else that of its card")
    adding.add_argument("--token-stdin", action="store_true", help="read a bearer token from stdin")
    adding.add_argument("--token-env", metavar="NAME", help="take a bearer token from this variable")
    adding.add_argument(
        "--header-env",
        action="append",
        default=[],
        metavar="NAME=VARIABLE",
        help="send this header with the variable's value, such as X-API-Key=MY_KEY; repeatable",
    )
    adding.add_argument("--no-credentials", action="store_true", help="forget those that were given before")
    adding.add_argument("--in-the-clear", action="store_true", help="its credentials may go there by http")
    adding.add_argument("--other-host", action="store_true", help="its card may name another host than its own")
    adding.add_argument("--json", action="store_true", help="print a JSON document of it")


def _configure_send(parser: argparse.ArgumentParser) -> None:
    send.configure(parser)
    parser.usage = f"{parser.prog} ALIAS[,ALIAS…] [options] [--] [MESSAGE | -]"


def _list(args: argparse.Namespace, ctx: CommandContext) -> int:
    none = "nothing is remembered; 'synapsectl external add URL --as ALIAS' adds one"
    ctx.out.rows_of(ctx.client.get(PATH), HEADINGS, _row, as_json=args.json, none=none, grows="ENDPOINT")
    return DONE


def _send(args: argparse.Namespace, ctx: CommandContext) -> int:
    if not args.words:
        raise UsageError("external send: name the agent and the message")
    args.words[0] = ",".join(f"external:{alias.removeprefix('@')}" for alias in args.words[0].split(","))
    return send.run(args, ctx)


def _remove(args: argparse.Namespace, ctx: CommandContext) -> int:
    removed = ctx.client.delete(f"{PATH}/{quote(args.name.removeprefix('@'), safe='')}")
    ctx.out.either(removed, as_json=args.json, line=f"{removed['alias']} is forgotten")
    return DONE


def _add(args: argparse.Namespace, ctx: CommandContext) -> int:
    body: dict[str, Any] = {"url": args.url, "other_host": args.other_host, "in_the_clear": args.in_the_clear}
    if args.alias is not None:
        body["alias"] = args.alias.removeprefix("@")
    body |= _credentials(args, ctx)
    with ctx.busy("reading its card"):
        agent = ctx.client.post("/external/discover", body, timeout=LOOK_TIMEOUT)
    words = f"{agent['alias']} is {agent['name']} at {agent['endpoint']} ({_spoken(agent)})"
    ctx.out.either(agent, as_json=args.json, line=words)
    for need in agent["needs"]:
        ctx.out.note(f"{agent['alias']} needs {need}")
    return DONE


def _credentials(args: argparse.Namespace, ctx: CommandContext) -> dict[str, Any]:
    """Returns the credentials from a file or the terminal, never from the command line, which others can see."""
    told: dict[str, Any] = {"headers": {}} if args.no_credentials or args.header_env else {}
    for given in args.header_env:
        name, given_one, variable = given.partition("=")
        if not (name and given_one and variable):
            raise UsageError(f"--header-env: {given!r} is not of the form NAME=VARIABLE, such as X-API-Key=MY_KEY")
        told["headers"][name] = _variable(ctx, variable)
    if args.token_stdin and args.token_env:
        raise UsageError("--token-stdin and --token-env: choose one")
    if args.token_stdin:
        told["token"] = sys.stdin.read(SECRET_MAX).strip()
    elif args.token_env:
        told["token"] = _variable(ctx, args.token_env)
    return told


def _variable(ctx: CommandContext, name: str) -> str:
    if not (value := ctx.environ.get(name, "").strip()):
        raise UsageError(f"the variable {name} is not set")
    return value


def _row(agent: Any) -> tuple[Any, ...]:
    version = agent["protocol_version"]
    return agent["alias"], agent["name"], version or "-", agent["endpoint"], age(agent["last_seen"])


def _spoken(agent: Any) -> str:
    version = agent["protocol_version"]
    if version == FIRST:
        return "A2A as it was first: tasks/send"
    return f"A2A {version}" if version else "no A2A: as synapse-a2a speaks"


SUBVERBS = {
    "add": SubVerb(
        "remember an A2A agent elsewhere",
        _configure_add,
        _add,
        (
            ("synapsectl external add https://agents.example/a2a --as far", "its card is looked for at that address"),
            (
                "synapsectl external add https://agents.example/a2a --as far --token-env FAR_TOKEN",
                "with a bearer token, which is never on the command line",
            ),
        ),
    ),
    "list": SubVerb(
        "list the agents elsewhere that are remembered",
        of_all,
        _list,
        (("synapsectl external list --json", "with all that their cards said"),),
    ),
    "send": SubVerb(
        "send a message to agents elsewhere",
        _configure_send,
        _send,
        (("synapsectl external send far 'what can you do?' --wait", "wait for the answer, and print it"),),
        takes_rest=True,
    ),
    "remove": SubVerb(
        "forget an agent elsewhere",
        partial(of_one, metavar="ALIAS", json="print a JSON document of what it was"),
        _remove,
        (("synapsectl external remove far", "its credentials are forgotten with it"),),
    ),
}
