"""The usage limit of one agent: when it began, when it is tried again, what becomes of a task; and accounts that do not
work: which agents share one, and what tells, without a message, that one may work again.

A limit begins when a turn fails by it. It is over at the time that the program told, or else the next waiting task
tries it out after a pause that doubles, and is put back if it was too early. A turn that ends forgets it; a person's
priority message, interrupt or restart lifts it at once. Times are Unix seconds. Where a clock is set, it is over when
the date has come, or when so much time has passed as there was until then: whichever is first, for to try costs little.

An account that does not work is held likewise, but not by time: it is over when its files change, when what could not
be reached can be, when a turn of it ends well, or when a person wants it tried.

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
from datetime import tzinfo
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from synapsed.agents.actor import Actor
from synapsed.agents.part_interfaces import LimitOwner
from synapsed.aio import Timer
from synapsed.clock import Clock, backoff, iso
from synapsed.config.config import UsageLimitPolicy
from synapsed.model.agent import Activity
from synapsed.model.events import ActivityChanged, AttentionChanged, EventData
from synapsed.model.records import AgentRecord, LimitRecord
from synapsed.model.task import new_id
from synapsed.outgoing import address_of
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import AccountSpec
from synapsed.pty.readiness import Moment
from synapsed.terminal.limit_notices import Limit, find_limit, find_trouble

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


EVIDENCE_MAX = 300
"""Characters of the program's words."""
LOOK_EVERY_S = 60.0
LOOK_AT_ACCOUNT_S = 5.0
"""How often the files of an account that does not work are looked at."""

SLACK_S = 2.0
"""After the time that the program told: clocks differ."""


def begun(before: LimitRecord | None, limit: Limit, policy: UsageLimitPolicy, now: float) -> LimitRecord:
    """The limit that is in force from `now`; `before` is the one that was tried out."""
    attempt = before.attempt + 1 if before is not None else 1
    pause = backoff(attempt - 1, initial=policy.probe, factor=2.0, maximum=policy.maximum)
    at = limit.until + SLACK_S if limit.until is not None else now + pause
    return LimitRecord(
        since=now,
        until=limit.until,
        resume_at=at,
        attempt=attempt,
        words=limit.words,
        attention=new_id(),
        account=bool(limit.code),
    )


def lifted(limit: LimitRecord) -> LimitRecord:
    """It is tried out, or a person wants it over."""
    return limit.model_copy(update={"lifted": True})


def continues(limit: LimitRecord, policy: UsageLimitPolicy) -> bool:
    """Whether the task that met the limit waits for its end: by policy, or because it was only sent to try it out. One
    that the account has failed is not given again: nobody knows when, and what the program has of it."""
    return not limit.account and limit.attempt < policy.attempts and (policy.task == "continue" or limit.attempt > 1)


def zone_of(record: AgentRecord) -> tzinfo | None:
    """Where the agent's program thinks it is, if its environment says so; None for where this machine is."""
    name = {**(record.env or {}), **record.extra_env}.get("TZ", "")
    try:
        return ZoneInfo(name.removeprefix(":")) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _attention(limit: LimitRecord, state: Literal["opened", "gone"], what_to_do: str = "") -> list[AttentionChanged]:
    """What a person is told of it. One that an older program has recorded was never told of."""
    if limit.account and limit.attention is None:
        return []
    words = limit.words[:EVIDENCE_MAX]
    told = AttentionChanged(
        id=limit.attention or new_id(),
        state=state,
        kind="account" if limit.account else "limit",
        question=f"{words}\n{what_to_do}" if what_to_do else words,
        until=None if limit.account else iso(limit.resume_at),
    )
    return [told]


def _what_to_do(spec: AccountSpec, trouble: LimitRecord, name: str) -> str:
    """For the person, in the inbox."""
    ways = [spec.remedy] if spec.remedy and not trouble.reach else []
    seen = "it is reached again" if trouble.reach else "its files change" if spec.files else ""
    by_itself = f"by themselves when {seen}, or at once " if seen else ""
    ways.append(f"messages of this account wait; they go on {by_itself}with: synapsectl cancel {name}")
    return "; ".join(ways)


class LimitKeeper(Protocol):
    """Where the limit is kept: with the agent's record, in one commit with what tells of it."""

    @property
    def record(self) -> AgentRecord: ...

    async def amend(self, *told: EventData, **fields: Any) -> None:
        """Change the record's `fields`, durably."""
        ...


