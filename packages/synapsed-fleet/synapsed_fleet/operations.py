"""Performs each operation of `synapsectl fleet …`, which calls `synapsed fleet WHAT`.

The person's tool imports no module of the daemon, and passes secrets on: a command line would show them, so requests
and answers go over stdin and stdout.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import psutil

from synapsed.errors import ConfigError, InvalidRequest, RemoteRefused, SynapsedError, Unreachable
from synapsed.interfaces import refuse_reserved_host
from synapsed_fleet import broker_cluster, tls
from synapsed_fleet.addresses import local_url, reachable
from synapsed_fleet.admin import administering, opened, revoke
from synapsed_fleet.broker import BrokerFolder, ask_health
from synapsed_fleet.broker_permissions import JOIN
from synapsed_fleet.dial import options
from synapsed_fleet.doctor_checks import check
from synapsed_fleet.external_broker import GivenBroker, create_given, end_given
from synapsed_fleet.fleet_config import HOST_NAME, DaemonSettings, FleetBroker, bytes_of, is_url
from synapsed_fleet.founding import enrol_first
from synapsed_fleet.invitation import VALID_S as INVITATION_S
from synapsed_fleet.invitation import Invitation, asked, authority_at
from synapsed_fleet.keyring import INVITATIONS_MAX, Keyring, PendingInvitation, Plan
from synapsed_fleet.member_files import Home
from synapsed_fleet.natsserver import find
from synapsed_fleet.nkey import KeyPair
from synapsed_fleet.streams import MEMBERS_MAX, STORE_MAX, STORE_MIN
from synapsed_fleet.trust import CLOCK_S, NotTrusted, Trust, lasting

SETTLE_S: Final = 80.0
"""Seconds for a broker that has just been started: it reads its store first."""
POLL_S: Final = 0.2

type Told = dict[str, Any]


async def create(home: Home, config: DaemonSettings, body: Mapping[str, Any]) -> Told:
    """Makes a fleet, and this host its first member. `name`; `max_store`.

    Either its broker is on this host: `addresses`, where other hosts find it; `listen`. Or another owner keeps the
    broker (`external_broker.create_given`): `urls`, `account_key`, `account`, `ca`. A second call only reports that the
    fleet exists, and takes other `addresses`: the steps that follow can be done again.
    """
    if home.keyring.exists():
        if home.is_member():
            return _created_before(home, config, body)
        home.keyring.destroy()  # it was interrupted before it had a member
    if home.is_member():
        mine = home.identity()
        raise ConfigError(f"this host is {mine.name} in a fleet already: 'synapsectl fleet leave' ends that")
    name = _new_name(body)
    if body.get("urls"):
        return await create_given(home, name, GivenBroker.read(body))
    server = find()
    broker = _broker(config, body)
    addresses = list(body.get("addresses") or reachable(psutil.net_if_addrs(), broker.listen))
    urls = _urls_at(addresses, broker.listen)
    folder = BrokerFolder(home.broker)
    folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    wanted = bytes_of(broker.max_store) if broker.max_store else min(folder.free() // 2, STORE_MAX)
    if wanted < STORE_MIN:
        raise ConfigError(f"a broker's store needs 256 MiB, and has {wanted >> 20} MiB: make room, or move the state")
    ring = Keyring.create(home.keyring.folder, name, Plan(tuple(urls), wanted, 1))
    _prepare_broker(folder, ring, name, addresses)
    written: dict[str, Any] = {"name": name, "urls": [local_url(broker.listen)], "broker": {"listen": broker.listen}}
    if broker.max_store:
        written["broker"]["max_store"] = broker.max_store
    enrol_first(home, ring, name, written)
    return {"name": name, "urls": urls, "again": False, "server": server.path, "version": server.release}


def _created_before(home: Home, config: DaemonSettings, body: Mapping[str, Any]) -> Told:
    """Reports a fleet that exists. With `addresses`, the broker has moved: invitations have these from then on."""
    ring = home.keyring
    there = _broker(config, {}).listen
    if body.get("listen") not in (None, "", there):
        raise ConfigError(
            f"the broker here listens at {there}: to have it listen elsewhere, set 'listen' under [fleet.broker] and "
            "'urls' under [fleet] in config.toml, then 'synapsectl fleet create' without --listen"
        )
    if body.get("addresses"):
        urls = _urls_at(body["addresses"], _broker(config, {}).listen)
        with ring.changing() as members:
            members.plan = replace(members.plan, urls=tuple(urls))
    return {"name": home.identity().name, "urls": list(ring.members().plan.urls), "again": True}


def _urls_at(addresses: Sequence[str], listen: str) -> list[str]:
    """Returns the URLs of a broker at these addresses, for the hosts. Raises InvalidRequest."""
    port = int(listen.rpartition(":")[2])
    urls = [f"tls://{f'[{one}]' if ':' in one else one}:{port}" for one in addresses]
    if wrong := [url for url in urls if not is_url(url)]:
        raise InvalidRequest(f"{wrong[0]!r} is no address where a host can be reached")
    return urls


async def settle(home: Home, config: DaemonSettings, body: Mapping[str, Any]) -> Told:
    """Waits until the broker, which was started here or belongs to another owner, serves, and makes its streams and
    consumers; `not_pid` is the server that must end first. Raises Unreachable."""
    folder = BrokerFolder(home.broker)
    ring, url = home.keyring, local_url(_broker(config, body).listen)
    until = time.monotonic() + float(body.get("seconds") or SETTLE_S)
    while True:
        members = ring.members()
        try:
            _given_way(folder, body.get("not_pid"))
            async with administering(ring, members.plan.urls if members.plan.account else [url]) as admin:
                replicas, store = folder.replicas(members.plan.replicas), members.plan.store
                moved = await folder.unpack(admin, replicas=replicas, store=store)
                done = await admin.ensure(replicas=replicas, store=store, hosts=sorted(members.hosts))
                await admin.publish_fleet(ring.account_token)
                await admin.publish_brokers(members.plan.urls)
                return {"done": [*moved, *done]}
        except (Unreachable, RemoteRefused) as error:
            if time.monotonic() > until:
                log = folder.path / "log" / "nats-server.log"
                raise type(error)(f"{error.message}; what the broker says is in {log}") from None
        await asyncio.sleep(POLL_S)


def _given_way(folder: BrokerFolder, pid: int | None) -> None:
    """Raises Unreachable while the server `pid` has no successor."""
    if pid and folder.server_pid() in (None, pid):
        raise Unreachable("the broker has not started again yet", sent=False)


def invite(home: Home, config: DaemonSettings, body: Mapping[str, Any]) -> Told:
    """Makes an invitation for the host `name`. `again`: a host of that name is a member, and its key is revoked once
    the new one has joined. `line` of the answer is a secret."""
    name, ring, now = _new_name(body), home.keyring, int(time.time())
    pair = KeyPair.generate("user")
    fleet, operator = ring.pair("account").public, ring.pair("operator").public
    with ring.changing() as members:
        members.invitations = {who: one for who, one in members.invitations.items() if one.expires > now}
        if name in members.hosts and not body.get("again"):
            raise ConfigError(
                f"{name} is a member already: 'synapsectl fleet remove {name}', or '--again' where it has lost its key"
            )
        if len(members.hosts) >= MEMBERS_MAX or len(members.invitations) >= INVITATIONS_MAX:
            raise ConfigError(f"a fleet has at most {MEMBERS_MAX} hosts, and {INVITATIONS_MAX} valid invitations")
        members.invitations[name] = PendingInvitation(pair.public, now + INVITATION_S)
        plan = members.plan
    urls, until = plan.urls, now + INVITATION_S
    token = ring.entry_token(JOIN, name, pair.public, issued=now, expires=until)
    token = token or ring.join_token(name, pair.public, issued=now, expires=until)
    fingerprint = tls.fingerprint(ring.certificate)
    made = Invitation(name, urls, fingerprint, fleet, operator, token, pair, bool(plan.account), plan.ca)
    runs = BrokerFolder(home.broker).pid() is not None
    return {
        "name": name,
        "line": made.line(),
        "expires": now + INVITATION_S,
        "urls": list(urls),
        "broker_runs": runs,
        "ssh": _ssh(config),
    }


def _ssh(config: DaemonSettings) -> list[str]:
    """Returns how hosts are reached: by `[hosts]` of the configuration, if its part is enabled."""
    hosts: Any = getattr(config, "hosts", None)
    return ["ssh"] if hosts is None else list(hosts.ssh)


async def join(home: Home, config: DaemonSettings, body: Mapping[str, Any]) -> Told:
    """Makes this host a member by the invitation `line`."""
    if home.is_member():
        mine = home.identity()
        raise ConfigError(f"this host is {mine.name} in a fleet already: 'synapsectl fleet leave' ends that")
    invitation = Invitation.parse(str(body.get("line") or ""))
    refuse_reserved_host(invitation.name)
    _in_time(invitation, time.time())
    if invitation.given:
        ca = invitation.ca or None
    else:
        ca = await asyncio.to_thread(authority_at, invitation.urls, invitation.fingerprint)
    pair = KeyPair.generate("user")
    answer = await _ask_to_join(invitation, pair, ca)
    try:
        trust = Trust(
            fleet=invitation.fleet, operator=invitation.operator, account_token=str(answer.get("account_jwt"))
        )
        member = trust.host(str(answer.get("jwt")), now=time.time())
    except NotTrusted as error:
        raise RemoteRefused(f"the answer to the invitation is not this fleet's: {error}") from None
    if (member.host, member.key) != (invitation.name, pair.public):
        raise RemoteRefused("the answer to the invitation is for another host")
    told = [url for url in answer.get("urls") or () if isinstance(url, str) and is_url(url)]
    urls = list(dict.fromkeys([*invitation.urls, *told]))
    if invitation.given and not isinstance(answer.get("entry"), str):
        raise RemoteRefused(
            "the answer to the invitation has no credentials with which the broker would accept this host"
        )
    home.configure({"name": member.host, "urls": urls})
    home.keep(token=str(answer["jwt"]), pair=pair, ca=ca, trust=trust, entry=answer.get("entry"))
    return {"name": member.host, "urls": urls, "expires": member.expires}


def _in_time(invitation: Invitation, now: float) -> None:
    """Raises InvalidRequest if the invitation is not valid now by the clock of this host, before it is used."""
    if now > invitation.expires:
        until = datetime.fromtimestamp(invitation.expires, UTC)
        raise InvalidRequest(
            f"the invitation expired at {until:%Y-%m-%d %H:%M} UTC, {lasting(now - invitation.expires)} ago by the "
            f"clock of this host: 'synapsectl fleet invite {invitation.name}' again, or set the clock right"
        )
    if now < invitation.issued - CLOCK_S:
        raise InvalidRequest(
            f"the clock of this host is at least {lasting(invitation.issued - now)} behind that of who invites: set it "
            "right and join with the same invitation, which is not used yet"
        )


async def _ask_to_join(invitation: Invitation, pair: KeyPair, ca: str | None) -> Told:
    name = invitation.name
    dialled = options(
        invitation.urls,
        token=invitation.token,
        pair=invitation.pair,
        ca=ca,
        inbox=f"_JOIN_{name}",
        name="synapsed join",
        given=invitation.given,
    )
    said = {**asked(invitation, pair), "at": int(time.time())}
    async with opened(invitation.urls, dialled) as client:
        return await broker_cluster.request(client.request, f"syn.adm.join.{name}", said)


async def remove(home: Home, config: DaemonSettings, body: Mapping[str, Any]) -> Told:
    """Revokes the host `name`: its connections end at once, and its mail is deleted."""
    name, ring, now = _name(body), home.keyring, int(time.time())
    if home.is_member() and home.identity().name == name:
        raise ConfigError(f"{name} is this host: 'synapsectl fleet leave' does that")
    with ring.changing() as members:
        if name not in members.hosts and name not in members.invitations:
            raise InvalidRequest(f"{name} is no member of this fleet: 'synapsectl fleet hosts' lists them")
        gone = members.hosts.pop(name, None)
        invited = members.invitations.pop(name, None)
        for key in (gone and gone.key, invited and invited.key):
            if key:
                members.revoked[key] = now
        urls = _urls(home, config, members.plan)
    if not members.plan.account:
        BrokerFolder(home.broker).keep_account(ring.account_token)
    told: Told = {"name": name, "told": True, "reason": None}
    if members.plan.account and gone is not None:  # the broker's owner can end its connection
        told["key"] = gone.key
    try:
        await revoke(ring, urls, ring.account_token)
        async with administering(ring, urls) as admin:
            await admin.publish_fleet(ring.account_token)
            await admin.forget(name)
    except Unreachable as error:
        return {**told, "told": False, "reason": error.message}
    return told


async def leave(home: Home, config: DaemonSettings, body: Mapping[str, Any]) -> Told:
    """Removes the fleet's files here, and the broker's store. On the host where the fleet was created that ends the
    fleet, and needs `force` while it has other hosts. `dry`: only checks that it may be done."""
    name = home.identity().name if home.is_member() else None
    if home.keyring.exists():
        others = sorted(set(home.keyring.members().hosts) - {name})
        if others and not body.get("force"):
            raise ConfigError(
                f"{', '.join(others[:5])}{' …' if len(others) > 5 else ''} would be without their fleet: remove them "
                "first, or '--force'"
            )
    elif name is None and not home.config_file.exists() and not home.broker.exists():
        raise ConfigError("this host is in no fleet")
    broker = BrokerFolder(home.broker)
    if body.get("dry"):
        return {"name": name, "broker": home.broker.exists()}
    if (pid := broker.pid()) is not None:
        raise ConfigError(f"the broker still runs here, kept by pid {pid}: end it first")
    left = None
    if home.keyring.exists():
        left = await end_given(home.keyring)
        home.keyring.destroy()
    gone = [str(path) for path in home.forget()]
    if home.broker.exists():
        gone.append(str(home.broker))
        broker.destroy()
    return {"name": name, "removed": gone, "left": left}


async def status(home: Home, config: DaemonSettings, body: Mapping[str, Any]) -> Told:
    """Returns the facts that are known here without the daemon: `member`, `broker`, and with the fleet's keys `hosts`
    and `streams`."""
    told: Told = {"member": None, "broker": None, "admin": home.keyring.exists(), "hosts": None, "streams": None}
    told["given"] = None
    if home.is_member():
        mine = home.identity()
        told["member"] = {
            "name": mine.name,
            "urls": list(config.fleet.urls) if config.fleet else [],
            "fleet": mine.trust.fleet,
            "key": mine.pair.public,
            "expires": mine.expires,
        }
    folder = BrokerFolder(home.broker)
    if folder.settings.exists():
        told["broker"] = await asyncio.to_thread(_broker_state, folder, config)
    if home.keyring.exists():
        members = home.keyring.members()
        told["hosts"] = [
            {"name": name, "key": one.key, "issued": one.issued, "expires": one.expires}
            for name, one in sorted(members.hosts.items())
        ]
        told["replicas"] = members.plan.replicas
        if members.plan.account:
            told["given"] = {"account": members.plan.account, "pid": folder.pid()}
        told["urls"] = list(members.plan.urls)
        with contextlib.suppress(SynapsedError):
            async with administering(home.keyring, _urls(home, config, members.plan)) as admin:
                told["streams"] = await admin.state()
    return told


async def repair(home: Home, config: DaemonSettings, body: Mapping[str, Any]) -> Told:
    """Makes missing streams and consumers at the broker, and corrects those that differ. `[fleet.broker] max_store`
    applies from then on."""
    ring = home.keyring
    with ring.changing() as members:
        broker = config.fleet.broker if config.fleet else None
        if broker is not None and broker.max_store:
            members.plan = replace(members.plan, store=bytes_of(broker.max_store))
    members = ring.members()
    urls = _urls(home, config, members.plan)
    await revoke(ring, urls, ring.account_token)
    replicas = BrokerFolder(home.broker).replicas(members.plan.replicas)
    async with administering(ring, urls) as admin:
        done = await admin.ensure(replicas=replicas, store=members.plan.store, hosts=sorted(members.hosts))
        await admin.publish_fleet(ring.account_token)
    return {"done": done}


def _broker_state(folder: BrokerFolder, config: DaemonSettings) -> Told:
    settings = (config.fleet.broker if config.fleet else None) or FleetBroker()
    health = ask_health(folder)
    try:
        server: str | None = find().release
    except SynapsedError as error:
        server = None
        problem = error.message
    else:
        problem = ""
    return {
        "name": folder.read()["name"],
        "pid": folder.pid(),
        "server_pid": folder.server_pid(),
        "listen": settings.listen,
        "healthy": health.healthy,
        "says": None if health.healthy else health.told,
        "free": health.free,
        "server": server,
        "problem": problem,
        "certificate_days": round(tls.days_left(folder.text("cert.pem"), now=datetime.now(UTC))),
        "log": str(folder.path / "log" / "nats-server.log"),
    }


def _prepare_broker(folder: BrokerFolder, ring: Keyring, name: str, addresses: Sequence[str]) -> None:
    names = ["localhost", "127.0.0.1", "::1", *addresses]
    folder.prepare(
        name=name,
        tokens={"operator": ring.operator_token, "system": ring.system_token, "account": ring.account_token},
        certificate=tls.make_broker(ring.authority, names, now=datetime.now(UTC)),
        authority=ring.certificate,
    )


def _broker(config: DaemonSettings, body: Mapping[str, Any]) -> FleetBroker:
    written = (config.fleet.broker if config.fleet else None) or FleetBroker()
    given = {key: body[key] for key in ("listen", "max_store") if body.get(key)}
    try:
        return FleetBroker.model_validate(written.model_dump() | given)
    except ValueError as error:
        raise InvalidRequest(f"listen or max_store: {str(error).splitlines()[-2].strip()}") from None


def _urls(home: Home, config: DaemonSettings, plan: Plan) -> list[str]:
    """Returns the addresses of a broker for the admin: this host's, then those of others."""
    own = list(config.fleet.urls) if config.fleet else []
    return list(dict.fromkeys([*own, *plan.urls]))


