"""Makes three brokers out of one: chooses the hosts that keep them, and gives each its configuration.

The admin's host names the others (`add`). Each of them makes a key, requests what its broker needs (`take`), and starts
its unit. Then `scale` makes the broker of the admin's host one of them, and moves the content of the streams
(`broker_scaling`). A lost broker is replaced by a person only: a fourth is added, and the lost one removed.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

import nats.errors

from synapsed.errors import ConfigError, InvalidRequest, RemoteRefused, Unreachable
from synapsed.shared.outside_json import NotJson, read_object
from synapsed_fleet import tls
from synapsed_fleet.admin import administering, connected, opened, remove_peer
from synapsed_fleet.broker import BrokerFolder
from synapsed_fleet.fleet_config import DaemonSettings, FleetBroker, is_url
from synapsed_fleet.keyring import Keyring, Plan, PlannedBroker
from synapsed_fleet.member_files import Home
from synapsed_fleet.natsserver import ClusterPlace, find
from synapsed_fleet.tls import Pem

THREE: Final = 3
"""Brokers of a cluster. Two are worse than one: the loss of either stops both."""
ROUTE_AFTER: Final = 2000
"""Number to add to a broker's port for hosts: the sum is its port for other brokers."""
BROKERS_MAX: Final = 5
ANSWER_S: Final = 10.0
ELECTION_S: Final = 20.0
"""Seconds that brokers may take to elect a leader, and the registrar to be connected with them again."""
AGAIN_S: Final = 0.5

type Told = dict[str, Any]


def add(home: Home, config: DaemonSettings, body: Mapping[str, Any]) -> Told:
    """Plans a broker on the member `name`, at `address`; `port` and `route_port` if they are not the usual ones. Raises
    ConfigError, InvalidRequest."""
    name = str(body.get("name") or "")
    port = int(body.get("port") or 4222)
    route = int(body.get("route_port") or port + ROUTE_AFTER)
    place = _place(name, str(body.get("address") or ""), port, route)
    with home.keyring.changing() as members:
        _own_brokers(members.plan)
        if name not in members.hosts:
            raise InvalidRequest(f"{name[:40]} is no member of this fleet: 'synapsectl fleet invite' makes it one")
        brokers = members.plan.brokers or (_here(home, config, members.plan),)
        others = tuple(one for one in brokers if one.host != name)
        if len(others) >= BROKERS_MAX:
            raise ConfigError(f"a fleet has at most {BROKERS_MAX} brokers: 'synapsectl fleet broker remove HOST' first")
        if name == brokers[0].host:
            raise ConfigError(f"{name} is this host, and keeps a broker already")
        members.plan = replace(members.plan, brokers=(*others, place))
        return _answer_of(members.plan)


async def take(home: Home, config: DaemonSettings, body: Mapping[str, Any]) -> Told:
    """Requests what this host's broker needs from the admin's host, and writes it; a second call brings it up to date.
    `listen`: if it is not every address. Raises ConfigError, Unreachable, RemoteRefused."""
    mine, fleet = home.identity(), config.fleet
    if home.keyring.exists():
        raise ConfigError("the fleet was created here, with a broker: the others are started on their hosts")
    if fleet is None:
        raise ConfigError("this host has no [fleet] in its configuration: 'synapsectl fleet join' writes it")
    find()
    private, public = tls.make_key()
    async with opened(fleet.urls, mine.options(fleet.urls)) as client:
        told = await request(client.request, f"syn.adm.broker.{mine.name}", {"key": public})
    try:
        brokers = [PlannedBroker(*one) for one in told["brokers"]]
        here = next(one for one in brokers if one.host == mine.name)
        written = _settings(fleet.broker, here, body)
        BrokerFolder(home.broker).prepare(
            name=mine.name,
            tokens={"operator": told["operator"], "system": told["system"], "account": told["account"]},
            certificate=Pem(told["certificate"], private),
            authority=told["authority"],
        )
    except (KeyError, TypeError, ValueError, StopIteration) as error:
        raise RemoteRefused(f"the answer of the fleet's admin cannot be read: {error!r}"[:300]) from None
    BrokerFolder(home.broker).regroup(_cluster(here, brokers, written), empty=False)
    urls = list(dict.fromkeys([*fleet.urls, *(one.url for one in brokers)]))
    kept = {key: value for key, value in written.model_dump().items() if value is not None}
    home.configure({"name": mine.name, "urls": urls, "broker": kept})
    return {"name": mine.name, "listen": written.listen, "cluster": written.cluster, "brokers": _told_of(brokers)}