class Usage:
    """The limit of one agent in force, and the timer that ends it. Everything runs in the agent's actor."""

    def __init__(
        self, keeper: LimitKeeper, owner: LimitOwner, *, accounts: Accounts, clock: Clock, actor: Actor
    ) -> None:
        self._keeper = keeper
        self._owner = owner
        self._accounts = accounts
        self._clock = clock
        self._actor = actor
        self._timer: Timer | None = None
        self._over = 0.0
        """By the boot clock, when the limit in force has lasted for as long as it was to."""
        accounts.add(self)

    @property
    def record(self) -> AgentRecord:
        return self._keeper.record

    @property
    def profile(self) -> Profile:
        return self._owner.profile

    @property
    def _own(self) -> LimitRecord | None:
        limit = self._keeper.record.limit
        return limit if limit is not None and not limit.lifted else None

    @property
    def limit(self) -> LimitRecord | None:
        """The usage limit in force."""
        own = self._own
        return own if own is not None and not own.account else None

    @property
    def trouble(self) -> LimitRecord | None:
        """What it met itself of its account that does not work."""
        own = self._own
        return own if own is not None and own.account else None

    @property
    def in_force(self) -> LimitRecord | None:
        """What keeps messages back: its own, or what another agent of its account met."""
        return self._own or self._accounts.trouble(self)

    @property
    def moment(self) -> Moment:
        """What of a moment it knows."""
        found = self.in_force
        return Moment(limited=found is not None and not found.account, account=found is not None and found.account)

    def find(self, text: str) -> Limit | None:
        """The limit that the program's words tell of."""
        return find_limit(self._owner.profile.limit, text, self._clock.wall(), zone_of(self._keeper.record))

    def trouble_in(self, code: str, text: str) -> Limit | None:
        """The trouble with the account that a turn's failure tells of."""
        return find_trouble(self._owner.profile.account, code, text)

    async def meet(self, limit: Limit) -> LimitRecord:
        """The program said so: no message is given to it until that is over."""
        now = self._clock.wall()
        record = begun(self._keeper.record.limit, limit, self._owner.config.usage_limit, now)
        if record.account:
            return await self._meet_trouble(limit, record)
        told = ActivityChanged(activity=Activity.LIMITED, evidence=f"limit: {record.words}"[:EVIDENCE_MAX])
        await self._keeper.amend(told, *_attention(record, "opened"), limit=record)
        self._actor.log.warning("usage limit", words=record.words, until=record.until, resume_at=record.resume_at)
        self.watch()
        return record

    async def _meet_trouble(self, limit: Limit, record: LimitRecord) -> LimitRecord:
        spec, env = self.profile.account, self._accounts.environment(self)
        marks = await asyncio.to_thread(marks_of, spec, env)
        reach = endpoint_of(spec, limit.reach, env) if limit.reach is not None else ""
        known = {"attention": None} if self._accounts.trouble(self) is not None else {}
        record = record.model_copy(update={"marks": marks, "reach": reach, **known})
        what = _what_to_do(spec, record, self._keeper.record.name)
        await self._keeper.amend(*_attention(record, "opened", what), limit=record)
        self._actor.log.warning("its account does not work", words=record.words, marks=marks)
        self._accounts.note(self)
        self._accounts.tell(self, f"its account does not work: {record.words}"[:EVIDENCE_MAX])
        self.watch()
        return record

    def continues(self, limit: LimitRecord) -> bool:
        """Whether the task that met it waits for its end."""
        return continues(limit, self._owner.config.usage_limit)

    def watch(self) -> None:
        """Plan the end of the limit in force, if there is one; also after a restart of the daemon."""
        self._stop_timer()
        if (limit := self._own) is not None:
            left = min(limit.resume_at - self._clock.wall(), limit.resume_at - limit.since)
            self._over = self._clock.boot() + left
            self._look_again(limit)

    def _left(self, limit: LimitRecord) -> float:
        """Seconds until it is over; 0 or less: it is."""
        return min(limit.resume_at - self._clock.wall(), self._over - self._clock.boot())

    def _look_again(self, limit: LimitRecord) -> None:
        """Now and then: the machine may sleep, and clocks be set."""
        delay = LOOK_AT_ACCOUNT_S if limit.account else min(max(self._left(limit), 0.0), LOOK_EVERY_S)
        self._timer = self._actor.post_later(delay, self._due)

    async def forget(self, why: str) -> None:
        """There is no limit, or a person does not want to wait for its end."""
        self._stop_timer()
        if (limit := self._keeper.record.limit) is not None:
            told: list[EventData] = [] if limit.lifted else [self._told(why), *_attention(limit, "gone")]
            await self._keeper.amend(*told, limit=None)
            self._over_for_others(limit, why)
        self._accounts.lift(self, why)

    async def _due(self) -> None:
        self._stop_timer()
        if (limit := self._own) is None:
            return
        if limit.account:
            self._actor.spawn(self._look_at(limit))
        elif self._left(limit) > 0:
            self._look_again(limit)
        else:
            await self._try_out(limit, "the limit is tried out")

    async def _try_out(self, limit: LimitRecord, why: str) -> None:
        await self._keeper.amend(self._told(why), *_attention(limit, "gone"), limit=lifted(limit))
        self._actor.log.info("messages are tried again", why=why, attempt=limit.attempt)
        self._over_for_others(limit, why)
        await self._owner.limit_over()

    # --- the account ---

    async def _look_at(self, limit: LimitRecord) -> None:
        """Whether the account that failed may work again; costs no message."""
        env, why = self._accounts.environment(self), ""
        if await asyncio.to_thread(marks_of, self.profile.account, env) != limit.marks:
            why = "the account's files have changed"
        elif limit.reach and self._left(limit) <= 0 and await is_reached(limit.reach, env):
            why = "the service is reached again"
        self._actor.post(self._looked, limit, why)

    async def _looked(self, limit: LimitRecord, why: str) -> None:
        if self._own is not limit:
            return
        if not why:
            self._look_again(limit)
            return
        await self._try_out(limit, why)
        self._accounts.lift(self, why)

    def lift(self, why: str) -> None:
        self._actor.post(self._lift, why)

    async def _lift(self, why: str) -> None:
        self._stop_timer()
        if (limit := self.trouble) is not None:
            await self._try_out(limit, why)

    def changed(self, why: str) -> None:
        self._actor.post(self._changed, why)

    async def _changed(self, why: str) -> None:
        """Its messages wait, or go on."""
        if self._owner.activity is Activity.READY:
            await self._keeper.amend(self._told(why))
        await self._owner.limit_over()

    def leave(self) -> None:
        """The agent is removed."""
        self._accounts.remove(self)

    def _over_for_others(self, limit: LimitRecord, why: str) -> None:
        self._accounts.note(self)
        if limit.account and not limit.lifted:
            self._accounts.tell(self, why)

    def _told(self, why: str) -> ActivityChanged:
        return ActivityChanged(activity=self._owner.activity, evidence=why)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
