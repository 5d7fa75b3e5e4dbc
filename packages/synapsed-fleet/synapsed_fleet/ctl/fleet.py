"""`synapsectl fleet …`: many hosts with one address space, over their own broker."""

import argparse
import re
import socket
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from synapsectl.ages import age
from synapsectl.context import CommandContext
from synapsectl.daemon_program import write_whole
from synapsectl.errors import DONE, ApiError, CtlError, NoDaemon, UsageError
from synapsectl.given_paths import from_home
from synapsectl.parsing import SubVerb, of_all, of_one
from synapsed_fleet.ctl.asking import ask_fleet, persons_only
from synapsed_fleet.ctl.brokers import BROKER, SCALE
from synapsed_fleet.ctl.files import SUBVERBS as FILES
from synapsed_fleet.ctl.showing import HOST_HEADINGS, daemon_lines, host_row, status_lines

EXAMPLES = (
    ("synapsectl fleet create", "on the host that is always on: its broker, and itself the first member"),
    ("synapsectl fleet invite laptop", "there too: prints the line that makes laptop a member, for 15 minutes"),
    ("synapsectl fleet join -", "on laptop: reads the line, which stands in no list of processes that way"),
    ("synapsectl send codex@box 'run the tests' --wait", "from then on, from any of them to any"),
)

NOTHING: dict[str, Any] = dict.fromkeys(("member", "broker", "hosts", "streams", "given")) | {"admin": False}
"""Answer of `synapsed fleet status` on a host that is in no fleet and keeps no broker."""

TOLD_LINE_S = 120
"""Seconds for ssh, and for the verb on the other host."""


