"""`synapsectl fleet broker …` and `fleet scale`: the broker of this host, and those of other hosts."""

import argparse
from collections.abc import Mapping
from functools import partial
from typing import Any

from synapsectl.context import CommandContext
from synapsectl.errors import DONE, REFUSED, CtlError
from synapsectl.parsing import SubVerb, of_one
from synapsed_fleet.ctl.asking import ask_fleet, persons_only
from synapsed_fleet.ctl.showing import status_lines


def _configure_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON document of it")


def _broker_status(args: argparse.Namespace, ctx: CommandContext) -> int:
    status = ask_fleet(ctx, "status")
    broker = status["broker"]
    if args.json:
        ctx.out.document({"broker": broker, "streams": status["streams"]})
        return DONE if broker and broker["healthy"] else REFUSED
    if broker is None:
        ctx.out.note("no broker runs on this host; 'synapsectl fleet status' says where it is")
        return REFUSED
    for line in status_lines({**status, "member": None, "daemon": None, "hosts": None}):
        ctx.out.line(line)
    return DONE if broker["healthy"] else REFUSED


def _broker_restart(args: argparse.Namespace, ctx: CommandContext) -> int:
    from synapsed_fleet.ctl.unit import service_of

    persons_only(ctx)
    status = ask_fleet(ctx, "status")
    broker = status["broker"] or status["given"]
    if broker is None:
        raise CtlError("no broker is kept on this host: run it on one that keeps a broker")
    if behind := _behind(status):
        raise CtlError(
            f"{behind} is not up to date with the others yet: stopping a broker now could lose the only current copy"
        )
    service = service_of(ctx)
    with ctx.busy("restarting the broker"):
        if service.is_installed() or service.name == "process":
            service.restart()
        else:
            service.install()
        done = ask_fleet(ctx, "settle", not_pid=broker.get("server_pid") if broker["pid"] else None)
    ctx.out.either(done, as_json=args.json, line="the broker runs")
    return DONE


def _behind(status: Mapping[str, Any]) -> str | None:
    """Returns the name of a broker whose replica of a stream is behind its leader, None if all are current."""
    copies = [one for stream in status["streams"] or () for one in stream["replicas"]]
    return next((one["name"] for one in copies if not one["current"]), None)


def _configure_add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="HOST", help="a member of the fleet")
    parser.add_argument(
        "--address", required=True, metavar="WHERE", help="a name or address at which all hosts find it"
    )
    parser.add_argument("--port", type=int, metavar="N", help="the broker's port for hosts (default: 4222)")
    parser.add_argument("--route-port", type=int, metavar="N", help="and for the other brokers (default: 2000 more)")
    parser.add_argument("--json", action="store_true", help="print a JSON document of it")


def _add(args: argparse.Namespace, ctx: CommandContext) -> int:
    persons_only(ctx)
    asked = {"address": args.address, "port": args.port, "route_port": args.route_port}
    answer = ask_fleet(ctx, "broker-add", name=args.name, **asked)
    names = ", ".join(one["host"] for one in answer["brokers"])
    ctx.out.either(answer, as_json=args.json, line=f"brokers are to be on {names}")
    if len(answer["brokers"]) < 3:
        ctx.out.note("three are needed: add another one")
    else:
        ctx.out.note(f"on {args.name}: 'synapsectl fleet broker start'; with three here: 'synapsectl fleet scale 3'")
    return DONE