def _name(body: Mapping[str, Any]) -> str:
    name = str(body.get("name") or "")
    if HOST_NAME.fullmatch(name) is None:
        raise InvalidRequest(
            f"{name[:80]!r} is no name of a host: at most 31 letters a-z, digits and '-', the first a letter or digit"
        )
    return name


def _new_name(body: Mapping[str, Any]) -> str:
    """Returns the name for a host that is to be a member. Raises InvalidRequest."""
    refuse_reserved_host(name := _name(body))
    return name


type Operation = Callable[[Home, DaemonSettings, Mapping[str, Any]], Told | Awaitable[Told]]

OPERATIONS: Final[dict[str, Operation]] = {
    "create": create,
    "settle": settle,
    "invite": invite,
    "join": join,
    "leave": leave,
    "remove": remove,
    "status": status,
    "repair": repair,
    "check": check,
    "broker-add": broker_cluster.add,
    "broker-take": broker_cluster.take,
    "broker-remove": broker_cluster.drop,
    "scale": broker_cluster.scale,
}


def perform(home: Home, config: DaemonSettings, what: str, body: Mapping[str, Any]) -> Told:
    """Performs one operation, to its end. Raises SynapsedError."""
    done = OPERATIONS[what](home, config, body)
    if isinstance(done, dict):
        return done

    async def awaited() -> Told:
        return await done

    return asyncio.run(awaited())
