"""Accounts that do not work: which agents share one, and what tells, without a message, that one may work again.

A turn that fails because nobody is signed in, a bill is not paid, a model is gone or the network is down says nothing
of its message: the next one would fail alike. So all messages of every agent of that account wait. An agent holds what
was met (`AgentRecord.limit`), and the others of its account see that here. How accounts are told apart, and what is
looked at, the profile says (`AccountSpec`); what tells them apart may be a key, so it is never kept nor shown.
"""

import asyncio
import contextlib
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from synapsed.model.records import AgentRecord, LimitRecord
from synapsed.outgoing import address_of
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import AccountSpec

REACH_S = 5.0
"""How long an address may take to answer."""

_VARIABLE = re.compile(r"\$(\w+)")
_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


class AccountMember(Protocol):
    """An agent, as those of its account know it."""

    @property
    def record(self) -> AgentRecord: ...

    @property
    def profile(self) -> Profile: ...

    @property
    def trouble(self) -> LimitRecord | None:
        """What it met that is not over."""
        ...

    def lift(self, why: str) -> None:
        """Its trouble is over."""
        ...

    def changed(self, why: str) -> None:
        """Another agent's trouble with the account began, or is over."""
        ...


class Accounts:
    """Of all agents. `environ` is the daemon's environment."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._members: list[AccountMember] = []
        self._troubled: list[AccountMember] = []

    def add(self, member: AccountMember) -> None:
        self._members.append(member)
        self.note(member)

    def remove(self, member: AccountMember) -> None:
        """The agent is gone, and what it met with it."""
        self._members = [each for each in self._members if each is not member]
        if member in self._troubled:
            self._troubled.remove(member)
            self.tell(member, "another agent's trouble with the account is gone with it")

    def note(self, member: AccountMember) -> None:
        """Look whether it has trouble now."""
        self._troubled = [each for each in self._troubled if each is not member]
        if member.trouble is not None:
            self._troubled.append(member)

    def trouble(self, member: AccountMember) -> LimitRecord | None:
        """What another agent of its account met."""
        others = (each for each in self._troubled if each is not member)
        return next((each.trouble for each in others if self._shared(each, member)), None)

    def lift(self, by: AccountMember, why: str) -> None:
        """The account works, or is to be tried again."""
        for each in list(self._troubled):
            if each is not by and self._shared(each, by):
                each.lift(why)

    def tell(self, by: AccountMember, why: str) -> None:
        """What an agent met began, or is over."""
        for each in list(self._members):
            if each is not by and self._shared(each, by):
                each.changed(why)

    def environment(self, member: AccountMember) -> dict[str, str]:
        """What of its program's environment says which account it has."""
        record = member.record
        base = self._environ if record.env is None else record.env
        return {**base, **record.connection, **member.profile.env, **record.extra_env}

    def _shared(self, one: AccountMember, other: AccountMember) -> bool:
        return (key := self._key(one)) is not None and key == self._key(other)

    def _key(self, member: AccountMember) -> tuple[str, ...] | None:
        """None where accounts of its program are not told apart."""
        apart = member.profile.account.apart
        env = self.environment(member)
        return (member.record.profile, *(env.get(name, "") for name in apart)) if apart else None


def marks_of(spec: AccountSpec, env: Mapping[str, str]) -> str:
    """Tells whether one of the account's files has changed since. Reads no file's content."""
    found = []
    for name in filter(None, (_filled(path, env) for path in spec.files)):
        with contextlib.suppress(OSError):
            seen = Path(name).stat()
            found.append(f"{name}:{seen.st_ino}:{seen.st_size}:{seen.st_mtime_ns}")
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]


def endpoint_of(spec: AccountSpec, told: str, env: Mapping[str, str]) -> str:
    """The address that is to be reached, "" if none is known: what the program `told`, else what the profile says."""
    return next(filter(None, (told, *(_filled(each, env) for each in spec.endpoints))), "")


def dialled(url: str, env: Mapping[str, str]) -> tuple[str, int] | None:
    """Host and port to be reached for `url`: those of the proxy, where one stands between. None: there is no sense in
    it."""
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
    """Whether a connection is taken there. Nothing is sent."""
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
    """With its variables replaced; "" where one of them is not set."""
    if not all(env.get(name) for name in _VARIABLE.findall(text)):
        return ""
    return _VARIABLE.sub(lambda match: env[match[1]], text)
