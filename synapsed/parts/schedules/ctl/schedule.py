"""`synapsectl schedule add|list|remove|run`: messages that are sent at their times."""

import argparse
import re
import sys
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import quote

from synapsectl.context import CommandContext
from synapsectl.errors import DONE, UsageError
from synapsectl.messages import read_text
from synapsectl.output import one_line, short_id
from synapsectl.parsing import SubVerb, of_all, of_one

HEADINGS = ("NAME", "AT", "AGENT", "NEXT", "LAST", "FROM", "MESSAGE")

_CRON = re.compile(r"[\d*][\d*,/#L-]*|[A-Za-z]{3}(?:-[A-Za-z]{3})?")
_CRON_FIELDS = 5
_DATE = re.compile(r"(?:\d{4}|\*)-[\d*.,/]+[-~][\d*.,/]+|\d\d-\d\d")
_CLOCK = re.compile(r"[\d*][\d*.,/]*(?::[\w*.,/]+)+|\d{1,2}[ap]m", re.IGNORECASE)

EXAMPLES = (
    ("synapsectl schedule add claude 'Mon..Fri 08:00' 'summarise what was merged'", "on every working day at eight"),
    ("synapsectl schedule list", "what there is, and when it is next"),
)


def _configure_add(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} AGENT AT [options] [--] MESSAGE"
    parser.add_argument(
        "words", nargs="*", metavar="AGENT AT MESSAGE", help="to whom, when, and what ('-': from stdin)"
    )
    parser.add_argument("--name", help="what it is called; without one, the agent's name and a number")
    parser.add_argument(
        "--zone", metavar="ZONE", help="the time zone of AT, as Europe/Berlin; without one, the machine's"
    )
    parser.add_argument(
        "--missed",
        choices=["skip", "once"],
        default="skip",
        help="what becomes of times at which no daemon ran or the machine slept: nothing, or one message for all",
    )
    parser.add_argument("--priority", type=int, choices=range(1, 6), default=1, help="5 interrupts what runs then")
    parser.add_argument("--new-conversation", action="store_true", help="each message begins a new conversation")
    parser.add_argument("--json", action="store_true", help="print a JSON document of it")


def _at(words: Sequence[str]) -> tuple[str, list[str]]:
    """Returns the time that `words` begin with, and the message after it: a person may leave the quotes out, and then a
    part of the time must not become the message. The daemon decides if it is a time."""
    if len(words) > _CRON_FIELDS and all(map(_CRON.fullmatch, words[:_CRON_FIELDS])):
        return " ".join(words[:_CRON_FIELDS]), list(words[_CRON_FIELDS:])
    if " " in words[0]:  # in quotes
        return words[0], list(words[1:])
    at, left = [words[0]], list(words[1:])
    for pattern in (_DATE, _CLOCK):
        if left and _CLOCK.fullmatch(at[-1]) is None and pattern.fullmatch(left[0]):
            at.append(left.pop(0))
    if left and (_CLOCK.fullmatch(at[-1]) or len(at) > 1) and _is_zone(left[0]):
        at.append(left.pop(0))
    return " ".join(at), left


def _is_zone(word: str) -> bool:
    """Returns True for UTC and the name of a zone with its area, like Europe/Berlin."""
    from zoneinfo import ZoneInfo

    if "/" not in word:
        return word.upper() == "UTC"
    try:
        ZoneInfo(word)
    except (LookupError, OSError, ValueError):
        return False
    return True


def _add(args: argparse.Namespace, ctx: CommandContext) -> int:
    words = [*args.words, *(args.rest or [])]
    agent, at, message = (words[0], *_at(words[1:])) if len(words) > 1 else ("", "", [])
    if not message:
        raise UsageError("schedule add: name the agent, the time (in quotes) and the message")
    text = read_text(" ".join(message), sys.stdin.buffer)
    body: dict[str, Any] = {"agent": agent, "at": at, "message": text, "missed": args.missed}
    body |= {"priority": args.priority, "new_conversation": args.new_conversation}
    body |= {key: getattr(args, key) for key in ("name", "zone") if getattr(args, key) is not None}
    made = ctx.client.post("/schedules", body)
    if args.json:
        ctx.out.document(made)
        return DONE
    ctx.out.line(f"{made['name']}: {made['agent']} at {made['at']}{_where(made)}")
    for at in made["next"]:
        ctx.out.line(f"  {_day(at)}")
    return DONE


def _list(args: argparse.Namespace, ctx: CommandContext) -> int:
    schedules = ctx.client.get("/schedules")
    none = "there is no schedule; 'synapsectl schedule add AGENT AT MESSAGE' adds one"
    ctx.out.rows_of(schedules, HEADINGS, _row, as_json=args.json, none=none, grows="MESSAGE")
    if ctx.out.on_terminal and not args.json:
        for one in schedules:
            ctx.out.remark(f"{one['name']}: {', '.join(map(_day, one['next'])) or 'never again'}")
            if one["last"] and one["last"]["problem"]:
                ctx.out.remark(f"  {_day(one['last']['at'])}: {one_line(one['last']['problem'])}")
    return DONE


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    last = one["last"]
    told = "-" if last is None else f"{last['outcome']} {_day(last['at'])}"
    source = one["by"] or ("config.toml" if one["source"] == "file" else "-")
    following = _day(one["next"][0]) if one["next"] else "never"
    return one["name"], f"{one['at']}{_where(one)}", one["agent"], following, told, source, one["message"]


def _where(one: dict[str, Any]) -> str:
    """Returns the zone, if it is not in the time."""
    zone = one["zone"]
    return f" {zone}" if zone is not None and not one["at"].upper().endswith(zone.upper()) else ""


def _day(at: str) -> str:
    """Returns a time in its own zone, as people write it."""
    try:
        return f"{datetime.fromisoformat(at):%a %Y-%m-%d %H:%M %z}"
    except ValueError:
        return at


def _remove(args: argparse.Namespace, ctx: CommandContext) -> int:
    removed = ctx.client.delete(f"/schedules/{quote(args.name, safe='')}")
    ctx.out.either(removed, as_json=args.json, line=f"{removed['name']} is forgotten")
    return DONE


def _run(args: argparse.Namespace, ctx: CommandContext) -> int:
    answer = ctx.client.post(f"/schedules/{quote(args.name, safe='')}/run")
    task = answer["task"]["id"]
    ctx.out.either(answer, as_json=args.json, line=short_id(task) if ctx.out.on_terminal else task)
    return DONE


SUBVERBS = {
    "add": SubVerb(
        "send a message to an agent at the times that AT means",
        _configure_add,
        _add,
        (
            ("synapsectl schedule add claude 'Mon..Fri 08:00' 'summarise what was merged'", "on every working day"),
            ("synapsectl schedule add codex '0 8 * * 1' --zone Europe/Berlin 'update the lock file'", "as cron has it"),
        ),
        takes_rest=True,
    ),
    "list": SubVerb(
        "list the schedules and their next times",
        of_all,
        _list,
        (("synapsectl schedule list", "what there is, and when it is next"),),
    ),
    "remove": SubVerb(
        "forget a schedule",
        partial(of_one, name="what it is called", json="print a JSON document of what it was"),
        _remove,
        (("synapsectl schedule remove claude-1", "by its name"),),
    ),
    "run": SubVerb(
        "send a schedule's message now",
        partial(of_one, name="what it is called", json="print a JSON document of its task"),
        _run,
        (("synapsectl schedule run claude-1", "besides its times, which stay"),),
    ),
}
