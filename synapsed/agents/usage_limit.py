"""The usage limit of one agent: its beginning, its next try, its effect on a task; and accounts that do not work: the
agents that share one, and the signs, without a message, that one may work again.

A limit begins when a turn fails by it. It is over at the time that the program named, or else the next waiting task
tries it after a pause that doubles, and is put back if it was too early. A turn that ends well forgets it; a person's
priority message, interrupt or restart lifts it at once. Times are Unix seconds. If a clock is set, the limit is over
when the date has come, or when the time that remained has passed: whichever is first, because a try costs little.

An account that does not work holds messages likewise, but not by time: this is over when its files change, when an
address that could not be reached can be, when a turn of it ends well, or when a person wants it tried.

A turn that fails because the account is signed out, a bill is not paid, a model is gone or the network is down says
nothing about its message: the next one would fail alike. So all messages of every agent of that account wait. An agent
holds its own trouble (`AgentRecord.limit`), and the others of its account see it here. The profile says how accounts
are told apart, and which files matter (`AccountSpec`); the distinguishing values may be keys, so they are never kept
nor shown.
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
"""Seconds that an address has to answer."""

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
        """Returns its trouble that is not over."""
        ...

    def lift(self, why: str) -> None:
        """Ends its trouble."""
        ...

    def changed(self, why: str) -> None:
        """Notes that another agent's trouble with the account began, or is over."""
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
        """Removes an agent, and its trouble with it."""
        self._members = [each for each in self._members if each is not member]
        if member in self._troubled:
            self._troubled.remove(member)
            self.tell(member, "another agent's trouble with the account is gone with it")

    def note(self, member: AccountMember) -> None:
        """Checks whether it has trouble now."""
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
                each.lift(why)

    def tell(self, by: AccountMember, why: str) -> None:
        """Informs the other agents of the account that an agent's trouble began, or is over."""
        for each in list(self._members):
            if each is not by and self._shared(each, by):
                each.changed(why)

    def environment(self, member: AccountMember) -> dict[str, str]:
        """Returns the variables of its program's environment that identify its account."""
        record = member.record
        base = self._environ if record.env is None else record.env
        return {**base, **record.connection, **member.profile.env, **record.extra_env}

    def _shared(self, one: AccountMember, other: AccountMember) -> bool:
        return (key := self._key(one)) is not None and key == self._key(other)

    def _key(self, member: AccountMember) -> tuple[str, ...] | None:
        """Returns the key of its account; None if accounts of its program are not told apart."""
        apart = member.profile.account.apart
        env = self.environment(member)
        return (member.record.profile, *(env.get(name, "") for name in apart)) if apart else None


def marks_of(spec: AccountSpec, env: Mapping[str, str]) -> str:
    """Returns a mark that changes with the account's files. Reads no file's content."""
    found = []
    for name in filter(None, (_filled(path, env) for path in spec.files)):
        with contextlib.suppress(OSError):
            seen = Path(name).stat()
            found.append(f"{name}:{seen.st_ino}:{seen.st_size}:{seen.st_mtime_ns}")
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]


def endpoint_of(spec: AccountSpec, told: str, env: Mapping[str, str]) -> str:
    """Returns the address that must be reached, "" if none is known: the one that the program `told`, else the
    profile's."""
    return next(filter(None, (told, *(_filled(each, env) for each in spec.endpoints))), "")


def dialled(url: str, env: Mapping[str, str]) -> tuple[str, int] | None:
    """Returns host and port to be reached for `url`: those of the proxy, if there is one. None: the URL makes no
    sense."""
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
    """Returns whether a connection is accepted there. Nothing is sent."""
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


EVIDENCE_MAX = 300
"""Largest number of characters kept of the program's words."""
LOOK_EVERY_S = 60.0
LOOK_AT_ACCOUNT_S = 5.0
"""Seconds between looks at the files of an account that does not work."""

SLACK_S = 2.0
"""Seconds added to the time that the program named: clocks differ."""


def begun(before: LimitRecord | None, limit: Limit, policy: UsageLimitPolicy, now: float) -> LimitRecord:
    """Returns the limit that is in force from `now`; `before` is the one that was tried."""
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
    """Returns the limit as lifted: it is being tried, or a person wants it over."""
    return limit.model_copy(update={"lifted": True})


