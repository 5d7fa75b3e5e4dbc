"""Enrols the first member of a fleet: the host that has just made the fleet's keys."""

import time
from collections.abc import Mapping
from typing import Any

from synapsed_fleet.broker_permissions import HOST
from synapsed_fleet.keyring import Enrolled, Keyring
from synapsed_fleet.member_files import Home
from synapsed_fleet.nkey import KeyPair
from synapsed_fleet.registrar import VALID_S
from synapsed_fleet.trust import Trust


def enrol_first(home: Home, ring: Keyring, name: str, configured: Mapping[str, Any]) -> None:
    """Makes this host a member, and writes `configured` to `fleet.toml`. Raises StoreError."""
    pair, now = KeyPair.generate("user"), int(time.time())
    with ring.changing() as members:
        members.hosts[name] = Enrolled(pair.public, now, now + VALID_S)
    trust = Trust(
        fleet=ring.pair("account").public, operator=ring.pair("operator").public, account_token=ring.account_token
    )
    home.configure(dict(configured))
    token = ring.host_token(name, pair.public, issued=now, expires=now + VALID_S)
    entry = ring.entry_token(HOST, name, pair.public, issued=now, expires=now + VALID_S)
    home.keep(token=token, pair=pair, ca=ring.trusted(), trust=trust, entry=entry)
