"""Files of a member in the state directory: credentials, the authority, and the trusted keys.

`host.creds` is the host's token and seed; `entry.jwt`, only if another owner keeps the broker, the token for which that
broker admits the host; `ca.pem` the authority of the brokers' certificates; `trust.json` the public keys of the fleet
and of its operator, and the fleet's newest token. All have mode 0600; the seed was made on this host and exists nowhere
else.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import tomli_w

from synapsed.errors import ConfigError, StoreError
from synapsed.shared.files import write_private
from synapsed_fleet import jwt
from synapsed_fleet.dial import options
from synapsed_fleet.keyring import Keyring
from synapsed_fleet.nkey import KeyPair
from synapsed_fleet.trust import NotTrusted, Trust


class Identity(NamedTuple):
    """This host as a member. `expires` is Unix seconds."""

    name: str
    token: str
    pair: KeyPair
    ca: str | None
    trust: Trust
    issued: int
    expires: int | None
    credentials: Path
    """Path of the file with token and seed."""
    entry: Path
    """Path of the token for another owner's broker; at the fleet's own there is no such file."""

    @property
    def given(self) -> bool:
        """True if another owner keeps the broker."""
        return self.entry.exists()

    def newest_token(self) -> str:
        """Returns the token that is saved now: it may have been renewed before a connection is made again."""
        try:
            if self.given:
                return self.entry.read_text(encoding="ascii").strip()
            token, pair = jwt.read_credentials(self.credentials.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return self.token
        return token if pair.public == self.pair.public else self.token

    def options(self, urls: Sequence[str]) -> dict[str, Any]:
        """Returns the arguments of `nats.connect` for this host."""
        return options(
            urls,
            token=self.newest_token,
            pair=self.pair,
            ca=self.ca,
            inbox=f"_INBOX_{self.name}",
            name=f"synapsed {self.name}",
            given=self.given,
        )


class Places(Protocol):
    """The daemon's paths, as far as this module needs them."""

    @property
    def config(self) -> Path: ...

    @property
    def state(self) -> Path: ...

    @property
    def kept_files(self) -> Path: ...


class Home:
    """The fleet's files in one home directory of a user."""

    def __init__(self, paths: Places) -> None:
        self.folder = folder = paths.state / "fleet"
        self.config_file = paths.config / "fleet.toml"
        self.credentials = folder / "host.creds"
        self.certificate = folder / "ca.pem"
        self.trusted = folder / "trust.json"
        self.entry = folder / "entry.jwt"
        self.keyring = Keyring(folder / "keys")
        self.broker = folder / "broker"
        self.files = paths.kept_files

    def is_member(self) -> bool:
        return self.credentials.exists()

    def identity(self) -> Identity:
        """Returns this host as a member. Raises ConfigError, which says what is missing or wrong and how to repair
        it."""
        try:
            token, pair = jwt.read_credentials(self.credentials.read_text(encoding="ascii"))
            told = json.loads(self.trusted.read_text(encoding="ascii"))
            ca = self.certificate.read_text(encoding="ascii") if self.certificate.exists() else None
            trust = Trust(fleet=told["fleet"], operator=told["operator"], account_token=told["account_jwt"])
        except FileNotFoundError as error:
            raise ConfigError(
                f"{error.filename} is not there: this host has no credentials of a fleet. 'synapsectl fleet join LINE' "
                "brings them; without a fleet, remove [fleet] from the configuration",
                file=str(error.filename),
            ) from None
        except (OSError, ValueError, KeyError, TypeError) as error:  # BadToken and NotTrusted are ValueErrors
            raise ConfigError(
                f"{self.folder}: what is kept of the fleet cannot be read ({error}): join again with a new invitation",
                file=str(self.folder),
            ) from None
        mine = jwt.read(token)
        return Identity(mine.name, token, pair, ca, trust, mine.issued, mine.expires, self.credentials, self.entry)

    def keep(self, *, token: str, pair: KeyPair, ca: str | None, trust: Trust, entry: str | None = None) -> None:
        """Saves the files, the credentials last: with them this host is a member. Raises StoreError."""
        if ca is not None:
            write_private(self.certificate, ca.encode("ascii"))
        self._keep_entry(entry)
        self.keep_trust(trust)
        write_private(self.credentials, jwt.credentials(token, pair.seed).encode("ascii"))

    def keep_trust(self, trust: Trust) -> None:
        """Saves the trusted keys and the fleet's token. Raises StoreError."""
        told = {"fleet": trust.fleet, "operator": trust.operator, "account_jwt": trust.account_token}
        write_private(self.trusted, json.dumps(told).encode("ascii"))

    def _keep_entry(self, entry: str | None) -> None:
        if entry is not None:
            write_private(self.entry, entry.encode("ascii"))

    def keep_token(self, token: str, trust: Trust, *, now: float, entry: str | None = None) -> None:
        """Saves a newer token of this host. Raises NotTrusted if it is no such token, StoreError."""
        mine = self.identity()
        member = trust.host(token, now=now)
        if (member.host, member.key) != (mine.name, mine.pair.public):
            raise NotTrusted("the token is for another host or another key")
        self.keep_trust(trust)
        self._keep_entry(entry)
        write_private(self.credentials, jwt.credentials(token, mine.pair.seed).encode("ascii"))

    def configure(self, config: dict[str, Any]) -> None:
        """Writes `fleet.toml`, over the present one. Raises StoreError."""
        text = "# Written by 'synapsectl fleet'; keys of [fleet] in config.toml win.\n" + tomli_w.dumps(config)
        write_private(self.config_file, text.encode())

    def forget(self) -> list[Path]:
        """Removes credentials and configuration, to leave the fleet; returns the removed files. Raises StoreError."""
        kept = (self.config_file, self.credentials, self.entry, self.trusted, self.certificate)
        gone = [path for path in kept if path.exists()]
        try:
            for path in gone:
                path.unlink()
        except OSError as error:
            raise StoreError(
                f"{error.filename} cannot be removed: {error.strerror}", file=str(error.filename)
            ) from error
        return gone
