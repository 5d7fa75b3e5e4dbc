"""Knows the accounts that agents share, and finds, without a message, that an account which did not work may work
again.

The profile says how accounts are distinguished, and which files matter (`AccountSpec`). The distinguishing values may
be keys, so they are never saved or shown.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from synapsed.interfaces import HoldOwner
from synapsed.outgoing import address_of
from synapsed.parts.usage_limits.limit_record import LimitRecord
from synapsed.profiles.setting_spec import AccountSpec
from synapsed.shared.regex import regex

REACH_S = 5.0
"""Seconds that an address has to answer."""

_VARIABLE = regex(r"\$(\w+)")
_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


class AccountMember(Protocol):
    """An agent, as the other agents of its account see it."""

    @property
    def owner(self) -> HoldOwner: ...

    @property
    def trouble(self) -> LimitRecord | None:
        """Returns its trouble with the account, None if the account works."""
        ...

    def end_trouble(self, why: str) -> None:
        """Ends its trouble."""
        ...

    def changed(self, why: str) -> None:
        """Reports that another agent's trouble with the account began, or is over."""
        ...


class Accounts:
    """Tracks the accounts of all agents. `environ` is the daemon's environment."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._members: list[AccountMember] = []
        self._troubled: list[AccountMember] = []

    def add(self, member: AccountMember) -> None:
        self._members.append(member)
        self.note(member)

    def remove(self, member: AccountMember) -> None:
        """Removes an agent, and so its trouble."""
        self._members = [each for each in self._members if each is not member]
        if member in self._troubled:
            self._troubled.remove(member)
            self.tell(member, "another agent's trouble with the account is gone with it")

    def note(self, member: AccountMember) -> None:
        """Notes whether the agent has trouble now."""
        self._troubled = [each for each in self._troubled if each is not member]
        if member.trouble is not None:
            self._troubled.append(member)

    def trouble(self, member: AccountMember) -> LimitRecord | None:
        """Returns the trouble that another agent of its account has."""
        others = (each for each in self._troubled if each is not member)
        return next((each.trouble for each in others if self._shared(each, member)), None)

    def lift(self, by: AccountMember, why: str) -> None:
        """Notes that the account works, or is to be tried again."""
        for each in list(self._troubled):
            if each is not by and self._shared(each, by):
                each.end_trouble(why)

    def tell(self, by: AccountMember, why: str) -> None:
        """Notifies the other agents of the account that an agent's trouble began, or is over."""
        for each in list(self._members):
            if each is not by and self._shared(each, by):
                each.changed(why)

    def environment(self, member: AccountMember) -> dict[str, str]:
        """Returns the variables of its program's environment that identify its account."""
        record = member.owner.record
        base = self._environ if record.env is None else record.env
        return {**base, **record.connection, **member.owner.profile.env, **record.extra_env}

    def _shared(self, one: AccountMember, other: AccountMember) -> bool:
        return (key := self._key(one)) is not None and key == self._key(other)

    def _key(self, member: AccountMember) -> tuple[str, ...] | None:
        """Returns the key of its account; None if accounts of its program are not distinguished."""
        apart = member.owner.profile.account.apart
        env = self.environment(member)
        return (member.owner.record.profile, *(env.get(name, "") for name in apart)) if apart else None


def marks_of(spec: AccountSpec, env: Mapping[str, str]) -> str:
    """Returns a mark that changes with the account's files. Reads no file's content."""
    found = []
    for name in filter(None, (_filled(path, env) for path in spec.files)):
        with contextlib.suppress(OSError):
            seen = Path(name).stat()
            found.append(f"{name}:{seen.st_ino}:{seen.st_size}:{seen.st_mtime_ns}")
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]


def endpoint_of(spec: AccountSpec, told: str, env: Mapping[str, str]) -> str:
    """Returns the address that must be reached: the one that the program reported (`told`), else the profile's; "" if
    no address is known."""
    return next(filter(None, (told, *(_filled(each, env) for each in spec.endpoints))), "")


def dialled(url: str, env: Mapping[str, str]) -> tuple[str, int] | None:
    """Returns host and port to be reached for `url`: those of the proxy, if there is one; None for an invalid URL."""
    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    proxy = next((env[name] for name in _PROXIES if env.get(name)), "")
    here = host == "localhost" or ((address := address_of(host or "")) is not None and address.is_loopback)
    if proxy and not here:
        return dialled(proxy, {})
    return (host, port or (80 if parts.scheme == "http" else 443)) if host else None


async def is_reached(url: str, env: Mapping[str, str]) -> bool:
    """Returns True if a connection to `url` is accepted. Sends nothing."""
    if (place := dialled(url, env)) is None:
        return False
    try:
        async with asyncio.timeout(REACH_S):
            _, writer = await asyncio.open_connection(*place)
    except (OSError, TimeoutError, ValueError):
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True


def _filled(text: str, env: Mapping[str, str]) -> str:
    """Returns the text with its variables replaced; "" if one of them is not set."""
    if not all(env.get(name) for name in _VARIABLE.findall(text)):
        return ""
    return _VARIABLE.sub(lambda match: env[match[1]], text)