def broker_told(ring: Keyring, name: str, document: object) -> Told:
    """Returns the answer of the admin's host to a host that is to keep a broker. Raises InvalidRequest."""
    plan = ring.members().plan
    here = next((one for one in plan.brokers if one.host == name), None)
    if here is None:
        raise InvalidRequest(f"{name} was not chosen to keep a broker: 'synapsectl fleet broker add {name}' chooses it")
    if len(plan.brokers) < THREE:
        raise InvalidRequest("three brokers are wanted, and two are named: 'synapsectl fleet broker add' another first")
    key = document.get("key") if isinstance(document, dict) else None
    names = ["localhost", "127.0.0.1", "::1", urlsplit(here.url).hostname or ""]
    try:
        certificate = tls.sign_broker(ring.authority, str(key), names, now=datetime.now(UTC))
    except (ValueError, TypeError) as error:
        raise InvalidRequest(f"the broker's key cannot be read: {error}"[:200]) from None
    return {
        "operator": ring.operator_token,
        "system": ring.system_token,
        "account": ring.account_token,
        "certificate": certificate,
        "authority": ring.certificate,
        "brokers": [list(one) for one in plan.brokers],
    }


async def scale(home: Home, config: DaemonSettings, body: Mapping[str, Any]) -> Told:
    """Goes from one broker to three, or back: `replicas` is 1 or 3.

    The broker's unit is to be started again afterwards, unless all was done before (`again` in the answer), and
    `operations.settle` ends the change. A second call continues where the first was interrupted. Raises ConfigError,
    Unreachable, StoreError.
    """
    wanted, ring, folder = body.get("replicas"), home.keyring, BrokerFolder(home.broker)
    if wanted not in (1, THREE):
        raise InvalidRequest("a fleet has one broker or three: of two the loss of either would stop both")
    plan = ring.members().plan
    _own_brokers(plan)
    clustered = bool(folder.read().get("cluster"))
    if plan.replicas == wanted and clustered is (wanted == THREE):
        return {**_answer_of(plan), "again": not folder.is_outdated()}
    if wanted == THREE:
        if len(plan.brokers) != THREE:
            raise ConfigError("name two other hosts first: 'synapsectl fleet broker add HOST --address WHERE'")
        for one in plan.brokers[1:]:
            await _check_up(ring, one)
    if clustered is not (wanted == THREE):
        async with administering(ring, _now(home, config, plan)) as admin:
            await folder.moving.pack(admin)
        await asyncio.to_thread(_regroup, ring, folder, config, plan if wanted == THREE else None)
    with ring.changing() as members:
        brokers = members.plan.brokers if wanted == THREE else ()
        urls = tuple(one.url for one in brokers) or (members.plan.brokers[0].url,)
        members.plan = replace(members.plan, replicas=wanted, urls=urls, brokers=brokers)
        return {**_answer_of(members.plan), "again": False}


def _regroup(ring: Keyring, folder: BrokerFolder, config: DaemonSettings, plan: Plan | None) -> None:
    if plan is None:
        folder.regroup(None, empty=True)
        return
    here = plan.brokers[0]
    names = tls.names_in(folder.text("cert.pem")) | {urlsplit(here.url).hostname or ""}
    folder.keep_certificate(tls.make_broker(ring.authority, sorted(names), now=datetime.now(UTC)))
    settings = (config.fleet.broker if config.fleet else None) or FleetBroker()
    folder.regroup(_cluster(here, plan.brokers, settings), empty=True)


async def drop(home: Home, config: DaemonSettings, body: Mapping[str, Any]) -> Told:
    """Removes the broker of the host `name`: what it kept is copied to another. Raises ConfigError, Unreachable."""
    name, ring = str(body.get("name") or ""), home.keyring
    plan = ring.members().plan
    if name not in [one.host for one in plan.brokers[1:]]:
        raise InvalidRequest(f"{name[:40]} is no host beside this one that keeps a broker")
    if plan.replicas == THREE:
        if len(plan.brokers) <= THREE:
            raise ConfigError("three are needed: add and start another first, or 'synapsectl fleet scale 1'")
        await remove_peer(ring, _now(home, config, plan), name)
    with ring.changing() as members:
        brokers = tuple(one for one in members.plan.brokers if one.host != name)
        urls = tuple(one.url for one in brokers) if plan.replicas == THREE else members.plan.urls
        members.plan = replace(members.plan, brokers=brokers, urls=urls)
        plan = members.plan
    if plan.replicas == THREE:
        settings = (config.fleet.broker if config.fleet else None) or FleetBroker()
        BrokerFolder(home.broker).regroup(_cluster(plan.brokers[0], plan.brokers, settings), empty=False)
        async with administering(ring, plan.urls) as admin:
            await admin.publish_brokers(plan.urls)
    return _answer_of(plan)


