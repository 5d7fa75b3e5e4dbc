"""`synapsectl adopt [PROFILE] [ID]`: starts an agent on a conversation that its program has kept."""

import argparse
import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from synapsectl.ages import age
from synapsectl.context import CommandContext
from synapsectl.daemon import ensure_daemon
from synapsectl.errors import DONE, NOT_FOUND, ApiError, CtlError, UsageError
from synapsectl.launching import add_start_options, show_started, start_agent
from synapsectl.times import moment

EXAMPLES = (
    ("synapsectl adopt", "the conversations that the programs keep here"),
    ("synapsectl adopt claude 3f2a", "go on with one of them, in its folder"),
    ("synapsectl adopt --all", "an agent for the newest of each folder, of the last day"),
)

TAKES_REST = True
HEADINGS = ("PROFILE", "ID", "AGE", "AGENT", "CWD", "FIRST PROMPT")
ID_SHOWN = 8
"""Characters of an id that are shown on a terminal, or more if needed to distinguish it."""
SINCE = "1d"
"""Age of the conversations that `--all` takes: present work, not the whole history."""
LISTED_MAX = 200
"""Conversations of one profile that the daemon lists."""
OURS = frozenset({"HOME", "SYNAPSED_HOME"})
"""Variables that do not move a program's files."""

MOVED = ("_AGENT_DIR", "_CONFIG_DIR", "_HOME")
"""Ends of the names of variables by which programs move their files (PI_CODING_AGENT_DIR, CLAUDE_CONFIG_DIR,
CODEX_HOME); the profile decides which of them counts."""
MOVED_MAX = 20
PREFIX_MIN = 4
"""Characters of an id that may stand for it."""


class NoConversation(CtlError):
    exit_code = NOT_FOUND
    code = "NO_CONVERSATION"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} [PROFILE] [--list | ID | --all [--since TIME]] [options] [-- ARGUMENT…]"
    parser.add_argument(
        "what", nargs="*", metavar="PROFILE ID", help="whose conversations, and which; without an id they are listed"
    )
    parser.add_argument("--list", action="store_true", help="list the conversations that are found")
    parser.add_argument(
        "--all", action="store_true", help="start an agent on the newest of each folder and program that has none"
    )
    parser.add_argument("--since", type=moment, metavar="TIME", help="--all: used since then; 1d where none is given")
    add_start_options(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON document")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    if len(args.what) > 2:
        raise UsageError("give a profile and the id of one conversation")
    ensure_daemon(ctx, spawn=not args.no_spawn_daemon)
    known = {profile["name"] for profile in ctx.client.get("/control/profiles")}
    words = list(args.what)
    profile = words.pop(0) if words and (words[0] in known or len(words) == 2) else None
    if args.all:
        if words or args.list or args.name or args.port:
            raise UsageError("--all starts several agents: leave out an id, --list, --name and --port")
        return _adopt_all(_found(ctx, profile, cwd=args.cwd), args, ctx)
    if args.since is not None:
        raise UsageError("--since is for --all")
    if not words or args.list:
        _list(_found(ctx, profile, cwd=args.cwd), args, ctx)
        return DONE
    found = _found(ctx, profile)
    if not any(one["id"].startswith(words[0]) for one in found):  # an older one is listed for its folder only
        found = _found(ctx, profile, cwd=args.cwd or ".")
    chosen = _choose(words[0], found)
    args.profile = chosen["profile"]
    args.cwd = args.cwd or chosen["cwd"]
    show_started(start_agent(args, ctx, conversation=chosen["id"]), ctx, as_json=args.json)
    return DONE


def _adopt_all(found: list[dict[str, Any]], args: argparse.Namespace, ctx: CommandContext) -> int:
    """Starts all; one that cannot be started does not stop the others, and the first refusal's exit code counts."""
    code, started = DONE, []
    for one in _newest(found, since=args.since or moment(SINCE)):
        own = argparse.Namespace(**{**vars(args), "profile": one["profile"], "cwd": one["cwd"]})
        try:
            agent = start_agent(own, ctx, conversation=one["id"])
        except (ApiError, UsageError) as error:
            ctx.out.note(f"{one['profile']} in {one['cwd']}: {error}")
            code = code or error.exit_code
            continue
        started.append(agent)
        if not args.json:
            show_started(agent, ctx, as_json=False)
    if args.json:
        ctx.out.document(started)
    elif not started and code == DONE:
        ctx.out.note("there is no conversation to go on with; --since 7d looks further back")
    return code


def _newest(found: list[dict[str, Any]], *, since: str) -> list[dict[str, Any]]:
    """Returns for each program the newest conversation of each folder that has no agent of that program yet."""
    taken = {(one["profile"], one["cwd"]) for one in found if one["agent"]}
    chosen: dict[tuple[str, str], dict[str, Any]] = {}
    for one in sorted(found, key=_used, reverse=True):
        key = (one["profile"], one["cwd"])
        if one["cwd"] and key not in taken and _used(one) >= datetime.fromisoformat(since):
            chosen.setdefault(key, one)
    return list(chosen.values())


def _used(one: dict[str, Any]) -> datetime:
    when = datetime.fromisoformat(one["updated_at"])
    return when if when.tzinfo is not None else when.replace(tzinfo=UTC)


def _found(ctx: CommandContext, profile: str | None, *, cwd: str | None = None) -> list[dict[str, Any]]:
    from os.path import realpath

    moved = {name: value for name, value in ctx.environ.items() if name.endswith(MOVED) and name not in OURS}
    fitting = dict(list(moved.items())[:MOVED_MAX])
    query = {
        "home": ctx.environ.get("HOME"),
        "profile": profile,
        "cwd": realpath(cwd) if cwd else None,
        "env": json.dumps(fitting) if fitting else None,
    }
    with ctx.busy("looking for conversations"):
        found: list[dict[str, Any]] = ctx.client.get(
            "/control/conversations", {key: value for key, value in query.items() if value}
        )
    return found


def _choose(wanted: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    for one in found:
        if one["id"] == wanted:
            return one
    fitting = [one for one in found if len(wanted) >= PREFIX_MIN and one["id"].startswith(wanted)]
    if len(fitting) > 1:
        raise UsageError(f"{wanted!r} could be {', '.join(one['id'] for one in fitting)}")
    if not fitting:
        raise NoConversation(f"no conversation {wanted!r} was found; 'synapsectl adopt --list' shows what there is")
    return fitting[0]


def _prefix(ids: list[str]) -> int:
    """Returns how many characters distinguish the ids."""
    longest = max((len(one) for one in ids), default=0)
    lengths = range(ID_SHOWN, longest)
    return next((length for length in lengths if len({one[:length] for one in ids}) == len(set(ids))), longest)


def _list(found: list[dict[str, Any]], args: argparse.Namespace, ctx: CommandContext) -> None:
    for profile, there in Counter(one["profile"] for one in found).items():
        if there >= LISTED_MAX:
            ctx.out.note(f"of {profile} these are the newest {there}: --cwd DIR shows a folder's")
    if args.json:
        ctx.out.document(found)
        return
    told = _prefix([one["id"] for one in found]) if ctx.out.on_terminal else None
    rows = [
        (one["profile"], one["id"][:told], age(one["updated_at"]), one["agent"] or "", one["cwd"] or "", one["prompt"])
        for one in found
    ]
    ctx.out.table(HEADINGS, rows, grows="FIRST PROMPT")
    if not found:
        ctx.out.note("no conversations were found")
