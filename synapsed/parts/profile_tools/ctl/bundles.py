"""`synapsectl profiles key|bundle|update`: bundles of profiles, made and taken.

The daemon's package does the work with keys and bundles, in a process of its own. `update` needs no daemon: a running
one reads its profiles again afterwards.
"""

import argparse
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from synapsectl.ages import length
from synapsectl.client import SLOW_TIMEOUT
from synapsectl.context import CommandContext
from synapsectl.daemon_program import ask_daemon_program
from synapsectl.errors import DONE, REFUSED, CtlError, NoDaemon, UsageError
from synapsectl.output import one_line
from synapsectl.parsing import SubVerb

TIMEOUT_S = 900.0
"""Seconds for the process; fetching, and reading all recordings, have lower limits of their own."""
BACK = "synapsectl profiles update --rollback"
SHOWN = 12
"""Characters of a digest that are shown."""


class CommandsRefused(CtlError):
    """Error for a bundle that changes what is run or typed, without a person's consent."""

    exit_code = REFUSED
    code = "NOT_CONFIRMED"


class OnlyAPerson(CtlError):
    exit_code = REFUSED
    code = "FORBIDDEN"


def _digest(value: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{12,64}", value):
        raise argparse.ArgumentTypeError("the first 12 letters or more of the digest that --dry-run shows")
    return value


def _configure_key(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="the new file for the private key (mode 0600); none is overwritten"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON document with the public key")


def _configure_bundle(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} NAME… --key FILE -o BUNDLE [options]"
    parser.add_argument("names", nargs="+", metavar="NAME", help="profiles by their names, or files of whole profiles")
    parser.add_argument("--key", metavar="FILE", required=True, help="the private key that signs it")
    parser.add_argument("-o", "--output", metavar="BUNDLE", required=True, help="the file that is written")
    parser.add_argument("--needs", metavar="VERSION", help="the oldest synapsed that it is for; otherwise this one")
    parser.add_argument(
        "--recordings", metavar="DIR", action="append", default=[], help="a folder with folders PROFILE-VERSION of them"
    )
    parser.add_argument(
        "--expected", metavar="DIR", action="append", default=[], help="the same with what is expected, if elsewhere"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON document of it")


def _configure_update(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} (--from FILE|URL | --rollback) [options]"
    parser.add_argument("--from", dest="source", metavar="FILE|URL", help="the bundle: a file, or an https:// address")
    parser.add_argument("--rollback", action="store_true", help="go back to the bundle before, or the shipped profiles")
    parser.add_argument("--dry-run", action="store_true", help="only say what would change")
    parser.add_argument(
        "--accept-commands",
        metavar="DIGEST",
        type=_digest,
        help="accept what the bundle of that digest runs or types; --dry-run shows both",
    )
    parser.add_argument("--older", action="store_true", help="take it even if it is older than the bundle in use")
    parser.add_argument("--json", action="store_true", help="print a JSON document of it")


def _key(args: argparse.Namespace, ctx: CommandContext) -> int:
    ctx.check_user()
    made = _ask(ctx, "key", file=_absolute(args.file))
    if args.json:
        ctx.out.document(made)
        return DONE
    ctx.out.line(made["key"])
    ctx.out.note(
        f'whoever trusts bundles signed with it adds it to config.toml: [profiles] keys = ["{made["key"]} NAME"]'
    )
    return DONE


def _bundle(args: argparse.Namespace, ctx: CommandContext) -> int:
    files = [_file(name, ctx) for name in args.names]
    with ctx.busy("reading the recordings"):
        made = _ask(
            ctx,
            "make",
            files=files,
            key=_absolute(args.key),
            out=_absolute(args.output),
            needs=args.needs,
            recordings=_inside(args.recordings),
            expected=_inside(args.expected),
        )
    if args.json:
        ctx.out.document(made)
        return DONE
    for profile in made["profiles"]:
        ctx.out.line(f"{profile['name']}: {_versions(profile)}")
    for name, why in made["left_out"].items():
        ctx.out.note(f"{name}: is left out here: {why}")
    ctx.out.line(f"{made['bundle']}: {made['recordings']} recordings, {made['bytes']} bytes, signed with {made['key']}")
    return DONE


def _versions(profile: dict[str, Any]) -> str:
    since = f", from {profile['since']} on" if profile["since"] else ""
    since = one_line(since)
    return f"verified on {one_line(profile['verified'])}{since}" if profile["verified"] else f"not verified{since}"


def _update(args: argparse.Namespace, ctx: CommandContext) -> int:
    if ctx.inside_agent:
        raise OnlyAPerson("profiles run programs as their person, who alone takes them: this is an agent's shell")
    if args.rollback == (args.source is not None):
        raise UsageError("say either --from FILE|URL or --rollback")
    ctx.check_user()
    if args.rollback:
        return _rolled_back(args, ctx)
    source = args.source if "://" in args.source else _absolute(args.source)
    with ctx.busy("looking at the bundle"):
        found = _ask(ctx, "look", **{"from": source, "older": args.older})
    if not args.json:
        _show(found, ctx)
    if found["counts"] or args.dry_run:
        if args.json:
            ctx.out.document({**found, "taken": False})
        elif found["counts"]:
            ctx.out.line("this bundle is in use already")
        return DONE
    _confirm(found, args, ctx)
    _ask(
        ctx,
        "take",
        digest=found["digest"],
        instead_of=found["instead_of"],
        unproved=sorted(_changed(found)),
    )
    problem = _reload(ctx)
    if args.json:
        ctx.out.document({**found, "taken": True, "reload": problem or None})
        return DONE
    ctx.out.line(f"taken; '{BACK}' goes back")
    if problem:
        ctx.out.note(problem)
    return DONE


def _rolled_back(args: argparse.Namespace, ctx: CommandContext) -> int:
    counts = _ask(ctx, "roll-back")
    problem = _reload(ctx)
    if args.json:
        ctx.out.document({**counts, "reload": problem or None})
        return DONE
    signed = f" of {counts['signer']}" if counts["signer"] else ""
    ctx.out.line(
        f"bundle {counts['counts'][:12]}{signed} is in use" if counts["counts"] else "the shipped profiles are in use"
    )
    if problem:
        ctx.out.note(problem)
    return DONE


def _changed(found: dict[str, Any]) -> set[str]:
    return {name for name, profile in found["profiles"].items() if profile["changes"] and not profile["left_out"]}


def _show(found: dict[str, Any], ctx: CommandContext) -> None:
    made = datetime.fromtimestamp(found["made"], UTC)
    age = length(max(0, int((datetime.now(UTC) - made).total_seconds())))
    ctx.out.line(
        f"bundle {found['digest'][:SHOWN]}, signed by {one_line(found['signer'])}, made {made:%Y-%m-%d} ({age} ago)"
    )
    for name, profile in found["profiles"].items():
        ctx.out.line(f"{name}: {_of_profile(profile)}")
        for change in profile["changes"]:
            if not profile["left_out"] and not change["runs"]:
                ctx.out.line(_line(change))
    for name in found["gone"]:
        ctx.out.line(f"{name}: is not in this bundle, and did not come with synapsed: there will be no such profile")
    for name, changes in _commands(found).items():
        ctx.out.line(f"{name} changes WHAT IS RUN OR TYPED as you:")
        for change in changes:
            ctx.out.line(_line(change))


def _of_profile(profile: dict[str, Any]) -> str:
    if profile["left_out"]:
        return f"does not count: {profile['left_out']}"
    if not profile["inside"]:
        return "changes with what it extends, or with what is no more in this bundle"
    told = [_versions(profile), f"{profile['recordings'] or 'no'} recordings"]
    told += ["new"] if profile["new"] else [] if profile["changes"] else ["unchanged"]
    told += ["your own file of it still wins, key by key"] if profile["own"] else []
    return ", ".join(told)


def _line(change: dict[str, Any]) -> str:
    before, after = (
        one_line(change[side]) if change[side] is not None else "(nothing)" for side in ("before", "after")
    )
    return f"    {ascii(change['key'])[1:-1]}: {before} → {after}"


def _commands(found: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Returns, by profile, the changes that decide what is run or typed."""
    of_each = {
        name: [change for change in profile["changes"] if change["runs"] and not profile["left_out"]]
        for name, profile in found["profiles"].items()
    }
    return {name: changes for name, changes in of_each.items() if changes}


def _confirm(found: dict[str, Any], args: argparse.Namespace, ctx: CommandContext) -> None:
    """Asks for consent. Raises CommandsRefused."""
    names = sorted({*_commands(found), *found["gone"]})
    if args.accept_commands and not found["digest"].startswith(args.accept_commands):
        raise CommandsRefused(
            f"this is the bundle {found['digest'][:SHOWN]}, and not {args.accept_commands}: look at it with --dry-run"
        )
    if not names or args.accept_commands:
        return
    if ctx.may_ask:
        if ctx.asks(f"take it, with what it runs or types ({', '.join(names)})?"):
            return
        raise CommandsRefused("not taken: nothing has changed")
    raise CommandsRefused(
        f"it changes what is run or typed as you ({', '.join(names)}): look at it with --dry-run, "
        f"then take it with --accept-commands {found['digest'][:SHOWN]}, or at a terminal, where you are asked"
    )


def _reload(ctx: CommandContext) -> str:
    """Makes a running daemon read the profiles again; returns, in words, why it has not, or an empty text."""
    try:
        ctx.client.post("/control/reload", {"dry_run": False}, timeout=SLOW_TIMEOUT)
    except NoDaemon:
        return "no daemon runs: it counts once one does"
    except CtlError as error:
        return f"the daemon has not read it yet: {error}; 'synapsectl reload' tries again"
    return ""


def _file(name: str, ctx: CommandContext) -> str:
    if name.endswith(".toml") or "/" in name:
        return _absolute(name)
    return str(ask_daemon_program(ctx, "profile", "file", name, timeout_s=TIMEOUT_S)["file"])


def _inside(folders: list[str]) -> list[str]:
    return [
        str(path) for folder in folders for path in sorted(Path(_absolute(folder)).glob("*-[0-9]*")) if path.is_dir()
    ]


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())


def _ask(ctx: CommandContext, what: str, **body: Any) -> dict[str, Any]:
    return ask_daemon_program(ctx, "bundles", what, body=json.dumps(body), timeout_s=TIMEOUT_S)


SUBVERBS = {
    "key": SubVerb(
        "make a key that signs bundles of profiles",
        _configure_key,
        _key,
        (("synapsectl profiles key ~/profiles.key", "the public key is printed"),),
    ),
    "bundle": SubVerb(
        "make a signed bundle of profiles, for others to take",
        _configure_bundle,
        _bundle,
        (
            (
                "synapsectl profiles bundle claude my.toml --key ~/my.key -o my.bundle --recordings recordings",
                "with recordings on which they are tested",
            ),
        ),
    ),
    "update": SubVerb(
        "take a bundle of profiles from somebody whose key you trust, or go back",
        _configure_update,
        _update,
        (
            ("synapsectl profiles update --from https://example.org/profiles.bundle", "shows what changes"),
            ("synapsectl profiles update --rollback", "the profiles before it are in use again"),
        ),
    ),
}