def continues(limit: LimitRecord, policy: UsageLimitPolicy) -> bool:
    """Returns whether the task that met the limit waits for its end: by policy, or because it was sent only to try it.
    A task that failed by the account is not given again: nobody knows the end, nor how much of it the program has."""
    return not limit.account and limit.attempt < policy.attempts and (policy.task == "continue" or limit.attempt > 1)


def zone_of(record: AgentRecord) -> tzinfo | None:
    """Returns the time zone of the agent's program, if its environment names one; None for this machine's."""
    name = {**(record.env or {}), **record.extra_env}.get("TZ", "")
    try:
        return ZoneInfo(name.removeprefix(":")) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _attention(limit: LimitRecord, state: Literal["opened", "gone"], what_to_do: str = "") -> list[AttentionChanged]:
    """Returns the inbox events about it. A limit that an older program has recorded was never reported."""
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
    """Returns the advice to the person, for the inbox."""
    ways = [spec.remedy] if spec.remedy and not trouble.reach else []
    seen = "it is reached again" if trouble.reach else "its files change" if spec.files else ""
    by_itself = f"by themselves when {seen}, or at once " if seen else ""
    ways.append(f"messages of this account wait; they go on {by_itself}with: synapsectl cancel {name}")
    return "; ".join(ways)


class LimitKeeper(Protocol):
    """Keeps the limit with the agent's record, in one commit with the events that report it."""

    @property
    def record(self) -> AgentRecord: ...

    async def amend(self, *told: EventData, **fields: Any) -> None:
        """Changes the record's `fields`, durably."""
        ...


class Usage:
    """Holds the limit of one agent in force, and the timer that ends it. Everything runs in the agent's actor."""

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
        """Time, by the boot clock, when the limit in force has lasted as long as expected."""
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
        """Returns the usage limit in force."""
        own = self._own
        return own if own is not None and not own.account else None

    @property
    def trouble(self) -> LimitRecord | None:
        """Returns its own trouble with its account."""
        own = self._own
        return own if own is not None and own.account else None

    @property
    def in_force(self) -> LimitRecord | None:
        """Returns the limit that holds messages back: its own, or another agent's of its account."""
        return self._own or self._accounts.trouble(self)

    @property
    def moment(self) -> Moment:
        """Returns the present moment by its clocks."""
        found = self.in_force
        return Moment(limited=found is not None and not found.account, account=found is not None and found.account)

    def find(self, text: str) -> Limit | None:
        """Returns the limit in the program's words."""
        return find_limit(self._owner.profile.limit, text, self._clock.wall(), zone_of(self._keeper.record))

    def trouble_in(self, code: str, text: str) -> Limit | None:
        """Returns the account's trouble in a turn's failure."""
        return find_trouble(self._owner.profile.account, code, text)

    async def meet(self, limit: Limit) -> LimitRecord:
        """Begins a limit that the program reported: no message is given to it until that is over."""
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
        """Returns whether the task that met it waits for its end."""
        return continues(limit, self._owner.config.usage_limit)

    def watch(self) -> None:
        """Plans the end of the limit in force, if there is one; also after a restart of the daemon."""
        self._stop_timer()
        if (limit := self._own) is not None:
            left = min(limit.resume_at - self._clock.wall(), limit.resume_at - limit.since)
            self._over = self._clock.boot() + left
            self._look_again(limit)

    def _left(self, limit: LimitRecord) -> float:
        """Returns the seconds until it is over; 0 or less: it is."""
        return min(limit.resume_at - self._clock.wall(), self._over - self._clock.boot())

    def _look_again(self, limit: LimitRecord) -> None:
        """Looks at it now and then: the machine may sleep, and clocks be set."""
        delay = LOOK_AT_ACCOUNT_S if limit.account else min(max(self._left(limit), 0.0), LOOK_EVERY_S)
        self._timer = self._actor.post_later(delay, self._due)

    async def forget(self, why: str) -> None:
        """Forgets the limit, because it is over, or a person does not want to wait for its end."""
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
        """Checks whether the account that failed may work again; costs no message."""
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
        """Has its messages wait, or go on."""
        if self._owner.activity is Activity.READY:
            await self._keeper.amend(self._told(why))
        await self._owner.limit_over()

    def leave(self) -> None:
        """Leaves the account, because the agent is removed."""
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