def _configure_create(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", help="this host's name in the fleet (default: its host name up to the first dot)")
    parser.add_argument("--listen", metavar="ADDRESS:PORT", help="where the broker listens (default: 0.0.0.0:4222)")
    parser.add_argument(
        "--address",
        action="append",
        metavar="HOST",
        help="a name or address by which the other hosts reach this one (default: guessed); later again where the "
        "broker has moved: invitations name it from then on",
    )
    parser.add_argument("--max-store", metavar="SIZE", help="what the broker keeps at most (default: half, or 20GiB)")
    parser.add_argument(
        "--url",
        action="append",
        metavar="URL",
        help="use a broker that another owner keeps: tls://nats.example:4222; repeat it for each one of a cluster",
    )
    parser.add_argument(
        "--account-key",
        type=from_home,
        metavar="FILE",
        help="with --url: the seed that signs users of the fleet's account there",
    )
    parser.add_argument(
        "--account", metavar="KEY", help="with --url: the account's public key, where --account-key is not its own"
    )
    parser.add_argument(
        "--ca",
        type=from_home,
        metavar="FILE",
        help="with --url: the authority of that broker's certificate (default: the system's)",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON document of it")


def _create(args: argparse.Namespace, ctx: CommandContext) -> int:
    from synapsed_fleet.ctl.swap import take_up
    from synapsed_fleet.ctl.unit import service_of

    persons_only(ctx)
    name = args.name or _own_name()
    asked = {"addresses": args.address, "listen": args.listen, "max_store": args.max_store, **_given(args)}
    made = ask_fleet(ctx, "create", name=name, **asked)
    service = service_of(ctx)
    with ctx.busy("starting the broker"):
        service.install()
        made["done"] = ask_fleet(ctx, "settle", listen=args.listen)["done"]
    made["service"] = service.name
    take_up(ctx)
    if service.name == "process":
        ctx.out.note("no service manager is here: put 'synapsed broker' under what this machine starts things with")
    where = " or ".join(made["urls"])
    whose = "whose broker is somebody else's" if made.get("given") else "whose broker it keeps"
    ctx.out.either(made, as_json=args.json, line=f"{made['name']} is a member of the fleet {whose}, at {where}")
    if made.get("remark"):
        ctx.out.note(made["remark"])
    ctx.out.note("for the next host: 'synapsectl fleet invite NAME' here; it must reach the broker's port")
    return DONE


def _given(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the description of another owner's broker, with the contents of the files."""
    if not args.url:
        if args.account_key or args.account or args.ca:
            raise UsageError("--account-key, --account and --ca are for a broker of somebody else's: give its --url")
        return {}
    if args.address or args.listen:
        raise UsageError("--address and --listen are for a broker that this host keeps: leave them out with --url")
    if not args.account_key:
        raise UsageError("with --url, --account-key FILE: the seed that signs users of the fleet's account there")
    key, ca = _contents(args.account_key), _contents(args.ca) if args.ca else None
    return {"urls": args.url, "account_key": key, "account": args.account, "ca": ca}


def _contents(name: str) -> str:
    try:
        return Path(name).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{name} cannot be read: {error}") from None


def _own_name() -> str:
    """Returns the host's name in the form that a fleet allows."""
    short = socket.gethostname().partition(".")[0].lower()
    return re.sub(r"[^a-z0-9-]+", "-", short).strip("-")[:31] or "host"


def _configure_invite(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="what the host is called from then on: NAME in AGENT@NAME")
    parser.add_argument("--again", action="store_true", help="for a member that has lost its key; the old one ends")
    parser.add_argument(
        "--file", type=from_home, metavar="FILE", help="write the line there, for its owner alone, and do not print it"
    )
    parser.add_argument(
        "--over-ssh",
        metavar="HOST",
        help="have HOST join at once: a name of 'synapsectl host list', or a destination of ssh's",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON document of it, the line in it")


def _invite(args: argparse.Namespace, ctx: CommandContext) -> int:
    persons_only(ctx)
    made = ask_fleet(ctx, "invite", name=args.name, again=args.again)
    if not made["broker_runs"]:
        ctx.out.note("the broker does not run here, and answers no invitation: 'synapsectl fleet broker restart'")
    if args.over_ssh:
        return _join_over_ssh(args, ctx, made)
    if args.file:
        _write_line(Path(args.file), made.pop("line"))
        ctx.out.either(
            made, as_json=args.json, note=f"{args.file}: carry it there, then 'synapsectl fleet join --file'"
        )
        return DONE
    if args.json:
        ctx.out.document(made)
        return DONE
    ctx.out.line(made["line"])
    ctx.out.note("a secret, good once, for 15 minutes; on the other host: 'synapsectl fleet join -', and paste it")
    return DONE


def _write_line(path: Path, line: str) -> None:
    try:
        write_whole(path, f"{line}\n".encode("ascii"))
    except OSError as error:
        raise CtlError(f"{path} cannot be written: {error.strerror}") from None


def _join_over_ssh(args: argparse.Namespace, ctx: CommandContext, made: Mapping[str, Any]) -> int:
    target, there = _destination(ctx, args.over_ssh)
    command = [*made["ssh"], "-o", "BatchMode=yes", "-T", "--", target, f"{there} fleet join -"]
    try:
        with ctx.busy(f"having {args.over_ssh} join"):
            done = subprocess.run(
                command,
                input=f"{made['line']}\n",
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TOLD_LINE_S,
                check=False,
            )
    except (OSError, subprocess.SubprocessError) as error:
        raise CtlError(f"ssh to {args.over_ssh} did not end: {error}") from None
    said = (done.stderr.strip() or done.stdout.strip())[-2000:]
    if done.returncode != 0:
        ctx.out.remark(said)
        raise CtlError(f"{args.over_ssh} did not join (ssh ended with {done.returncode})")
    told = {"name": made["name"], "via": args.over_ssh}
    ctx.out.either(told, as_json=args.json, line=f"{made['name']} is a member of the fleet")
    return DONE


def _destination(ctx: CommandContext, name: str) -> tuple[str, str]:
    """Returns ssh's destination, and the command for synapsectl there."""
    try:
        known = {host["name"]: host for host in ctx.client.get("/hosts")}
    except NoDaemon:
        known = {}
    if (host := known.get(name)) is not None:
        return host["target"], host["synapsectl"]
    if not re.fullmatch(r"(?:ssh://)?(?:[A-Za-z0-9_.+-]+@)?[A-Za-z0-9_.-]+(?::[0-9]{1,5})?/?", name) or name[0] == "-":
        raise UsageError(f"{name[:80]!r} is no host that is known, and no destination of ssh's")
    return name, "synapsectl"


def _configure_join(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("line", metavar="LINE", nargs="?", help="the invitation; '-' reads it from stdin")
    parser.add_argument("--file", type=from_home, metavar="FILE", help="read it from there")
    parser.add_argument("--json", action="store_true", help="print a JSON document of it")


def _join(args: argparse.Namespace, ctx: CommandContext) -> int:
    from synapsed_fleet.ctl.swap import take_up

    persons_only(ctx)
    with ctx.busy("joining"):
        made = ask_fleet(ctx, "join", line=_line_of(args))
    take_up(ctx)
    ctx.out.either(made, as_json=args.json, line=f"this host is {made['name']} in the fleet")
    ctx.out.note("'synapsectl fleet hosts' shows whom you reach; agents there are NAME@HOST")
    return DONE


def _line_of(args: argparse.Namespace) -> str:
    if (args.line is None) == (args.file is None):
        raise UsageError("give the invitation: its line, '-' for stdin, or --file FILE")
    try:
        if args.file is not None:
            return Path(args.file).read_text(encoding="ascii")
        return sys.stdin.readline(16_384) if args.line == "-" else str(args.line)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the invitation cannot be read: {error}") from None


def _configure_leave(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="where the fleet was created: although it has other hosts")
    parser.add_argument("--json", action="store_true", help="print a JSON document of what was removed")


def _leave(args: argparse.Namespace, ctx: CommandContext) -> int:
    from synapsed_fleet.ctl.swap import take_up
    from synapsed_fleet.ctl.unit import service_of

    persons_only(ctx)
    if ask_fleet(ctx, "leave", force=args.force, dry=True)["broker"]:
        with ctx.busy("stopping the broker"):
            service_of(ctx).remove()
    gone = ask_fleet(ctx, "leave", force=args.force)
    if _daemon_runs(ctx):
        take_up(ctx)
    ctx.out.either(gone, as_json=args.json, line=f"{gone['name'] or 'this host'} is in no fleet now")
    if gone.get("left"):
        ctx.out.note(f"its streams are left at somebody else's broker: {gone['left']}")
    return DONE


def _daemon_runs(ctx: CommandContext) -> bool:
    try:
        ctx.client.get("/healthz")
    except NoDaemon:
        return False
    return True


def _status(args: argparse.Namespace, ctx: CommandContext) -> int:
    daemon = _known_by_the_daemon(ctx)
    if not args.json and daemon["daemon"] is not None:
        for line in daemon_lines(daemon["daemon"]):
            ctx.out.line(line)
        ctx.out.stdout.flush()  # the rest takes a second
    kept = type(ctx.paths).from_environ(ctx.own_environment).state / "fleet"
    told = {**(ask_fleet(ctx, "status") if kept.exists() else NOTHING), **daemon}
    if args.json:
        ctx.out.document(told)
        return DONE
    if told["member"] is None and told["broker"] is None:
        ctx.out.note(
            "this host is in no fleet: 'synapsectl fleet create' begins one, 'synapsectl fleet join' enters one"
        )
        return DONE
    for line in status_lines(told):
        ctx.out.line(line)
    return DONE


def _known_by_the_daemon(ctx: CommandContext) -> dict[str, Any]:
    """Returns the daemon's answer as `daemon`; None if it has no fleet (`problem` has the reason) or does not run."""
    try:
        return {"daemon": ctx.client.get("/fleet")}
    except ApiError as error:
        return {"daemon": None, "problem": str(error)}
    except NoDaemon:
        return {"daemon": None}


def _hosts(args: argparse.Namespace, ctx: CommandContext) -> int:
    found = ctx.client.get("/fleet/hosts")
    none = (
        "no other host has been seen yet: after a join that takes some seconds; 'synapsectl fleet status' says whether "
        "the broker is reached"
    )
    ctx.out.rows_of(found, HOST_HEADINGS, host_row, as_json=args.json, none=none, grows="AGENTS")
    return DONE


def _remove(args: argparse.Namespace, ctx: CommandContext) -> int:
    persons_only(ctx)
    gone = ask_fleet(ctx, "remove", name=args.name)
    if not gone["told"]:
        ctx.out.note(f"no broker was told yet: {gone['reason']}; the one here learns of it when it starts")
    ctx.out.either(gone, as_json=args.json, line=f"{gone['name']} is a member no more: its key is revoked")
    if gone.get("key"):
        ctx.out.note(f"the broker's owner ends its connection: it is the user {gone['key']} of the fleet's account")
    return DONE


def _repair(args: argparse.Namespace, ctx: CommandContext) -> int:
    persons_only(ctx)
    with ctx.busy("comparing the broker with what it should be"):
        told = ask_fleet(ctx, "repair")
    if args.json:
        ctx.out.document(told)
        return DONE
    for line in told["done"]:
        ctx.out.line(line)
    if not told["done"]:
        ctx.out.note("everything at the broker is as it should be")
    return DONE


def _outbox(args: argparse.Namespace, ctx: CommandContext) -> int:
    found = ctx.client.get("/fleet/outbox", {"host": args.host} if args.host else None)
    none = "nothing is under way to other hosts"
    ctx.out.rows_of(found, ("ID", "TO", "KIND", "STATE", "TRIES", "FOR"), _out_row, as_json=args.json, none=none)
    return DONE


def _out_row(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["id"], row["dst"], row["kind"], row["state"], row["attempt"], age(row["since"])


def _quarantine(args: argparse.Namespace, ctx: CommandContext) -> int:
    found = ctx.client.get("/fleet/quarantine")
    none = "nothing that came was refused"
    ctx.out.rows_of(found, ("WHEN", "SUBJECT", "REASON"), _held_row, as_json=args.json, none=none, grows="REASON")
    return DONE


def _held_row(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return age(row["at"]), row["subject"], row["reason"]


def _configure_outbox(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", metavar="HOST", help="only what is for that host")
    parser.add_argument("--json", action="store_true", help="print a JSON array of them")


def _row_verb(what: str, words: str) -> SubVerb:
    def run(args: argparse.Namespace, ctx: CommandContext) -> int:
        persons_only(ctx)
        told = ctx.client.post(f"/fleet/outbox/{args.name}/{what}", {})
        ctx.out.either(told, as_json=args.json, line=f"{args.name}: {words}")
        return DONE

    configure = partial(
        of_one, json="print a JSON document of it", name="its id, see 'synapsectl fleet outbox'", metavar="ID"
    )
    about = "send it again now" if what == "retry" else "give it up: its task fails as undelivered"
    return SubVerb(about, configure, run, ((f"synapsectl fleet outbox {what} 6f1c2d3e", about),))


def _configure_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON document of it")


SUBVERBS = {
    "create": SubVerb(
        "begin a fleet: this host keeps its broker, and is its first member",
        _configure_create,
        _create,
        (
            ("synapsectl fleet create", "the broker is a service beside the daemon's"),
            ("synapsectl fleet create --name box --address box.lan", "as the other hosts find it"),
            (
                "synapsectl fleet create --url tls://nats.example:4222 --account-key fleet.nk",
                "at somebody else's broker",
            ),
        ),
    ),
    "invite": SubVerb(
        "print the line by which a host becomes a member",
        _configure_invite,
        _invite,
        (
            ("synapsectl fleet invite laptop", "a secret, good once, for 15 minutes"),
            ("synapsectl fleet invite nas --over-ssh nas", "and have it join at once"),
        ),
    ),
    "join": SubVerb(
        "become a member, by the line of an invitation",
        _configure_join,
        _join,
        (
            ("synapsectl fleet join -", "paste the line, then Enter"),
            ("synapsectl fleet join --file invitation", "from a file"),
        ),
    ),
    "leave": SubVerb(
        "leave the fleet; where it was created, end it",
        _configure_leave,
        _leave,
        (("synapsectl fleet leave", "its agents stay, and are reached from here alone"),),
    ),
    "status": SubVerb(
        "show this host in the fleet, its broker, and what is under way",
        _configure_json,
        _status,
        (("synapsectl fleet status", "what is not as it should be stands there too"),),
    ),
    "hosts": SubVerb(
        "list the hosts of the fleet, as this one sees them",
        of_all,
        _hosts,
        (("synapsectl fleet hosts", "who is there, and with which agents"),),
    ),
    "remove": SubVerb(
        "take a host out of the fleet: its key is revoked",
        partial(of_one, json="print a JSON document of it"),
        _remove,
        (("synapsectl fleet remove laptop", "its connection ends within a second"),),
    ),
    "broker": BROKER,
    "scale": SCALE,
    "repair": SubVerb(
        "make at the broker what is missing, and correct what differs",
        _configure_json,
        _repair,
        (("synapsectl fleet repair", "after its disk was lost, or somebody changed a setting"),),
    ),
    "outbox": SubVerb(
        "list what is under way to other hosts, send it again, or give it up",
        examples=(
            ("synapsectl fleet outbox", "what has no receipt yet"),
            ("synapsectl fleet outbox retry 6f1c2d3e", "send it again now"),
        ),
        subverbs={
            "list": SubVerb(
                "list what has no receipt yet",
                _configure_outbox,
                _outbox,
                (("synapsectl fleet outbox list --host laptop", "what waits for laptop"),),
            ),
            "retry": _row_verb("retry", "is sent again"),
            "cancel": _row_verb("cancel", "is given up"),
        },
        default="list",
    ),
    "files": SubVerb(
        "list and get the files that go to other hosts, and that came from them",
        examples=(
            ("synapsectl fleet files", "how far each is, and what holds it up"),
            ("synapsectl fleet files get box/0123456789abcdef0123456789abcdef", "copy one that has come here"),
        ),
        subverbs=FILES,
        default="list",
    ),
    "quarantine": SubVerb(
        "list what came and was refused: unsigned, forged, unreadable",
        of_all,
        _quarantine,
        (("synapsectl fleet quarantine", "the last thousand"),),
    ),
}
