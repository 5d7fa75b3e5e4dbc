"""`synapsectl external add|list|send|remove`: A2A agents elsewhere, under an alias."""

import argparse
import base64
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from synapsectl.ages import age
from synapsectl.commands import send
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, UsageError
from synapsectl.given_paths import from_home
from synapsectl.messages import read_secret
from synapsectl.parsing import SubVerb, of_all, of_one

PATH = "/external/agents"
HEADINGS = ("ALIAS", "NAME", "A2A", "ENDPOINT", "LAST SEEN")
LOOK_TIMEOUT = 60.0
"""Seconds for the daemon to look at a card."""
SECRET_MAX = 8192
"""Characters of a token, or of the value of a header: the daemon's limit."""
KEY_MAX = 64 * 1024
FIRST = "0.1"
"""`protocol_version` of agents that speak A2A as it was before it had versions."""

EXAMPLES = (
    ("synapsectl external add https://agents.example/a2a --as far", "reads its card; its name here is far"),
    ("synapsectl external send far 'what can you do?' --wait", "a message, and its answer"),
    ("synapsectl external list", "list them, and when each was last seen"),
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
    adding.add_argument(
        "--query-env",
        action="append",
        default=[],
        metavar="NAME=VARIABLE",
        help="the same as a member of the query, such as api_key=MY_KEY; repeatable",
    )
    adding.add_argument(
        "--cookie-env", action="append", default=[], metavar="NAME=VARIABLE", help="the same as a cookie; repeatable"
    )
    adding.add_argument(
        "--basic-env", metavar="VARIABLE", help="log in by HTTP Basic with NAME:PASSWORD, which it holds"
    )
    adding.add_argument(
        "--key",
        type=from_home,
        metavar="FILE",
        help="its card must be signed with this public key: PEM, a JWK or a JWK set",
    )
    adding.add_argument("--no-key", action="store_true", help="its card need not be signed any more")
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
    body |= _credentials(args, ctx) | _key(args)
    with ctx.busy("reading its card"):
        agent = ctx.client.post("/external/discover", body, timeout=LOOK_TIMEOUT)
    signed = f"; its card is signed by {agent['signed_by'] or 'that key'}" if agent["key"] else ""
    words = f"{agent['alias']} is {agent['name']} at {agent['endpoint']} ({_spoken(agent)}){signed}"
    ctx.out.either(agent, as_json=args.json, line=words)
    for need in agent["needs"]:
        ctx.out.note(f"{agent['alias']} needs {need}")
    return DONE


def _credentials(args: argparse.Namespace, ctx: CommandContext) -> dict[str, Any]:
    """Returns the credentials from a file or the terminal, never from the command line, which others can see."""
    if sum(map(bool, (args.token_stdin, args.token_env, args.basic_env))) > 1:
        raise UsageError("--token-stdin, --token-env and --basic-env: choose one")
    headers = dict(_given(ctx, "--header-env", args.header_env))
    cookies = [f"{name}={value}" for name, value in _given(ctx, "--cookie-env", args.cookie_env)]
    if cookies:
        headers["Cookie"] = "; ".join(cookies)
    if args.basic_env:
        password = _variable(ctx, args.basic_env)
        if ":" not in password:
            raise UsageError(f"--basic-env: the variable {args.basic_env} does not hold NAME:PASSWORD")
        headers["Authorization"] = f"Basic {base64.b64encode(password.encode()).decode()}"
    query = dict(_given(ctx, "--query-env", args.query_env))
    told: dict[str, Any] = {"headers": headers, "query": query} if headers or query or args.no_credentials else {}
    if args.token_stdin:
        told["token"] = read_secret("--token-stdin", sys.stdin.buffer, SECRET_MAX)
    elif args.token_env:
        told["token"] = _variable(ctx, args.token_env)
    return told


def _given(ctx: CommandContext, option: str, given: list[str]) -> Iterator[tuple[str, str]]:
    """Yields the names with the values of their variables."""
    for one in given:
        name, has_name, variable = one.partition("=")
        if not (name and has_name and variable):
            raise UsageError(f"{option}: {one!r} is not of the form NAME=VARIABLE, such as X-API-Key=MY_KEY")
        yield name, _variable(ctx, variable)


def _key(args: argparse.Namespace) -> dict[str, str]:
    if args.key and args.no_key:
        raise UsageError("--key and --no-key: choose one")
    if not args.key:
        return {"key": ""} if args.no_key else {}
    try:
        with Path(args.key).open(encoding="utf-8", errors="replace") as file:
            text = file.read(KEY_MAX + 1)
    except OSError as error:
        raise UsageError(f"--key: {args.key} cannot be read: {error.strerror}") from error
    if not text.strip() or len(text) > KEY_MAX:
        raise UsageError(f"--key: {args.key} is no public key: it is empty, or has more than {KEY_MAX} characters")
    return {"key": text}


def _variable(ctx: CommandContext, name: str) -> str:
    if not (value := ctx.environ.get(name, "").strip()):
        raise UsageError(f"the variable {name} is not set")
    if len(value) > SECRET_MAX:
        raise UsageError(f"the variable {name} has more than {SECRET_MAX} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"the variable {name} is not UTF-8") from None
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
            (
                "synapsectl external add https://agents.example/a2a --as far --key far.pem",
                "its card must be signed, and this is the public key",
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
