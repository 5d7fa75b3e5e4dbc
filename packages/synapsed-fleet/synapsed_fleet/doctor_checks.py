"""Checks of `synapsectl doctor` about the fleet: each subject, its state, and how to repair it. Nothing is changed."""

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from synapsed.errors import SynapsedError
from synapsed.shared.counts import counted
from synapsed_fleet import external_broker, tls
from synapsed_fleet.admin import administering, opened
from synapsed_fleet.broker import BrokerFolder, ask_health
from synapsed_fleet.fleet_config import DaemonSettings
from synapsed_fleet.member_files import Home, Identity
from synapsed_fleet.natsserver import INSTALL, NEEDED, find, version_in
from synapsed_fleet.watchdog import FREE_WARN

OK: Final = "ok"
NOTE: Final = "note"
WRONG: Final = "wrong"

EXPIRES_DAYS: Final = 60
DAY_S: Final = 86_400
GIB: Final = 1 << 30
TOLD_MAX: Final = 5

type Found = dict[str, str]


def found(what: str, status: str, detail: str, mend: str = "") -> Found:
    return {"what": what, "status": status, "detail": detail, "mend": mend}


async def look(home: Home, config: DaemonSettings) -> list[Found]:
    """Runs all checks, each after those that it needs. Returns an empty list if there is no fleet."""
    if config.fleet is None and not home.is_member() and not BrokerFolder(home.broker).settings.exists():
        return []
    told = []
    if BrokerFolder(home.broker).settings.exists():
        told += await asyncio.to_thread(lambda: list(_broker(home)))
    try:
        mine = home.identity()
    except SynapsedError as error:
        return [*told, found("fleet", WRONG, error.message, "synapsectl fleet join -")]
    told += list(_membership(mine, config))
    told.append(await _reached(mine, config))
    if home.keyring.exists() and home.keyring.members().plan.account:
        told += [await _given(home), _answers(home)]
    if home.keyring.exists() and told[-1]["status"] == OK:
        told += await _kept(home, config)
    return told


def _membership(mine: Identity, config: DaemonSettings) -> Iterator[Found]:
    if config.fleet is None:
        mend = "synapsectl fleet join - with a new invitation, or synapsectl fleet leave"
        yield found(
            "fleet", WRONG, f"this host has credentials as {mine.name}, and no [fleet] in its configuration", mend
        )
        return
    if config.fleet.name != mine.name:
        detail = f"[fleet] name is {config.fleet.name!r}, the credentials are {mine.name!r}'s"
        yield found("fleet", WRONG, detail, f'write name = "{mine.name}" under [fleet], or join again')
        return
    days = (mine.expires - time.time()) / DAY_S if mine.expires else None
    if days is not None and days < 0:
        detail = f"the credentials of {mine.name} expired {-days:.0f} days ago by the clock of this host"
        yield found(
            "fleet", WRONG, detail, f"see that the clock is right; else 'synapsectl fleet invite {mine.name} --again'"
        )
    elif days is not None and days < EXPIRES_DAYS:
        detail = f"the credentials of {mine.name} are valid for {days:.0f} days, and were not renewed"
        yield found("fleet", NOTE, detail, "see that the daemon reaches the broker: synapsectl fleet status")
    else:
        yield found("fleet", OK, f"a member as {mine.name}")


def _broker(home: Home) -> Iterator[Found]:
    folder = BrokerFolder(home.broker)
    try:
        server = find()
    except SynapsedError as error:
        yield found("broker's program", WRONG, error.message, INSTALL)
    else:
        yield found("broker's program", OK, f"{server.path}, {server.release}")
    health, pid = ask_health(folder), folder.pid()
    log = folder.path / "log" / "nats-server.log"
    if pid is None:
        yield found("broker", WRONG, "it does not run", "synapsectl fleet broker restart")
    elif not health.healthy:
        detail = f"it is not healthy: {health.told or 'it does not answer'}; see {log}"
        yield found("broker", WRONG, detail, "make room where its disk is full; the watchdog starts it again then")
    else:
        yield found("broker", OK, f"healthy, kept by pid {pid}")
    free = f"{health.free / GIB:.1f} GiB free at {folder.path}"
    if health.free < FREE_WARN:
        yield found("broker's disk", WRONG, free, "make room: a broker whose disk is full takes nothing")
    else:
        yield found("broker's disk", OK, free)
    days = tls.days_left(folder.text("cert.pem"), now=datetime.now(UTC))
    if days < EXPIRES_DAYS:
        detail = f"it is valid for {days:.0f} days" if days > 0 else f"it expired {-days:.0f} days ago"
        yield found(
            "broker's certificate", WRONG, detail, "synapsectl fleet broker restart, where the fleet's keys are"
        )
    else:
        yield found("broker's certificate", OK, f"valid for {days:.0f} days")


async def _reached(mine: Identity, config: DaemonSettings) -> Found:
    urls = list(config.fleet.urls) if config.fleet else []
    if not urls:
        return found("fleet's broker", WRONG, "no address of one is known", "write urls under [fleet]")
    try:
        async with opened(urls, mine.options(urls)) as client:
            version = str(client.connected_server_version)
    except SynapsedError as error:
        mend = "see that its host is on and its port is open from here; 'synapsectl fleet broker status' there"
        return found("fleet's broker", WRONG, error.message, mend)
    if (there := version_in(version)) is not None and there < NEEDED:
        needed = ".".join(map(str, NEEDED))
        return found("fleet's broker", WRONG, f"it is {version.strip('<>')}", f"have it renewed: {needed} or newer")
    return found("fleet's broker", OK, f"reached at {' or '.join(urls)}, {version.strip('<>')}")


async def _given(home: Home) -> Found:
    """Checks a broker that another owner keeps."""
    try:
        detail = await external_broker.checked(home.keyring)
    except SynapsedError as error:
        return found("somebody else's broker", WRONG, error.message, "ask its owner, or synapsectl fleet repair")
    return found("somebody else's broker", OK, f"{detail}; {external_broker.OWNERS}")


def _answers(home: Home) -> Found:
    """Checks the process that answers invitations and renewals; it runs here, wherever the broker is."""
    pid = BrokerFolder(home.broker).pid()
    if pid is None:
        return found("fleet's registrar", WRONG, "nobody answers hosts that join", "synapsectl fleet broker restart")
    return found("fleet's registrar", OK, f"answers hosts that join, as pid {pid}")


async def _kept(home: Home, config: DaemonSettings) -> list[Found]:
    members = home.keyring.members()
    urls = list(config.fleet.urls) if config.fleet else []
    try:
        async with administering(home.keyring, urls) as admin:
            replicas = BrokerFolder(home.broker).replicas(members.plan.replicas)
            wrong = await admin.wrong(replicas=replicas, store=members.plan.store, hosts=sorted(members.hosts))
    except SynapsedError as error:
        return [found("fleet's streams", WRONG, error.message, "synapsectl fleet repair")]
    if not wrong:
        return [
            found("fleet's streams", OK, f"as they should be, with the mail of {counted(len(members.hosts), 'host')}")
        ]
    rest = f", and {len(wrong) - TOLD_MAX} more" if len(wrong) > TOLD_MAX else ""
    return [found("fleet's streams", WRONG, "; ".join(wrong[:TOLD_MAX]) + rest, "synapsectl fleet repair")]


async def check(home: Home, config: DaemonSettings, _body: Any) -> dict[str, Any]:
    """Implements `synapsed fleet check`."""
    return {"found": await look(home, config)}
