"""`synapsectl token create|list|revoke`: tokens for scripts, with limited rights."""

import argparse
from typing import Any
from urllib.parse import quote

from synapsectl.ages import age
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, UsageError
from synapsectl.parsing import SubVerb, of_all

HEADINGS = ("ID", "NAME", "RIGHTS", "AGENTS", "MADE", "EXPIRES")
RIGHTS = ("look", "send", "answer", "type", "manage")

EXAMPLES = (
    ("synapsectl token create --rights send --agent codex --days 30", "for a script that writes to codex, for a month"),
    ("synapsectl token list", "list the tokens; their texts are not shown again"),
    ("synapsectl token revoke 3fa9c2d1", "it is not valid any more, and its open requests end"),
)


def _configure_create(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rights", metavar="R[,R…]", required=True, help=f"what it may: {', '.join(RIGHTS)}")
    parser.add_argument("--agent", metavar="AGENT", action="append", help="for this agent only; may be repeated")
    parser.add_argument("--days", metavar="N", type=float, help="for so many days; else until it is revoked")
    parser.add_argument("--name", metavar="NAME", default="script", help="what the list calls it (default: script)")
    parser.add_argument("--json", action="store_true", help="print a JSON document of it")


def _create(args: argparse.Namespace, ctx: CommandContext) -> int:
    rights = rights_in(args.rights)
    body: dict[str, Any] = {"name": args.name, "rights": rights, "agents": args.agent, "days": args.days}
    made = ctx.client.post("/control/tokens", {key: value for key, value in body.items() if value is not None})
    if not args.json:
        ctx.out.note(
            f"{made['id']} may {', '.join(made['rights'])}; it is shown only this once: 'Authorization: Bearer …'"
        )
    ctx.out.either(made, as_json=args.json, line=made["token"])
    return DONE


def _list(args: argparse.Namespace, ctx: CommandContext) -> int:
    none = "there is no token; 'synapsectl token create --rights send' makes one"
    found = ctx.client.get("/control/tokens")
    ctx.out.rows_of(found, HEADINGS, _row, as_json=args.json, none=none, grows="AGENTS")
    return DONE


def _configure_revoke(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("token", metavar="TOKEN", help="its id, or a name that one token has")
    parser.add_argument("--json", action="store_true", help="print a JSON document of what it was")


def _revoke(args: argparse.Namespace, ctx: CommandContext) -> int:
    revoked = ctx.client.delete(f"/control/tokens/{quote(args.token, safe='')}")
    ctx.out.either(revoked, as_json=args.json, line=f"{revoked['name']} ({revoked['id']}) is not valid any more")
    return DONE


def rights_in(text: str) -> list[str]:
    """Returns the words of `--rights`. Raises UsageError for a word that is no right."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or (unknown := [word for word in words if word not in RIGHTS]):
        wrong = repr(unknown[0]) if words else "nothing"
        raise UsageError(f"--rights: {wrong} is no right; there are {', '.join(RIGHTS)}")
    return list(dict.fromkeys(words))


def _row(one: dict[str, Any]) -> tuple[Any, ...]:
    agents = ", ".join(one["agents"]) if one["agents"] is not None else "all"
    return one["id"], one["name"], ",".join(one["rights"]), agents, age(one["made"]), one["expires"] or "never"


SUBVERBS = {
    "create": SubVerb("make a token for a script", _configure_create, _create, EXAMPLES[:1]),
    "list": SubVerb("list the tokens", of_all, _list, EXAMPLES[1:2]),
    "revoke": SubVerb("revoke a token, which ends its open requests", _configure_revoke, _revoke, EXAMPLES[2:]),
}
