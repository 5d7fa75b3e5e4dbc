"""Holds back the messages of agents whose usage limit is reached, or whose account does not work.

A limit begins when a turn fails because of it. It is over at the time that the program named; without one, the next
waiting task tries it after a pause that doubles, and is put back if that was too early. A turn that ends well removes
it; a person's priority message, interrupt or restart lifts it at once. If a clock is set, the limit is over when the
date has come, or when the remaining time has passed, whichever is first, because a try costs little.

An account that does not work holds messages in the same way, but not by time: this is over when its files change, when
an address that could not be reached can be reached, when a turn of the account ends well, or when a person wants a try.

A turn that fails because the account is signed out, a bill is not paid, a model is gone or the network is down says
nothing about its message: the next one would fail too. So all messages of every agent of that account wait. An agent
holds its own trouble (`AgentRecord.limit`), and the others of its account see it in `Accounts`.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import structlog
from pydantic import ValidationError

from synapsed.aio import Timer
from synapsed.clock import Clock, iso
from synapsed.interfaces import (
    Activity,
    Hold,
    HoldActor,
    Holding,
    HoldOwner,
    LinkEvent,
    LinkTurnEnded,
    LinkTurnFailed,
    LinkTurnInterrupted,
    MessageHolder,
    TaskHeld,
)
from synapsed.kernel import Kernel, Running
from synapsed.model.events import ActivityChanged, EventData
from synapsed.model.task import Prompt
from synapsed.parts.usage_limits.accounts import Accounts, endpoint_of, is_reached, marks_of
from synapsed.parts.usage_limits.face import UsageLimitPolicy
from synapsed.parts.usage_limits.limit_notices import Limit, find_limit, find_trouble
from synapsed.parts.usage_limits.limit_record import (
    EVIDENCE_MAX,
    LimitRecord,
    attention,
    begun,
    continues,
    what_to_do,
)
from synapsed.profiles.setting_spec import AccountSpec

LOOK_EVERY_S = 60.0
LOOK_AT_ACCOUNT_S = 5.0
"""Seconds between looks at the files of an account that does not work."""

RATE_LIMITED = "RATE_LIMITED"
"""Code of a task that met a usage limit."""

BY_ACCOUNT = Hold(word="account", reason="its account does not work")


class HeldByLimit:
    """Keeps the limit of one agent, while it is in force, and the timer that ends it; implements `MessageHolder`."""

    def __init__(self, owner: HoldOwner, actor: HoldActor, *, accounts: Accounts, clock: Clock) -> None:
        self.owner = owner
        self._actor = actor
        self._accounts = accounts
        self._clock = clock
        self._log = structlog.stdlib.get_logger("synapsed.usage_limits").bind(
            agent=owner.record.name, agent_id=owner.record.id
        )
        self._limit = _kept(owner.record.limit)
        """The limit that is in force, or being tried."""
        self._shown: Limit | None = None
        """The limit that a dialog shows in the turn in flight."""
        self._timer: Timer | None = None
        self._over = 0.0
        """Time, by the boot clock, when the limit in force has lasted as long as expected."""
        accounts.add(self)
        if self.trouble is not None:
            self.watch()  # even if the agent does not run: others of its account may wait

    # --- what the agent asks ---

    def hold(self) -> Hold | None:
        """Implements `MessageHolder`: its own limit, or another agent's trouble with the same account."""
        if (limit := self._own) is None or limit.account:
            return BY_ACCOUNT if limit is not None or self._accounts.trouble(self) is not None else None
        reason, evidence = "its usage limit is reached", f"limit: {limit.words}"
        return Hold(word="limit", reason=reason, evidence=evidence, until=limit.resume_at)

    def answer(self, prompt: Prompt) -> str | None:
        """Returns the answer to a dialog that reports a limit: the turn then ends because of this limit. Other texts
        may come from the model and do not count: those of permissions, and of questions after their first words."""
        limit = self._find(prompt.prompt) if prompt.type not in ("permission", "screen") else None
        if limit is None or limit.answer is None or not " ".join(prompt.prompt.split()).startswith(limit.words):
            return None
        self._shown = limit
        return limit.answer

    async def turn_over(self, event: LinkEvent, *, stopped: bool) -> TaskHeld | None:
        """Implements `MessageHolder`: a turn that was stopped on request has met no limit."""
        shown, self._shown = self._shown, None
        limit = None if stopped else self._met(event, shown)
        if limit is None:
            return None
        record = await self._meet(limit)
        if continues(record, self._policy):
            return TaskHeld(reason=f"usage limit: it goes on at {iso(record.resume_at)}")
        details = {"until": iso(limit.until)} if limit.until is not None else {}
        details |= {"held": "account"} if record.account else {}
        return TaskHeld(reason=limit.words, code=limit.code or RATE_LIMITED, details=details)

    async def lift(self, why: str) -> None:
        """Forgets the limit, because it is over, or a person does not want to wait for its end."""
        if (limit := self._limit) is not None:
            told: list[EventData] = [] if limit.lifted else [self._told(why), *attention(limit, "gone")]
            await self._keep(None, *told)
            self._over_for_others(limit, why)
        self._stop_timer()  # after it is saved: a limit that is not lifted ends by the timer
        self._accounts.lift(self, why)

    def watch(self) -> None:
        """Plans the end of the limit in force, if there is one; also after a restart of the daemon."""
        self._stop_timer()
        if (limit := self._own) is not None:
            left = min(limit.resume_at - self._clock.wall(), limit.resume_at - limit.since)
            self._over = self._clock.boot() + left
            self._look_again(limit)

    def leave(self) -> None:
        """Leaves the account, because the agent is removed."""
        self._accounts.remove(self)

    # --- its beginning ---

    def _find(self, text: str) -> Limit | None:
        return find_limit(self.owner.profile.limit, text, self._clock.wall(), zone_of(self.owner))

    def _met(self, event: LinkEvent, shown: Limit | None) -> Limit | None:
        """Returns the limit, or the trouble with the account, that ended the turn; None if it ended otherwise. `shown`
        is the limit that a dialog in the turn showed."""
        match event:
            case LinkTurnFailed():
                trouble = find_trouble(self._account, event.code, event.message)
                told = trouble or self._find(event.message) or shown
                return Limit(words=event.message) if told is None and event.code == RATE_LIMITED else told
            case LinkTurnInterrupted():
                return shown
            case LinkTurnEnded() if not event.answer.strip():
                return shown
            case _:
                return None

    async def _meet(self, limit: Limit) -> LimitRecord:
        """Begins a limit that the program reported: the program gets no message until the limit is over."""
        record = begun(self._limit, limit, self._policy, self._clock.wall())
        if (own := self._own) is not None and own.words == record.words and own.account == record.account:
            # The last daemon has met the limit, and was killed before the task's end was saved.
            record = record.model_copy(update={"attempt": own.attempt, "attention": own.attention})
        if record.account:
            return await self._meet_trouble(limit, record)
        told = ActivityChanged(activity=Activity.LIMITED, evidence=f"limit: {record.words}"[:EVIDENCE_MAX])
        await self._keep(record, told, *attention(record, "opened"))
        self._log.warning("usage limit", words=record.words, until=record.until, resume_at=record.resume_at)
        self.watch()
        return record

    async def _meet_trouble(self, limit: Limit, record: LimitRecord) -> LimitRecord:
        spec, env = self._account, self._accounts.environment(self)
        marks = await asyncio.to_thread(marks_of, spec, env)
        reach = endpoint_of(spec, limit.reach, env) if limit.reach is not None else ""
        known = {"attention": None} if self._accounts.trouble(self) is not None else {}
        record = record.model_copy(update={"marks": marks, "reach": reach, **known})
        await self._keep(record, *attention(record, "opened", what_to_do(spec, record, self.owner.record.name)))
        self._log.warning("its account does not work", words=record.words, marks=marks)
        self._accounts.note(self)
        self._accounts.tell(self, f"its account does not work: {record.words}"[:EVIDENCE_MAX])
        self.watch()
        return record

    # --- its end ---

    def _left(self, limit: LimitRecord) -> float:
        """Returns the seconds until the limit is over; 0 or less if it is over."""
        return min(limit.resume_at - self._clock.wall(), self._over - self._clock.boot())

    def _look_again(self, limit: LimitRecord) -> None:
        """Looks at the limit at intervals: the machine may sleep, and clocks may be set."""
        delay = LOOK_AT_ACCOUNT_S if limit.account else min(max(self._left(limit), 0.0), LOOK_EVERY_S)
        self._timer = self._actor.post_later(delay, self._due)

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
        """Lifts the limit: the next task tries it, and the count of attempts goes on."""
        await self._keep(limit.model_copy(update={"lifted": True}), self._told(why), *attention(limit, "gone"))
        self._log.info("messages are tried again", why=why, attempt=limit.attempt)
        self._over_for_others(limit, why)
        await self.owner.recheck()

    # --- the account ---

    @property
    def trouble(self) -> LimitRecord | None:
        """Returns its own trouble with its account."""
        own = self._own
        return own if own is not None and own.account else None

    async def _look_at(self, limit: LimitRecord) -> None:
        """Checks if the account that failed may work again; costs no message."""
        env, why = self._accounts.environment(self), ""
        if await asyncio.to_thread(marks_of, self._account, env) != limit.marks:
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

    def end_trouble(self, why: str) -> None:
        """Implements `AccountMember`."""
        self._actor.post(self._end_trouble, why)

    async def _end_trouble(self, why: str) -> None:
        self._stop_timer()
        if (limit := self.trouble) is not None:
            await self._try_out(limit, why)

    def changed(self, why: str) -> None:
        """Implements `AccountMember`."""
        self._actor.post(self._changed, why)

    async def _changed(self, why: str) -> None:
        """Lets the agent's messages wait, or go on."""
        if self.owner.activity is Activity.READY:
            await self._keep(self._limit, self._told(why))
        await self.owner.recheck()

    def _over_for_others(self, limit: LimitRecord, why: str) -> None:
        self._accounts.note(self)
        if limit.account and not limit.lifted:
            self._accounts.tell(self, why)

    # --- means ---

    @property
    def _own(self) -> LimitRecord | None:
        """Returns its own limit in force."""
        return self._limit if self._limit is not None and not self._limit.lifted else None

    @property
    def _policy(self) -> UsageLimitPolicy:
        policy: UsageLimitPolicy = self.owner.config.usage_limit
        return policy

    @property
    def _account(self) -> AccountSpec:
        spec: AccountSpec = self.owner.profile.account
        return spec

    async def _keep(self, limit: LimitRecord | None, *told: EventData) -> None:
        await self.owner.keep_hold(limit.model_dump() if limit is not None else None, *told)
        self._limit = limit

    def _told(self, why: str) -> ActivityChanged:
        return ActivityChanged(activity=self.owner.activity, evidence=why)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _kept(kept: dict[str, Any] | None) -> LimitRecord | None:
    """Returns the limit that an earlier daemon saved; None for a record that cannot be read: then the next message is a
    try."""
    try:
        return LimitRecord.model_validate(kept) if kept is not None else None
    except ValidationError:
        return None


def zone_of(owner: HoldOwner) -> tzinfo | None:
    """Returns the time zone of the agent's program, if its environment names one; None for this machine's."""
    name = {**(owner.record.env or {}), **owner.record.extra_env}.get("TZ", "")
    try:
        return ZoneInfo(name.removeprefix(":")) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


class UsageLimits(Running):
    """Knows the accounts of all agents. `environ` is the daemon's environment."""

    def __init__(self, environ: Mapping[str, str], clock: Clock) -> None:
        self._accounts = Accounts(environ)
        self._clock = clock
        self.provides = {Holding: self}

    def holder(self, owner: HoldOwner, actor: HoldActor) -> MessageHolder:
        """Implements `Holding`."""
        return HeldByLimit(owner, actor, accounts=self._accounts, clock=self._clock)


@asynccontextmanager
async def opened(kernel: Kernel) -> AsyncIterator[Running]:
    yield UsageLimits(kernel.environ, kernel.clock)
