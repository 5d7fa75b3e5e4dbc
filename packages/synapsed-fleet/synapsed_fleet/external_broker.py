"""A broker that another owner keeps: checks that a fleet can use it, and makes a fleet there.

The fleet has an account of its own there, and a key that signs that account's users: the short-lived ones of the admin,
and those of the hosts, whose rights are in the token itself. The fleet's own keys still decide who is a member: the
owner of such a broker can withhold and read messages, but not forge them.
"""

import contextlib
import json
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Self

import nats.errors
from nats.aio.client import Client

from synapsed.errors import ConfigError, InvalidRequest, RemoteRefused, SynapsedError, Unreachable
from synapsed.shared.outside_json import NotJson, read_object
from synapsed_fleet import jwt
from synapsed_fleet.admin import FLEET_KEY, Admin, connected, opened
from synapsed_fleet.broker_permissions import HOST
from synapsed_fleet.dial import options
from synapsed_fleet.envelope import BODY_MAX
from synapsed_fleet.fleet_config import URLS_MAX, FleetBroker, bytes_of, is_url
from synapsed_fleet.founding import enrol_first
from synapsed_fleet.keyring import Keyring, Plan
from synapsed_fleet.member_files import Home
from synapsed_fleet.natsserver import NEEDED, version_in
from synapsed_fleet.nkey import BadKey, KeyPair, is_public
from synapsed_fleet.streams import HOSTS, MIB, STORE_MAX, STORE_MIN, STREAMS

PAYLOAD_MIN: Final = BODY_MAX + 64 * 1024
"""Bytes of a body and its headers."""
CA_MAX: Final = 4096
ANSWER_S: Final = 10.0
REFUSED_S: Final = 1
"""Seconds to wait for an answer that should not come: a user without the right gets none."""
NOT_ENABLED: Final = (10039, 10076)
"""JetStream's codes: not enabled for this account, not enabled at this broker."""
NO_JETSTREAM: Final = "the broker has no JetStream for this account: its owner has to enable it"
USER_S: Final = 300.0
"""Seconds for which the user is valid that is made to test the login."""
OWNERS: Final = (
    "whether it syncs each write cannot be seen from here: have its owner set 'sync_interval: always', without which a "
    "loss of power takes whole streams, which are then sent again"
)


class GivenBroker(NamedTuple):
    """Description of another owner's broker, as a person gives it."""

    urls: tuple[str, ...]
    key: KeyPair
    account: str
    ca: str
    store: int | None

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> Self:
        """Reads the description from a request. Raises InvalidRequest, whose text quotes nothing of the key."""
        urls = tuple(map(str, body["urls"]))
        if len(urls) > URLS_MAX or (wrong := [url for url in urls if not is_url(url)]):
            told = f"{wrong[0]!r}"[:120] if len(urls) <= URLS_MAX else f"{len(urls)} addresses"
            raise InvalidRequest(f"--url: {told}: must be like tls://nats.example:4222, at most {URLS_MAX} of them")
        try:
            key = KeyPair.from_seed(_seed(str(body.get("account_key") or "")))
        except BadKey:
            key = None
        if key is None or not is_public(key.public, "account"):
            raise InvalidRequest(
                "--account-key: the file has no seed of an account (SA…): give the account's own, or that of a signing "
                "key of it without a scope"
            )
        account = str(body.get("account") or key.public)
        if not is_public(account, "account"):
            raise InvalidRequest("--account: must be the public key of the account, which begins with A")
        ca = str(body.get("ca") or "")
        if len(ca) > CA_MAX or (ca and "-----BEGIN CERTIFICATE-----" not in ca):
            raise InvalidRequest(f"--ca: must be a certificate as PEM, of at most {CA_MAX} characters")
        return cls(urls, key, account, ca, _store(body.get("max_store")))


def _seed(text: str) -> str:
    """Returns the seed in a file, which may be one of `nsc`'s with other lines around it."""
    lines = [line.strip() for line in text.splitlines()]
    return next((line for line in lines if line.startswith("SA")), "")


def _store(size: object) -> int | None:
    if not size:
        return None
    try:
        return bytes_of(FleetBroker.model_validate({"max_store": size}).max_store or "")
    except ValueError:
        raise InvalidRequest("--max-store: must be a size like '512MiB' or '20GiB'") from None