async def request(
    ask: Callable[..., Any],
    subject: str,
    document: Mapping[str, Any],
    *,
    patience: float = ELECTION_S,
    pause: float = AGAIN_S,
) -> Told:
    """Returns the answer of the fleet's registrar. While no registrar answers, or the brokers have no leader, it asks
    again for `patience` seconds, so `subject` must bear to be asked twice. Raises RemoteRefused with the registrar's
    words, Unreachable."""
    until = time.monotonic() + patience
    while True:
        try:
            return await _request(ask, subject, document)
        except Unreachable:
            if time.monotonic() >= until:
                raise
        await asyncio.sleep(pause)


async def _request(ask: Callable[..., Any], subject: str, document: Mapping[str, Any]) -> Told:
    try:
        message = await ask(subject, json.dumps(document).encode(), timeout=ANSWER_S)
        told = read_object(message.data)
    except (nats.errors.NoRespondersError, nats.errors.TimeoutError):
        raise Unreachable(
            "the broker is there, but nobody answers for the fleet: 'synapsectl fleet broker status' where it was "
            "created",
            sent=True,
        ) from None
    except NotJson as error:
        raise RemoteRefused(f"the answer cannot be read: {error}") from None
    if isinstance(failed := told.get("error"), dict):
        why = str(failed.get("message"))[:500]
        if failed.get("code") == Unreachable.code:
            raise Unreachable(f"who answers for the fleet says: {why}", sent=True)
        raise RemoteRefused(f"it is refused: {why}")
    return told


def _place(host: str, address: str, port: int, route: int) -> PlannedBroker:
    where = f"[{address}]" if ":" in address else address
    made = PlannedBroker(host, f"tls://{where}:{port}", f"tls://{where}:{route}")
    if not (is_url(made.url) and is_url(made.route)) or port == route:
        raise InvalidRequest(f"--address: {address[:80]!r}, {port} and {route} are no place for a broker")
    return made


def _here(home: Home, config: DaemonSettings, plan: Plan) -> PlannedBroker:
    """Returns this host's broker, as the others find it."""
    settings = (config.fleet.broker if config.fleet else None) or FleetBroker()
    told = urlsplit(plan.urls[0])
    return _place(home.identity().name, told.hostname or "", told.port or 0, _port(_route(settings)))


def _route(settings: FleetBroker) -> str:
    """Returns the address at which a broker listens for the others."""
    host = settings.listen.rpartition(":")[0]
    return settings.cluster or f"{host}:{_port(settings.listen) + ROUTE_AFTER}"


def _port(listen: str) -> int:
    return int(listen.rpartition(":")[2])


def _settings(there: FleetBroker | None, here: PlannedBroker, body: Mapping[str, Any]) -> FleetBroker:
    """Returns `[fleet.broker]` of a host that keeps one of several brokers. Raises ValueError."""
    told, route = urlsplit(here.url), urlsplit(here.route)
    listen = str(body.get("listen") or (there.listen if there else f"0.0.0.0:{told.port}"))
    cluster = (there.cluster if there else None) or f"{listen.rpartition(':')[0]}:{route.port}"
    return FleetBroker(listen=listen, cluster=cluster, max_store=there.max_store if there else None)


def _cluster(here: PlannedBroker, brokers: Any, settings: FleetBroker) -> ClusterPlace:
    bare = [url.removeprefix("tls://") for url in (here.route, here.url)]
    return ClusterPlace(_route(settings), bare[0], bare[1], tuple(one.route for one in brokers))


def _now(home: Home, config: DaemonSettings, plan: Plan) -> list[str]:
    own = list(config.fleet.urls) if config.fleet else []
    return list(dict.fromkeys([*own, *plan.urls]))


def _own_brokers(plan: Plan) -> None:
    if plan.account:
        raise ConfigError("the fleet's broker belongs to another owner, who decides how many there are")


async def _check_up(ring: Keyring, one: PlannedBroker) -> None:
    try:
        async with connected(ring, [one.url]):
            return
    except Unreachable as error:
        raise ConfigError(f"{one.host}: {error.message}. There: 'synapsectl fleet broker start'") from None


def _answer_of(plan: Plan) -> Told:
    return {"replicas": plan.replicas, "urls": list(plan.urls), "brokers": _told_of(plan.brokers)}


def _told_of(brokers: Any) -> list[Told]:
    return [one._asdict() for one in brokers]
