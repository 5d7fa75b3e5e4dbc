"""Shared tools of all modules that post to receivers elsewhere: client, screening, signing, clock."""

from collections.abc import Callable
from dataclasses import dataclass

from synapsed.clock import Clock
from synapsed.model.records import LogProgress
from synapsed.outgoing import PushPolicy, retrying, signing
from synapsed.outgoing.poster import HttpPoster, Receipt
from synapsed.outgoing.secrets import SecretPlaces


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """The tools. `rng` gives numbers in [0, 1)."""

    poster: Callable[[], HttpPoster]
    """Makes a client that notifies only addresses that `[a2a.push]` allows."""
    policy: PushPolicy
    secrets: SecretPlaces
    clock: Clock
    rng: Callable[[], float]
    user_agent: str

    def wait(self, progress: LogProgress) -> float:
        """Returns the seconds until the receiver is to be tried again."""
        return retrying.waiting(progress, self.policy, now=self.clock.wall())

    def asked(self, receipt: Receipt) -> float | None:
        """Returns the seconds for which the receiver wants no more requests, by the `Retry-After` of `receipt`."""
        return retrying.retry_after(receipt.retry_after, now=self.clock.wall())

    def failed[P: LogProgress](self, progress: P, receipt: Receipt) -> P:
        """Returns the progress after a failed attempt: `given_up` if the receiver is not to be tried again."""
        asked = self.asked(receipt)
        after = retrying.failed(progress, self.policy, now=self.clock.wall(), asked=asked, roll=self.rng())
        return after.model_copy(update={"state": "given_up"}) if receipt.gone else after

    def headers(self, key: bytes, *, webhook_id: str, at: int, body: bytes) -> dict[str, str]:
        """Returns the headers for `body`, a JSON document, with its signature by Standard Webhooks as of `at`."""
        signed = signing.headers(key, webhook_id=webhook_id, at=at, body=body)
        return {"Content-Type": "application/json", "User-Agent": self.user_agent, **signed}
