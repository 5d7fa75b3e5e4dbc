"""`synapsectl host add|list|remove`: other hosts of one's own, reached by one's own ssh."""

import argparse
from functools import partial
from typing import Any

from synapsectl import remembered
from synapsectl.ages import age
from synapsectl.client import host_path
from synapsectl.context import CommandContext
from synapsectl.daemon import ensure_daemon
from synapsectl.errors import UsageError
from synapsectl.parsing import SubVerb

HEADINGS = ("HOST", "STATE", "FOR", "UNDER WAY", "TARGET", "ERROR")
WORDS = {"add": 2, "list": 0, "remove": 1}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        f"{parser.prog} add NAME ssh://[USER@]HOST[:PORT] [--socket PATH | --synapsectl PATH] | list | remove NAME "
        "[--json]"
    )
    parser.add_argument("what", choices=list(WORDS), help="what to do")
    parser.add_argument("words", nargs="*", metavar="NAME TARGET", help="its name here, and where ssh finds it")
    _add_options(parser.add_argument_group("for add"))
    parser.add_argument("--json", action="store_true", help="print a JSON document")


def _add_options(adding: argparse._ActionsContainer) -> None:
    adding.add_argument("--socket", metavar="PATH", help="the daemon's control socket over there")
    adding.add_argument(
        "--synapsectl", metavar="PATH", help="synapsectl over there, which else is looked for in its PATH"
    )


def _configure_add(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} NAME ssh://[USER@]HOST[:PORT] [--socket PATH | --synapsectl PATH] [--json]"
    about = "its name here, and where ssh finds it"
    remembered.configure_add(parser, _add_options, metavar="NAME TARGET", about=about)


SUBVERBS = {
    "add": SubVerb("remember another host of yours, and keep a connection to it", _configure_add),
    "list": SubVerb("the hosts that are remembered, and whether they are reached", remembered.configure_list),
    "remove": SubVerb(
        "forget a host, and cancel what was under way to it", partial(remembered.configure_remove, metavar="NAME")
    ),
}


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    if len(args.words) != WORDS[args.what]:
        takes = {"add": "a name and a target", "list": "nothing more", "remove": "one name"}[args.what]
        raise UsageError(f"host {args.what} takes {takes}")
    if args.what == "add":
        return _add(args, ctx, *args.words)
    if args.what == "remove":
        return remembered.forget(args, ctx, host_path(args.words[0]), "name")
    none = "'synapsectl host add NAME ssh://USER@HOST' adds one"
    return remembered.show_list(args, ctx, "/hosts", _row, headings=HEADINGS, grows="ERROR", none=none)


def _add(args: argparse.Namespace, ctx: CommandContext, name: str, target: str) -> int:
    ensure_daemon(ctx, spawn=True)
    body: dict[str, Any] = {"name": name, "target": target}
    body |= {key: getattr(args, key) for key in ("socket", "synapsectl") if getattr(args, key)}
    host = ctx.client.post("/hosts", body)
    words = f"{host['name']} is {host['target']}; 'synapsectl host list' shows whether it is reached"
    return remembered.show_added(args, ctx, host, words)


def _row(host: Any) -> tuple[Any, ...]:
    return host["name"], host["state"], age(host["since"]), host["waiting"], host["target"], host["error"] or "-"