def _configure_start(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--listen", metavar="ADDRESS:PORT", help="where it listens (default: every address)")
    parser.add_argument("--json", action="store_true", help="print a JSON document of it")


def _start(args: argparse.Namespace, ctx: CommandContext) -> int:
    from synapsed_fleet.ctl.unit import service_of

    persons_only(ctx)
    answer = ask_fleet(ctx, "broker-take", listen=args.listen)
    service = service_of(ctx)
    runs = (ask_fleet(ctx, "status")["broker"] or {}).get("pid")
    with ctx.busy("starting the broker"):
        if runs:
            service.restart()
        else:
            service.install()
    ctx.out.either(answer, as_json=args.json, line=f"a broker is kept here, at {answer['listen']}")
    return DONE


def _stop(args: argparse.Namespace, ctx: CommandContext) -> int:
    from synapsed_fleet.ctl.unit import service_of

    persons_only(ctx)
    status = ask_fleet(ctx, "status")
    if status["admin"]:
        raise CtlError("the fleet was created here: 'synapsectl fleet leave' ends its broker")
    if status["broker"] is None:
        raise CtlError("no broker is kept on this host: run it on one that keeps a broker")
    with ctx.busy("stopping the broker"):
        service_of(ctx).remove()
    ctx.out.either({"stopped": True}, as_json=args.json, line="no broker is kept here any more")
    return DONE


def _remove(args: argparse.Namespace, ctx: CommandContext) -> int:
    persons_only(ctx)
    answer = ask_fleet(ctx, "broker-remove", name=args.name)
    ctx.out.either(answer, as_json=args.json, line=f"{args.name} keeps no broker of the fleet any more")
    ctx.out.note(f"on {args.name}, if it is there: 'synapsectl fleet broker stop'")
    return DONE


def _configure_scale(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("replicas", type=int, choices=(1, 3), metavar="1|3", help="how many brokers there are to be")
    parser.add_argument("--json", action="store_true", help="print a JSON document of it")


def _scale(args: argparse.Namespace, ctx: CommandContext) -> int:
    from synapsed_fleet.ctl.unit import service_of

    persons_only(ctx)
    before = ask_fleet(ctx, "status")["broker"]
    if before is None:
        raise CtlError("this is done on the host where the fleet was created: run it there")
    with ctx.busy("copying what the broker has"):
        answer = ask_fleet(ctx, "scale", replicas=args.replicas)
    if not answer["again"]:  # else it was done before, and only the streams may be missing
        with ctx.busy("starting the broker again"):
            service_of(ctx).restart()
    with ctx.busy("setting up the streams at the brokers"):
        answer["done"] = ask_fleet(ctx, "settle", not_pid=None if answer["again"] else before["server_pid"])["done"]
    many = "three brokers" if args.replicas == 3 else "one broker"
    ctx.out.either(answer, as_json=args.json, line=f"the fleet has {many}, at {' or '.join(answer['urls'])}")
    if args.replicas == 1 and not answer["again"]:
        ctx.out.note("on the two other hosts: 'synapsectl fleet broker stop'")
    return DONE


BROKER = SubVerb(
    "look after the brokers: the one that this host keeps, and those of other hosts",
    examples=(
        ("synapsectl fleet broker status", "is it healthy"),
        ("synapsectl fleet broker add attic --address attic.lan", "attic is to keep one of three"),
        ("synapsectl fleet broker restart", "hosts wait, and lose nothing"),
    ),
    subverbs={
        "status": SubVerb(
            "show whether it is healthy, and what it keeps",
            _configure_json,
            _broker_status,
            (("synapsectl fleet broker status", "exit code 6 where it is not healthy"),),
        ),
        "restart": SubVerb(
            "start the broker again",
            _configure_json,
            _broker_restart,
            (("synapsectl fleet broker restart", "hosts wait, and lose nothing"),),
        ),
        "add": SubVerb(
            "name another host that is to keep a broker",
            _configure_add,
            _add,
            (("synapsectl fleet broker add attic --address attic.lan", "where the fleet was created; then another"),),
        ),
        "start": SubVerb(
            "keep one of three brokers on this host, which was named for it",
            _configure_start,
            _start,
            (("synapsectl fleet broker start", "on attic; again where the brokers have changed"),),
        ),
        "stop": SubVerb(
            "keep no broker on this host any more",
            _configure_json,
            _stop,
            (("synapsectl fleet broker stop", "after 'fleet broker remove' or 'fleet scale 1'"),),
        ),
        "remove": SubVerb(
            "take a host out of the brokers, once another was added",
            partial(of_one, json="print a JSON document of it"),
            _remove,
            (("synapsectl fleet broker remove attic", "its copies are made again at another one"),),
        ),
    },
)
SCALE = SubVerb(
    "have three brokers instead of one, or one instead of three",
    _configure_scale,
    _scale,
    (("synapsectl fleet scale 3", "the loss of any one of them is a pause of seconds"),),
)
