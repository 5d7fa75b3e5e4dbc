"""`synapsectl external add|list|send|remove`: A2A agents elsewhere, under an alias."""

import argparse
import sys
from typing import Any
from urllib.parse import quote

from synapsectl.ages import age
from synapsectl.commands import send
from synapsectl.context import Context
from synapsectl.errors import DONE, UsageError
from synapsectl.parsing import SubVerb

__all__ = ["SUBVERBS", "TAKES_REST", "configure", "run"]

TAKES_REST = True
HEADINGS = ("ALIAS", "NAME", "A2A", "ENDPOINT", "LAST SEEN")
LOOK_TIMEOUT = 60.0
"""Seconds for the daemon to look at a card."""
SECRET_MAX = 8192


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["add", "list", "send", "remove"], help="what to do")
    send.configure(parser)
    parser.usage = (
        f"{parser.prog} add URL --as ALIAS [--token-stdin | --token-env NAME] [--header-env NAME=VARIABLE]… | "
        "list [--json] | send ALIAS [options of send] [--] MESSAGE | remove ALIAS"
    )
    _add_options(parser.add_argument_group("for add"))


def _add_options(adding: argparse._ActionsContainer) -> None:
    adding.add_argument("--as", dest="alias", metavar="ALIAS", help="its name here")
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


def _configure_add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", metavar="URL", help="its URL, or that of its card")
    _add_options(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON document of it")


def _configure_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print a JSON array of them")


def _configure_send(parser: argparse.ArgumentParser) -> None:
    send.configure(parser)
    parser.usage = f"{parser.prog} ALIAS[,ALIAS…] [options] [--] [MESSAGE | -]"


def _configure_remove(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", metavar="ALIAS", help="its name here")
    parser.add_argument("--json", action="store_true", help="print a JSON document of what it was")


SUBVERBS = {
    "add": SubVerb("remember an A2A agent elsewhere", _configure_add, takes_rest=True),
    "list": SubVerb("the agents elsewhere that are remembered", _configure_list),
    "send": SubVerb("send a message to agents elsewhere", _configure_send, takes_rest=True),
    "remove": SubVerb("forget an agent elsewhere", _configure_remove, takes_rest=True),
}


def run(args: argparse.Namespace, ctx: Context) -> int:
    if args.what == "send":
        if not args.words:
            raise UsageError("external send: name the agent and the message")
        args.words[0] = ",".join(f"external:{alias.removeprefix('@')}" for alias in args.words[0].split(","))
        return send.run(args, ctx)
    words = [*args.words, *(args.rest or [])]
    if args.what == "list":
        if words:
            raise UsageError("external list takes nothing more")
        return _list(args, ctx)
    if len(words) != 1:
        raise UsageError(f"external {args.what}: name one {'URL' if args.what == 'add' else 'alias'}")
    return _add(args, ctx, words[0]) if args.what == "add" else _remove(args, ctx, words[0])


def _add(args: argparse.Namespace, ctx: Context, url: str) -> int:
    if not args.alias:
        raise UsageError("external add: give it a name with --as ALIAS")
    body: dict[str, Any] = {"url": url, "alias": args.alias.removeprefix("@"), "other_host": args.other_host}
    body["in_the_clear"] = args.in_the_clear
    body |= _credentials(args, ctx)
    agent = ctx.client.post("/external/discover", body, timeout=LOOK_TIMEOUT)
    if args.json:
        ctx.out.document(agent)
    else:
        ctx.out.line(f"{agent['alias']} is {agent['name']} at {agent['endpoint']} (A2A {agent['protocol_version']})")
    return DONE


def _credentials(args: argparse.Namespace, ctx: Context) -> dict[str, Any]:
    """Never from the command line, which others can see."""
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


def _variable(ctx: Context, name: str) -> str:
    if not (value := ctx.environ.get(name, "").strip()):
        raise UsageError(f"the variable {name} is not set")
    return value


def _list(args: argparse.Namespace, ctx: Context) -> int:
    agents = ctx.client.get("/external/agents")
    if args.json:
        ctx.out.document(agents)
    elif not agents:
        ctx.out.note("there are none; 'synapsectl external add URL --as ALIAS' adds one")
    else:
        rows = [
            (one["alias"], one["name"], one["protocol_version"], one["endpoint"], age(one["last_seen"]))
            for one in agents
        ]
        ctx.out.table(HEADINGS, rows, grows="ENDPOINT")
    return DONE


def _remove(args: argparse.Namespace, ctx: Context, alias: str) -> int:
    removed = ctx.client.delete(f"/external/agents/{quote(alias.removeprefix('@'), safe='')}")
    if args.json:
        ctx.out.document(removed)
    else:
        ctx.out.line(f"{removed['alias']} is forgotten")
    return DONE
