"""`synapsectl devices list|remove`: devices that were paired with `synapsectl web`."""

import argparse
from typing import Any
from urllib.parse import quote

from synapsectl.ages import age
from synapsectl.context import CommandContext
from synapsectl.errors import DONE
from synapsectl.parsing import SubVerb, of_all

HEADINGS = ("ID", "NAME", "RIGHTS", "SEEN", "PAIRED", "PUSH")

EXAMPLES = (
    ("synapsectl devices list", "the browsers that were let in, and what each may"),
    ("synapsectl devices remove 3fa9c2d1", "the phone is lost: its open requests end at once"),
)


def _list(args: argparse.Namespace, ctx: CommandContext) -> int:
    none = "no device is paired; 'synapsectl web' pairs this machine's browser, 'synapsectl web --phone' a phone"
    found = ctx.client.get("/control/devices")
    ctx.out.rows_of(found, HEADINGS, _row, as_json=args.json, none=none, grows="NAME")
    return DONE


def _configure_remove(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("device", metavar="DEVICE", help="its id, or a name that one device has")
    parser.add_argument("--json", action="store_true", help="print a JSON document of what it was")


def _remove(args: argparse.Namespace, ctx: CommandContext) -> int:
    removed = ctx.client.delete(f"/control/devices/{quote(args.device, safe='')}")
    ctx.out.either(removed, as_json=args.json, line=f"{removed['name']} ({removed['id']}) is not let in any more")
    return DONE


def _row(one: dict[str, Any]) -> tuple[Any, ...]:
    push = "yes" if one["push"] else "-"
    return one["id"], one["name"], ",".join(one["rights"]), age(one["seen"]), age(one["paired"]), push


SUBVERBS = {
    "list": SubVerb("list the paired devices", of_all, _list, EXAMPLES[:1]),
    "remove": SubVerb("remove a device, which ends its open requests", _configure_remove, _remove, EXAMPLES[1:]),
}
