"""The fleet's own keys, on its admin's host: state/fleet/keys, files of mode 0600 in a directory of mode 0700.

| file | content |
|---|---|
| `operator.seed` | signs the fleet's token, which names the keys that sign hosts, and the revoked keys |
| `account.seed` | the fleet itself; signs the admin's own short-lived users |
| `system.seed` | the same for the broker's system account |
| `host.seed`, `join.seed` | sign tokens of hosts and of invitations |
| `given.seed` | only if another owner keeps the broker: signs users of the account there |
| `ca.pem`, `ca-key.pem` | the authority of the brokers' certificates |
| `operator.jwt`, `system.jwt`, `account.jwt` | tokens, which are no secrets |
| `members.json` | each host's key, valid invitations, the brokers' addresses |
"""

import fcntl
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from synapsed.errors import ConfigError, StoreError
from synapsed.shared.files import write_private
from synapsed_fleet import jwt
from synapsed_fleet.broker_permissions import scopes
from synapsed_fleet.nkey import BadKey, KeyPair, Kind
from synapsed_fleet.tls import Pem, make_authority

INVITATIONS_MAX: Final = 100

GIVEN: Final = "given"
_SEEDS: Final[dict[str, Kind]] = {
    "operator": "operator",
    "account": "account",
    "system": "account",
    "host": "account",
    "join": "account",
}


@dataclass(frozen=True)
class Enrolled:
    """A host that is a member. Times are Unix seconds."""

    key: str
    issued: int
    expires: int


@dataclass(frozen=True)
class PendingInvitation:
    """An invitation: its key, the time until which it is valid, and the key of the host that has used
    it."""

    key: str
    expires: int
    used_by: str | None = None


class PlannedBroker(NamedTuple):
    """One of several brokers: its host, its address for hosts, and its address for the other brokers."""

    host: str
    url: str
    route: str


@dataclass(frozen=True)
class Plan:
    """The planned brokers."""

    urls: tuple[str, ...] = ()
    """Their addresses for hosts."""
    store: int = 0
    """Most bytes that each stores."""
    replicas: int = 1
    account: str = ""
    """The fleet's account at another owner's broker; empty if the fleet has its own broker."""
    ca: str = ""
    """Authority of another owner's broker; empty for those that the system trusts."""
    brokers: tuple[PlannedBroker, ...] = ()
    """Brokers if several are planned, this host's among them; empty for a single one."""


@dataclass
class Members:
    """Members of the fleet, with invited and removed hosts."""

    hosts: dict[str, Enrolled] = field(default_factory=dict)
    invitations: dict[str, PendingInvitation] = field(default_factory=dict)
    """Open invitations, by the host's name."""
    revoked: dict[str, int] = field(default_factory=dict)
    """Revoked keys, each with the time up to which tokens issued for it are invalid."""
    plan: Plan = field(default_factory=Plan)


