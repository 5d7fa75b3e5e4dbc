"""`synapsectl host add|list|remove`: other hosts of the user's, reached by the user's ssh."""

import argparse
from functools import partial
from typing import Any

from synapsectl.ages import age
from synapsectl.client import host_path
from synapsectl.context import CommandContext
from synapsectl.daemon import ensure_daemon
from synapsectl.errors import DONE
from synapsectl.parsing import SubVerb, of_all, of_one

HEADINGS = ("HOST", "STATE", "FOR", "UNDER WAY", "TARGET", "ERROR")

EXAMPLES = (
    ("synapsectl host add box ssh://me@box.lan", "the agents of box are NAME@box from now on"),
    ("synapsectl host list", "which are reached, and why others are not"),
    ("synapsectl send claude@box 'run the tests' --wait", "a message to an agent of that host"),
)


def _configure_add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="its name here")
    parser.add_argument("target", metavar="ssh://[USER@]HOST[:PORT]", help="where ssh finds it")
    parser.add_argument("--socket", metavar="PATH", help="the path of the daemon's control socket on that host")
    parser.add_argument(
        "--synapsectl", metavar="PATH", help="the path of synapsectl on that host (default: looked up on its PATH)"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON document of it")


def _add(args: argparse.Namespace, ctx: CommandContext) -> int:
    ensure_daemon(ctx, spawn=True)
    body: dict[str, Any] = {"name": args.name, "target": args.target}
    body |= {key: getattr(args, key) for key in ("socket", "synapsectl") if getattr(args, key)}
    host = ctx.client.post("/hosts", body)
    words = f"{host['name']} is {host['target']}; 'synapsectl host list' shows whether it is reached"
    ctx.out.either(host, as_json=args.json, line=words)
    return DONE


def _list(args: argparse.Namespace, ctx: CommandContext) -> int:
    none = "nothing is remembered; 'synapsectl host add NAME ssh://USER@HOST' adds one"
    ctx.out.rows_of(ctx.client.get("/hosts"), HEADINGS, _row, as_json=args.json, none=none, grows="ERROR")
    return DONE


def _remove(args: argparse.Namespace, ctx: CommandContext) -> int:
    removed = ctx.client.delete(host_path(args.name))
    ctx.out.either(removed, as_json=args.json, line=f"{removed['name']} is forgotten")
    return DONE


def _row(host: Any) -> tuple[Any, ...]:
    return host["name"], host["state"], age(host["since"]), host["waiting"], host["target"], host["error"] or "-"


SUBVERBS = {
    "add": SubVerb(
        "remember another host of yours, and keep a connection to it",
        _configure_add,
        _add,
        (
            ("synapsectl host add box ssh://me@box.lan", "as ssh reaches it, with its configuration and keys"),
            ("synapsectl host add box ssh://box --synapsectl .local/bin/synapsectl", "where PATH does not have it"),
        ),
    ),
    "list": SubVerb(
        "list the hosts that are remembered, and whether they are reached",
        of_all,
        _list,
        (("synapsectl host list", "their state, and how many messages are under way"),),
    ),
    "remove": SubVerb(
        "forget a host, and cancel what was under way to it",
        partial(of_one, json="print a JSON document of what it was"),
        _remove,
        (("synapsectl host remove box", "its agents keep running on it"),),
    ),
}
