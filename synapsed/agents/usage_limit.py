"""The usage limit of one agent: when it began, when it is tried again, what becomes of a task.

A limit begins when a turn fails by it. It is over at the time that the program told, or else the next waiting task
tries it out after a pause that doubles, and is put back if it was too early. A turn that ends forgets it; a person's
priority message, interrupt or restart lifts it at once. Times are Unix seconds. Where a clock is set, it is over when
the date has come, or when so much time has passed as there was until then: whichever is first, for to try costs little.
"""

from datetime import tzinfo
from typing import Any, Literal, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from synapsed.agents.actor import Actor
from synapsed.agents.part_interfaces import LimitOwner
from synapsed.aio import Timer
from synapsed.clock import Clock, backoff, iso
from synapsed.config import UsageLimitPolicy
from synapsed.model.agent import Activity
from synapsed.model.events import ActivityChanged, AttentionChanged, EventData
from synapsed.model.records import AgentRecord, LimitRecord
from synapsed.model.task import new_id
from synapsed.terminal.limit_notices import Limit, find_limit

EVIDENCE_MAX = 300
"""Characters of the program's words."""
LOOK_EVERY_S = 60.0

SLACK_S = 2.0
"""After the time that the program told: clocks differ."""


def begun(before: LimitRecord | None, limit: Limit, policy: UsageLimitPolicy, now: float) -> LimitRecord:
    """The limit that is in force from `now`; `before` is the one that was tried out."""
    attempt = before.attempt + 1 if before is not None else 1
    pause = backoff(attempt - 1, initial=policy.probe, factor=2.0, maximum=policy.maximum)
    at = limit.until + SLACK_S if limit.until is not None else now + pause
    return LimitRecord(
        since=now, until=limit.until, resume_at=at, attempt=attempt, words=limit.words, attention=new_id()
    )


def lifted(limit: LimitRecord) -> LimitRecord:
    """It is tried out, or a person wants it over."""
    return limit.model_copy(update={"lifted": True})


def continues(limit: LimitRecord, policy: UsageLimitPolicy) -> bool:
    """Whether the task that met the limit waits for its end: by policy, or because it was only sent to try it out."""
    return limit.attempt < policy.attempts and (policy.task == "continue" or limit.attempt > 1)


def zone_of(record: AgentRecord) -> tzinfo | None:
    """Where the agent's program thinks it is, if its environment says so; None for where this machine is."""
    name = {**(record.env or {}), **record.extra_env}.get("TZ", "")
    try:
        return ZoneInfo(name.removeprefix(":")) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def resumes_at(limit: LimitRecord | None) -> float | None:
    """When a limit in force ends; None if no limit is in force."""
    return limit.resume_at if limit is not None and not limit.lifted else None


def _attention(limit: LimitRecord, state: Literal["opened", "gone"]) -> AttentionChanged:
    """What a person is told of it. One that an older program has recorded was never told of."""
    return AttentionChanged(
        id=limit.attention or new_id(),
        state=state,
        kind="limit",
        question=limit.words[:EVIDENCE_MAX],
        until=iso(limit.resume_at),
    )


class LimitKeeper(Protocol):
    """Where the limit is kept: with the agent's record, in one commit with what tells of it."""

    @property
    def record(self) -> AgentRecord: ...

    async def amend(self, *told: EventData, **fields: Any) -> None:
        """Change the record's `fields`, durably."""
        ...


class Usage:
    """The limit of one agent in force, and the timer that ends it. Everything runs in the agent's actor."""

    def __init__(self, keeper: LimitKeeper, owner: LimitOwner, *, clock: Clock, actor: Actor) -> None:
        self._keeper = keeper
        self._owner = owner
        self._clock = clock
        self._actor = actor
        self._timer: Timer | None = None
        self._over = 0.0
        """By the boot clock, when the limit in force has lasted for as long as it was to."""

    @property
    def in_force(self) -> LimitRecord | None:
        limit = self._keeper.record.limit
        return limit if resumes_at(limit) is not None else None

    def find(self, text: str) -> Limit | None:
        """The limit that the program's words tell of."""
        return find_limit(self._owner.profile.limit, text, self._clock.wall(), zone_of(self._keeper.record))

    async def meet(self, limit: Limit) -> LimitRecord:
        """The program said so: no message is given to it until that is over."""
        now = self._clock.wall()
        record = begun(self._keeper.record.limit, limit, self._owner.config.usage_limit, now)
        told = ActivityChanged(activity=Activity.LIMITED, evidence=f"limit: {record.words}"[:EVIDENCE_MAX])
        await self._keeper.amend(told, _attention(record, "opened"), limit=record)
        self._actor.log.warning("usage limit", words=record.words, until=record.until, resume_at=record.resume_at)
        self.watch()
        return record

    def continues(self, limit: LimitRecord) -> bool:
        """Whether the task that met it waits for its end."""
        return continues(limit, self._owner.config.usage_limit)

    def watch(self) -> None:
        """Plan the end of the limit in force, if there is one; also after a restart of the daemon."""
        self._stop_timer()
        if (limit := self.in_force) is not None:
            left = min(limit.resume_at - self._clock.wall(), limit.resume_at - limit.since)
            self._over = self._clock.boot() + left
            self._look_again(limit)

    def _left(self, limit: LimitRecord) -> float:
        """Seconds until it is over; 0 or less: it is."""
        return min(limit.resume_at - self._clock.wall(), self._over - self._clock.boot())

    def _look_again(self, limit: LimitRecord) -> None:
        """Now and then: the machine may sleep, and clocks be set."""
        delay = min(max(self._left(limit), 0.0), LOOK_EVERY_S)
        self._timer = self._actor.post_later(delay, self._due)

    async def forget(self, why: str) -> None:
        """There is no limit, or a person does not want to wait for its end."""
        self._stop_timer()
        if (limit := self._keeper.record.limit) is not None:
            told = () if limit.lifted else (self._told(why), _attention(limit, "gone"))
            await self._keeper.amend(*told, limit=None)

    async def _due(self) -> None:
        self._stop_timer()
        if (limit := self.in_force) is None:
            return
        if self._left(limit) > 0:
            self._look_again(limit)
            return
        over = _attention(limit, "gone")
        await self._keeper.amend(self._told("the limit is tried out"), over, limit=lifted(limit))
        self._actor.log.info("the usage limit is tried out", attempt=limit.attempt)
        await self._owner.limit_over()

    def _told(self, why: str) -> ActivityChanged:
        return ActivityChanged(activity=self._owner.activity, evidence=why)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
