"""Upkeep of a member's own membership: saves the fleet's newest token, and renews the host's credentials in time.

A token is valid for a year and is renewed after half of it, so that a host that is on for a few hours in half a year
stays a member. A connection that is made again reads the saved token (`member_files.Identity.options`).
"""

import asyncio
import tomllib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from synapsed.errors import RemoteRefused
from synapsed.shared.outside_json import read_object
from synapsed_fleet.fleet_config import URLS_MAX, is_url
from synapsed_fleet.member_files import Home, Identity
from synapsed_fleet.trust import NotTrusted, Trust

RENEW_SHARE: Final = 0.5
"""Share of a token's time after which it is renewed."""

type Ask = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Asks a subject, as a request, and returns the answer's document."""


def is_due(identity: Identity, *, now: float) -> bool:
    """Returns True if half of the time is over for which the credentials are valid."""
    if identity.expires is None:
        return False
    return now >= identity.issued + (identity.expires - identity.issued) * RENEW_SHARE


async def renew(home: Home, ask: Ask, *, now: float) -> bool:
    """Requests newer credentials if it is time; returns True if there are new ones. Raises what `ask` does,
    RemoteRefused if they are refused or not the fleet's, StoreError."""
    mine = await asyncio.to_thread(home.identity)
    if not is_due(mine, now=now):
        return False
    told = await ask(f"syn.adm.renew.{mine.name}", {"key": mine.pair.public})
    if (failed := told.get("error")) is not None:
        said = failed.get("message") if isinstance(failed, dict) else failed
        raise RemoteRefused(f"this host's credentials are not renewed: {str(said)[:300]}")
    try:
        trust = mine.trust.renewed(str(told.get("account_jwt")))
        entry = told.get("entry") if mine.given else None
        await asyncio.to_thread(
            home.keep_token, str(told.get("jwt")), trust, now=now, entry=None if entry is None else str(entry)
        )
    except NotTrusted as error:
        raise RemoteRefused(f"the answer about this host's credentials is not the fleet's: {error}") from None
    return True


def keep_urls(home: Home, body: bytes) -> bool:
    """Saves the brokers' addresses that their admin has published (`admin.BROKERS_KEY`); returns True if they are new.
    Addresses that a person has written into config.toml stay, and have precedence. Raises StoreError."""
    try:
        urls = read_object(body)["urls"]
        known = tomllib.loads(home.config_file.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError):
        return False
    right = isinstance(urls, list) and 0 < len(urls) <= URLS_MAX and all(isinstance(url, str) for url in urls)
    if not right or not all(map(is_url, urls)) or set(urls) <= set(known.get("urls") or ()):
        return False
    home.configure({**known, "urls": list(dict.fromkeys([*urls, *known.get("urls", ())]))[:URLS_MAX]})
    return True


def keep_newest(home: Home, trust: Trust) -> bool:
    """Saves `trust` if it is newer than the saved one; returns True then. Raises ConfigError, StoreError."""
    newest = home.identity().trust.renewed(trust.account_token)
    if newest.account_token == home.identity().trust.account_token:
        return False
    home.keep_trust(newest)
    return True