async def create_given(home: Home, name: str, wanted: GivenBroker) -> dict[str, Any]:
    """Makes a fleet whose broker is at `wanted.urls`, and this host its first member. Everything is checked before
    anything is made. Raises SynapsedError."""
    found = await _looked_at(wanted)
    store = _room(wanted, found)
    plan = Plan(wanted.urls, store, 1, wanted.account, wanted.ca)
    ring = Keyring.create(home.keyring.folder, name, plan, given=wanted.key)
    enrol_first(home, ring, name, {"name": name, "urls": list(wanted.urls)})
    told = {"name": name, "urls": list(wanted.urls), "again": False, "given": True}
    return {**told, "version": found.version, "store": store, "remark": OWNERS}


class GivenFacts(NamedTuple):
    """Facts that a broker reports of itself. `storage`: bytes that the account may keep there, -1 for no limit."""

    version: str
    storage: int


async def _looked_at(wanted: GivenBroker) -> GivenFacts:
    """Connects to the broker and checks it. Raises ConfigError that says what is missing, Unreachable."""
    try:
        async with opened(wanted.urls, _as_user(wanted, None)) as client:
            found = await look(client)
            await _nobody_elses(client, None)
    except Unreachable as error:
        if "credentials" in error.message:
            raise ConfigError(
                f"{', '.join(wanted.urls)}: a user of the account is not let in: is the key that account's own, or a "
                "signing key of it without a scope (then also --account A…)? Does the broker know the account?"
            ) from None
        raise
    async with opened(wanted.urls, _as_user(wanted, HOST)) as client:
        await _may_not(client, "syn.to.other.other.msg")
    return found


def _as_user(wanted: GivenBroker, role: str | None) -> dict[str, Any]:
    """Returns the arguments of a connection that has all rights, or of one as a host called `_look`, a name that no
    host can have."""
    from synapsed_fleet.broker_permissions import scopes

    pair, now = KeyPair.generate("user"), time.time()
    made: dict[str, Any] = {"public": pair.public, "now": now, "expires": now + USER_S, "account": wanted.account}
    if role is None:
        token = jwt.full_user(wanted.key, name="admin", **made)
    else:
        scope = next(one for one in scopes(host="", join="") if one.role == role)
        token = jwt.limited_user(wanted.key, scope, name="_look", **made)
    inbox = "_INBOX__admin" if role is None else "_INBOX__look"
    return options(wanted.urls, token=token, pair=pair, ca=wanted.ca or None, inbox=inbox, given=True)


async def look(client: Client) -> GivenFacts:
    """Checks that a fleet can use the broker, and returns its facts. Raises ConfigError, Unreachable."""
    version = str(client.connected_server_version).strip("<>")
    there, needed = version_in(version), ".".join(map(str, NEEDED))
    if there is None or there < NEEDED:
        raise ConfigError(
            f"the broker is {version or 'of an unknown version'}, and a fleet needs nats-server {needed} or newer"
        )
    if client.max_payload < PAYLOAD_MIN:
        raise ConfigError(
            f"the broker takes messages of {client.max_payload} bytes, and a fleet needs 1 MiB: set 'max_payload' there"
        )
    told = await _asked(client, "$JS.API.INFO")
    limits = told.get("limits") or {}
    streams = int(limits.get("max_streams", -1))
    if 0 <= streams < len(STREAMS):
        raise ConfigError(f"the account allows at most {streams} streams, and a fleet needs {len(STREAMS)}")
    return GivenFacts(version, int(limits.get("max_storage", -1)))