class Keyring:
    """The keys in one directory."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self._clock = clock

    @classmethod
    def create(
        cls,
        folder: Path,
        name: str,
        plan: Plan,
        *,
        given: KeyPair | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Makes the keys of a new fleet called `name`; `given` signs users of the account `plan.account`. Raises
        StoreError, and ConfigError if there are keys already."""
        ring = cls(folder, clock=clock)
        if ring.exists():
            raise ConfigError(f"{folder}: there are keys of a fleet already: 'synapsectl fleet leave' removes them")
        pairs = {stem: KeyPair.generate(kind) for stem, kind in _SEEDS.items()}
        authority = make_authority(pairs["account"].public, now=datetime.fromtimestamp(clock(), UTC))
        system, now = pairs["system"].public, clock()
        operator = pairs["operator"]
        ring._write("ca-key.pem", authority.key)
        ring._write("ca.pem", authority.certificate)
        ring._write("operator.jwt", jwt.operator(operator, name=name, system_account=system, now=now))
        ring._write(
            "system.jwt",
            jwt.account(operator, public=system, name="system", scopes=(), revoked={}, jetstream=False, now=now),
        )
        for stem, pair in (pairs if given is None else {**pairs, GIVEN: given}).items():
            ring._write(f"{stem}.seed", pair.seed)
        ring.keep(Members(plan=plan))  # the fleet's token last: `exists` looks for it
        return ring

    def exists(self) -> bool:
        return (self.folder / "account.jwt").exists()

    def pair(self, stem: str) -> KeyPair:
        """Returns a key pair. Raises ConfigError that names the file."""
        try:
            return KeyPair.from_seed(self._read(f"{stem}.seed").strip())
        except BadKey as error:
            raise ConfigError(f"{self.folder / stem}.seed: {error}; bring it back from where it is kept") from None

    @property
    def authority(self) -> Pem:
        return Pem(self._read("ca.pem"), self._read("ca-key.pem"))

    @property
    def certificate(self) -> str:
        """Certificate of the authority, as PEM."""
        return self._read("ca.pem")

    @property
    def operator_token(self) -> str:
        return self._read("operator.jwt").strip()

    @property
    def system_token(self) -> str:
        return self._read("system.jwt").strip()

    @property
    def account_token(self) -> str:
        return self._read("account.jwt").strip()

    @contextmanager
    def changing(self) -> Iterator[Members]:
        """Yields the members for a change, under a lock; saves them when the block ends without an error. Raises
        ConfigError, StoreError."""
        try:
            file = (self.folder / "lock").open("ab")
        except OSError as error:
            raise ConfigError(f"{self.folder}: no keys of a fleet are here ({error.strerror})") from None
        with file:
            (self.folder / "lock").chmod(0o600)
            fcntl.flock(file, fcntl.LOCK_EX)
            members = self.members()
            yield members
            self.keep(members)

    def members(self) -> Members:
        """Returns the members. Raises ConfigError if the file is damaged."""
        path = self.folder / "members.json"
        try:
            return _members(json.loads(self._read("members.json")))
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigError(f"{path}: is damaged ({error}): take it from a copy", file=str(path)) from None

    def keep(self, members: Members) -> str:
        """Saves the members, and a new fleet's token if the revoked keys or the rights of members have changed (a newer
        version of the program may change the rights). Returns the token. Raises StoreError."""
        self._write("members.json", json.dumps(asdict(members), indent=1, sort_keys=True))
        with suppress(ConfigError):
            told = jwt.read(self.account_token).nats
            rights = jwt.scope_claims(self._scopes())
            if dict(told.get("revocations") or {}) == members.revoked and told.get("signing_keys") == rights:
                return self.account_token
        token = self._account_token(members)
        self._write("account.jwt", token)
        return token

    def admin(self, *, system: bool = False, seconds: float = 3600.0) -> tuple[str, KeyPair]:
        """Returns the token and key of a new user with all rights, which is valid for a short time and saved
        nowhere."""
        pair, now, account = KeyPair.generate("user"), self._clock(), self.members().plan.account
        signer = self.pair(GIVEN if account else "system" if system else "account")
        token = jwt.full_user(
            signer, public=pair.public, name="admin", now=now, expires=now + seconds, account=account or None
        )
        return token, pair

    def trusted(self) -> str | None:
        """Returns the authority of the brokers' certificates; None: those that the system trusts."""
        plan = self.members().plan
        return plan.ca or None if plan.account else self.certificate

    def entry_token(self, role: str, name: str, key: str, *, issued: float, expires: float) -> str | None:
        """Returns the token for which another owner's broker admits a host, besides the token of its membership; None
        if the fleet has its own broker. `role` is one of `broker_permissions`."""
        account = self.members().plan.account
        if not account:
            return None
        scope = next(one for one in self._scopes() if one.role == role)
        signer = self.pair(GIVEN)
        return jwt.limited_user(signer, scope, account=account, public=key, name=name, now=issued, expires=expires)

    def host_token(self, name: str, key: str, *, issued: float, expires: float) -> str:
        account = self.pair("account").public
        return jwt.user(self.pair("host"), account=account, public=key, name=name, now=issued, expires=expires)

    def join_token(self, name: str, key: str, *, issued: float, expires: float) -> str:
        account = self.pair("account").public
        return jwt.user(self.pair("join"), account=account, public=key, name=name, now=issued, expires=expires)

    def destroy(self) -> None:
        """Removes every file of the keyring, the fleet's token first. Raises StoreError."""
        names = ["account.jwt", *(f"{stem}.seed" for stem in (*_SEEDS, GIVEN)), "ca-key.pem", "ca.pem", "operator.jwt"]
        try:
            for name in [*names, "system.jwt", "members.json", "lock"]:
                (self.folder / name).unlink(missing_ok=True)
            with suppress(OSError):  # a person may keep other files there
                self.folder.rmdir()
        except OSError as error:
            raise StoreError(f"{self.folder} cannot be removed: {error.strerror}", file=str(self.folder)) from error

    def _scopes(self) -> list[jwt.Scope]:
        return scopes(host=self.pair("host").public, join=self.pair("join").public)

    def _account_token(self, members: Members) -> str:
        previous = 0
        with suppress(ConfigError):
            previous = jwt.read(self.account_token).issued
        now = max(self._clock(), previous + 1)  # newer by its time, even if the clock went back
        return jwt.account(
            self.pair("operator"),
            public=self.pair("account").public,
            name="fleet",
            scopes=self._scopes(),
            revoked=members.revoked,
            jetstream=True,
            now=now,
        )

    def _read(self, name: str) -> str:
        path = self.folder / name
        try:
            return path.read_text(encoding="ascii")
        except FileNotFoundError:
            raise ConfigError(
                f"{path} is not there: this is done where the fleet was created, or where its keys are now",
                file=str(path),
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} cannot be read: {error}", file=str(path)) from None

    def _write(self, name: str, text: str) -> None:
        write_private(self.folder / name, text.encode("ascii"))


def _members(data: Mapping[str, Any]) -> Members:
    return Members(
        {name: Enrolled(**one) for name, one in data["hosts"].items()},
        {name: PendingInvitation(**one) for name, one in data["invitations"].items()},
        {str(key): int(until) for key, until in data["revoked"].items()},
        _plan(data["plan"]),
    )


def _plan(told: Mapping[str, Any]) -> Plan:
    account, ca = str(told.get("account", "")), str(told.get("ca", ""))
    brokers = tuple(PlannedBroker(*one) for one in told.get("brokers") or ())
    return Plan(tuple(told["urls"]), int(told["store"]), int(told["replicas"]), account, ca, brokers)
