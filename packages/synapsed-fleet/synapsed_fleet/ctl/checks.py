"""Checks of `synapsectl doctor` about the fleet of this host: membership, the broker, messages under way."""

import os
from collections.abc import Iterator
from typing import Any, Final

from synapsectl.ages import age
from synapsectl.checkup.finding import NOTE, OK, WRONG, Finding
from synapsectl.context import CommandContext
from synapsectl.errors import ApiError, CtlError, NoDaemon
from synapsectl.service.settings import ServiceSettings
from synapsed_fleet.ctl.asking import ask_fleet
from synapsed_fleet.ctl.showing import on_its_way
from synapsed_fleet.ctl.unit import service_of

FLOOD: Final = 1000
"""Messages of one host, waiting for this one, from which on a note is shown."""
_STATUS = {"ok": OK, "note": NOTE, "wrong": WRONG}


def look(ctx: CommandContext, _: ServiceSettings) -> Iterator[Finding]:
    """Yields the findings about the fleet; on a host without files of a fleet, only the daemon's."""
    if not any(os.access(place, os.F_OK) for place in (ctx.paths.config / "fleet.toml", ctx.paths.state / "fleet")):
        yield from _without_files(ctx)
        return
    try:
        found = ask_fleet(ctx, "check")["found"]
    except CtlError as error:
        yield Finding("fleet", WRONG, str(error), "synapsectl fleet status")
        return
    for one in found:
        yield Finding(one["what"], _STATUS.get(one["status"], WRONG), one["detail"], one["mend"])
    if (ctx.paths.state / "fleet" / "broker" / "broker.json").exists():
        yield _unit(ctx)
    yield from _daemon(ctx)


def _without_files(ctx: CommandContext) -> Iterator[Finding]:
    """Yields the daemon's finding about a fleet that is configured, but has no files here."""
    try:
        ctx.client.get("/fleet")
    except NoDaemon:
        return
    except ApiError as error:
        if error.details.get("problem"):
            yield Finding("fleet", WRONG, str(error), "synapsectl fleet join -, or remove [fleet]")


def _unit(ctx: CommandContext) -> Finding:
    service = service_of(ctx)
    if service.name == "process":
        detail = "no service manager is here: the machine's next start does not bring it"
        return Finding(
            "broker's unit", NOTE, detail, "put 'synapsed broker' under what this machine starts things with"
        )
    if not service.is_installed():
        return Finding("broker's unit", WRONG, f"not installed ({service.name})", "synapsectl fleet broker restart")
    return Finding("broker's unit", OK, f"installed ({service.name}); {service.how_to_log()}")


def _daemon(ctx: CommandContext) -> Iterator[Finding]:
    """Yields the findings that only the daemon knows."""
    try:
        told: dict[str, Any] = ctx.client.get("/fleet")
    except NoDaemon:
        return
    except ApiError as error:
        yield Finding("fleet's connection", WRONG, str(error), "synapsectl shutdown --keep-agents, then any verb")
        return
    if not told["connected"]:
        since = f" for {age(told['since'])}" if told["since"] else ""
        yield Finding("fleet's connection", WRONG, f"none{since}: {told['problem']}", "synapsectl fleet status")
    else:
        waiting = sum(told["outbox"].values())
        oldest = f", the oldest for {age(told['oldest'])}" if told["oldest"] else ""
        yield Finding("fleet's connection", OK, f"to {told['broker']}; {waiting} without a receipt{oldest}")
    for file in told.get("files") or ():
        if file["problem"]:
            yield Finding("fleet's files", NOTE, on_its_way(file), "synapsectl fleet files")
    for host, count in (told.get("mail") or {}).items():
        if count >= FLOOD:
            detail = f"{count} messages of {host} wait for this host; what others send is taken beside them"
            mend = f"if they should not: end what sends them on {host}, or 'synapsectl fleet remove {host}'"
            yield Finding("fleet's mail", NOTE, detail, mend)
    if told["quarantined"]:
        detail = f"{told['quarantined']} messages were refused: unsigned, forged or not to be read"
        yield Finding("fleet's quarantine", NOTE, detail, "synapsectl fleet quarantine")