async def _asked(client: Client, subject: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Returns one answer of JetStream's. Raises ConfigError if the account has no JetStream."""
    try:
        answer = await client.request(subject, json.dumps(body or {}).encode(), timeout=ANSWER_S)
        told = read_object(answer.data)
    except nats.errors.NoRespondersError:
        raise ConfigError(NO_JETSTREAM) from None
    except (nats.errors.Error, NotJson) as error:
        raise Unreachable(f"the broker does not answer {subject}: {error}", sent=True) from None
    failed = told.get("error") or {}
    if failed.get("err_code") in NOT_ENABLED:
        raise ConfigError(NO_JETSTREAM)
    if failed.get("code") == 503:
        raise Unreachable(f"the broker does not answer {subject}: {failed.get('description')}", sent=True)
    if failed and failed.get("code") != 404:
        raise ConfigError(f"the broker refuses {subject}: {failed.get('description')}")
    return told


async def _nobody_elses(client: Client, fleet: str | None) -> None:
    """Raises ConfigError if subjects of a fleet are kept by streams that do not belong to `fleet` (None: a new one)."""
    ours = {kept.name for kept in STREAMS}
    for kept in STREAMS:
        for subject in kept.subjects:
            told = await _asked(client, "$JS.API.STREAM.NAMES", {"subject": subject})
            for name in told.get("streams") or ():
                if name not in ours:
                    raise ConfigError(
                        f"the stream {name} of this account keeps {subject}, which is the fleet's: give the fleet an "
                        "account of its own"
                    )
                if (owner := await _owner(client)) != fleet:
                    whose = f"the fleet {owner[:12]}…" if owner else "somebody else"
                    raise ConfigError(
                        f"the stream {name} of this account is {whose}'s: give this fleet an account of its own, or "
                        "remove that stream with NATS's own tool"
                    )


async def _owner(client: Client) -> str | None:
    """Returns the fleet whose streams are in the account, None if no fleet's token is there. Raises Unreachable if the
    broker does not say."""
    subject = f"$JS.API.DIRECT.GET.{HOSTS}.{FLEET_KEY}"
    try:
        answer = await client.request(subject, b"", timeout=ANSWER_S)
        return jwt.read(answer.data.decode("ascii")).subject
    except (jwt.BadToken, UnicodeDecodeError):
        return None
    except nats.errors.NoRespondersError:
        if "error" in await _asked(client, f"$JS.API.STREAM.INFO.{HOSTS}"):
            return None  # there is no such stream
        raise Unreachable(f"the broker does not answer {subject}: the stream has no leader", sent=True) from None
    except nats.errors.Error as error:
        raise Unreachable(f"the broker does not answer {subject}: {error}", sent=True) from None


async def _may_not(client: Client, subject: str) -> None:
    """Raises ConfigError if a host of the fleet can publish to `subject`: the rights in its token would mean nothing
    then. Silence is a refusal only from a broker that answers other requests meanwhile: else Unreachable is raised."""
    may = True
    try:
        await client.flush(REFUSED_S)
        with contextlib.suppress(nats.errors.NoRespondersError):
            try:
                await client.request(subject, b"", timeout=REFUSED_S)
            except nats.errors.TimeoutError:
                await client.flush(REFUSED_S)
                may = False
    except nats.errors.Error as error:
        raise Unreachable(f"the broker was lost, or is too slow to check its permissions: {error}", sent=True) from None
    if may:
        raise ConfigError("the broker lets a user do what its token does not allow: it checks no permissions")


def _room(wanted: GivenBroker, found: GivenFacts) -> int:
    """Returns the bytes that all streams may have together. Raises ConfigError."""
    most = found.storage if found.storage >= 0 else None
    store = wanted.store or min(most if most is not None else STORE_MAX, STORE_MAX)
    if most is not None and store > most:
        raise ConfigError(f"the account may keep {most // MIB} MiB, less than --max-store")
    if store < STORE_MIN:
        raise ConfigError(f"the account may keep {store // MIB} MiB, and a fleet needs {STORE_MIN // MIB} MiB")
    return store


async def end_given(ring: Keyring) -> str | None:
    """Removes a fleet's streams from another owner's broker; returns the reason if they stay there, else None."""
    plan = ring.members().plan
    if not plan.account:
        return None
    try:
        async with connected(ring, plan.urls) as client:
            if await _owner(client) == ring.pair("account").public:
                await Admin(client).remove_streams()
    except SynapsedError as error:
        return error.message
    return None


async def checked(ring: Keyring) -> str:
    """Checks the broker and describes it, for `doctor`. Raises SynapsedError that names the fault."""
    plan = ring.members().plan
    async with connected(ring, plan.urls) as client:
        found = await look(client)
        if await _owner(client) != ring.pair("account").public:
            raise RemoteRefused(
                "the streams there are not this fleet's: 'synapsectl fleet repair' makes what is missing"
            )
    return f"nats-server {found.version}, somebody else's"
