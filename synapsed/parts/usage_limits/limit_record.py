"""The record of a usage limit, or of trouble with an account: its beginning, its next try, its effect on the task that
met it, and its item in the inbox. Pure; times are Unix seconds.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from synapsed.clock import backoff, iso
from synapsed.model.events import AttentionChanged
from synapsed.model.task import new_id
from synapsed.parts.usage_limits.face import UsageLimitPolicy
from synapsed.parts.usage_limits.limit_notices import Limit
from synapsed.profiles.setting_spec import AccountSpec

EVIDENCE_MAX = 300
"""Most characters of the program's words that are saved."""

SLACK_S = 2.0
"""Seconds added to the time that the program named: clocks differ."""


class LimitRecord(BaseModel):
    """A usage limit that the program reported, as it is saved with the agent. `until` is None if the program named no
    time; `attempt` counts how often it was met without a successful turn between; `lifted`: it is being tried again.
    `attention` is the id of its item in the inbox.

    `account`: it is no limit; the account does not work. This does not end by itself: `marks` is the mark of its files
    at that time (`accounts.marks_of`); `reach` is the address that could not be reached, if that was the cause, tried
    from `resume_at` on; without `attention`, another agent of the account has notified the person.
    """

    model_config = ConfigDict(extra="ignore")

    since: float
    until: float | None = None
    resume_at: float
    attempt: int = 1
    words: str = ""
    lifted: bool = False
    attention: str | None = None
    account: bool = False
    marks: str = ""
    reach: str = ""


def begun(before: LimitRecord | None, limit: Limit, policy: UsageLimitPolicy, now: float) -> LimitRecord:
    """Returns the limit that is in force from `now`; `before` is the limit that was tried before."""
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


def continues(limit: LimitRecord, policy: UsageLimitPolicy) -> bool:
    """Returns True if the task that met the limit waits for its end: by policy, or because the task was a try. A task
    that failed because of the account is not given again: the end is unknown, and so is how much of it the program has
    done."""
    return not limit.account and limit.attempt < policy.attempts and (policy.task == "continue" or limit.attempt > 1)


def attention(limit: LimitRecord, state: Literal["opened", "gone"], what_to_do: str = "") -> list[AttentionChanged]:
    """Returns the inbox events about the limit. A limit that an older program has recorded has no item
    yet, and gets a new id."""
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


def what_to_do(spec: AccountSpec, trouble: LimitRecord, name: str) -> str:
    """Returns the advice to the person, for the inbox."""
    ways = [spec.remedy] if spec.remedy and not trouble.reach else []
    seen = "it is reached again" if trouble.reach else "its files change" if spec.files else ""
    by_itself = f"by themselves when {seen}, or at once " if seen else ""
    ways.append(f"messages of this account wait; they go on {by_itself}with: synapsectl cancel {name}")
    return "; ".join(ways)
